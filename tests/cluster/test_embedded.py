"""Clusters in one process: whole, apart from each other, and quick."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from dryrack.base.errors import DryrackError
from dryrack.client.endpoints import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster.assembly import EngineOptions, assemble_engines
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.cluster.engines import Family, UnknownEngineError, Wiring, running_engines

if TYPE_CHECKING:
    from dryrack.client.endpoints import Endpoint

FRESH_SECONDS_MAX = 0.025


def test_a_cluster_has_what_every_cluster_has() -> None:
    """The namespaces of Kubernetes are there from the start."""

    async def scenario() -> list[str]:
        async with embedded(engines=()) as cluster:
            listed = await cluster.client.list(NAMESPACES)
            return [each["metadata"]["name"] for each in listed.items]

    assert asyncio.run(scenario()) == ["default", "kube-node-lease", "kube-public", "kube-system"]


async def test_two_clusters_never_meet() -> None:
    """What is written into one is not in the other, and their revisions are their own."""
    async with embedded(engines=()) as one, embedded(engines=()) as other:
        before = other.plane.store.revision
        meta = {"name": "a", "namespace": "default"}
        await one.client.create(CONFIG_MAPS, {"metadata": meta})
        assert (await other.client.list(CONFIG_MAPS)).items == ()
        assert other.plane.store.revision == before


def test_time_is_what_the_clock_says() -> None:
    """With a clock of one's own, objects are born when that says so."""
    clock = VirtualClock(start=946_684_800.0)

    async def scenario() -> str:
        async with embedded(ControlPlaneOptions(clock=clock), engines=()) as cluster:
            meta = {"name": "a", "namespace": "default"}
            made = await cluster.client.create(CONFIG_MAPS, {"metadata": meta})
            return str(made["metadata"]["creationTimestamp"])

    assert asyncio.run(scenario()) == "2000-01-01T00:00:00Z"


def test_a_fresh_cluster_takes_no_time() -> None:
    """With all engines, in less than 25 ms: tests can have one each."""

    async def once() -> float:
        began = time.thread_time()
        async with embedded() as cluster:
            await cluster.client.get(NAMESPACES, "default")
            return time.thread_time() - began

    # The first one imports; of the others the best counts, for the machine may be busy.
    asyncio.run(once())
    assert min(asyncio.run(once()) for _ in range(5)) < FRESH_SECONDS_MAX


EVERYWHERE = ("default", "kube-node-lease", "kube-public", "kube-system")


async def _until_everywhere(cluster: EmbeddedCluster, endpoint: Endpoint) -> None:
    """Waits until an object of this kind has been made in each namespace."""
    waiting = set(EVERYWHERE)
    async with cluster.client.watch(endpoint) as events:
        async for event in events:
            meta = event.object["metadata"]
            # The one ConfigMap that is there from the start is in one namespace alone.
            if meta["name"] != "extension-apiserver-authentication":
                waiting.discard(meta["namespace"])
            if not waiting:
                return


def test_namespaces_publish_whom_their_pods_trust() -> None:
    """The authority is in each, if there is one; a cluster without sockets has none to show."""

    async def scenario(options: ControlPlaneOptions, endpoint: Endpoint) -> list[str]:
        async with embedded(options) as cluster:
            await _until_everywhere(cluster, endpoint)
            found = await cluster.client.list(CONFIG_MAPS)
            data = [each["data"] for each in found.items]
        return [each["ca.crt"] for each in data if "ca.crt" in each]

    assert asyncio.run(scenario(ControlPlaneOptions(authority="PEM"), CONFIG_MAPS)) == ["PEM"] * 4
    assert asyncio.run(scenario(ControlPlaneOptions(), SERVICE_ACCOUNTS)) == []


def test_an_engine_can_be_left_out_by_name() -> None:
    """Those that are left run; one that there is not is a mistake, and told with the names."""
    ran: list[tuple[str, ...]] = []

    async def run(names: object, around: Wiring) -> None:
        assert isinstance(names, tuple)
        ran.append(names)
        await asyncio.Event().wait()

    family = Family("all", ("claims", "jobs"), run)

    async def scenario() -> None:
        async with embedded(engines=(family,), without=("jobs",)):
            await asyncio.sleep(0)
        with pytest.raises(
            UnknownEngineError, match=r"unknown component 'x'; use one of: claims, jobs"
        ):
            async with embedded(engines=(family,), without=("x",)):
                raise AssertionError

    asyncio.run(scenario())
    assert ran == [("claims",)]


@pytest.mark.parametrize(
    ("old", "name"),
    [
        ("garbage", "garbage-collector"),
        ("accounts", "serviceaccounts"),
        ("eviction", "taint-eviction"),
    ],
)
def test_an_engine_can_be_left_out_by_the_name_of_release_0_2(old: str, name: str) -> None:
    """Scripts that use the old names still work."""
    families = assemble_engines(EngineOptions(without=(old,)))

    assert name not in {engine for family in families for engine in family.engines}
    assert len(families[0].engines) == len(assemble_engines()[0].engines) - 1


def test_what_a_block_raises_comes_out_as_it_was() -> None:
    """A failing assertion in a test is that assertion, not a group around it."""

    async def idle(names: object, around: Wiring) -> None:
        await asyncio.Event().wait()

    async def scenario() -> None:
        async with embedded(engines=(Family("idle", ("idle",), idle),)):
            raise LookupError("as it was")

    with pytest.raises(LookupError, match="as it was"):
        asyncio.run(scenario())


def test_an_engine_that_fails_ends_the_cluster() -> None:
    """The block is cancelled, and the engine's error is what comes out."""

    async def broken(names: object, around: Wiring) -> None:
        raise DryrackError("no disk")

    async def scenario() -> None:
        async with embedded(engines=(Family("broken", ("broken",), broken),)):
            await asyncio.Event().wait()

    with pytest.raises(DryrackError, match="no disk"):
        asyncio.run(scenario())


def test_an_engine_that_ends_by_itself_is_missed() -> None:
    """Engines run for as long as the cluster does; one that just stops is an error."""

    async def brief(names: object, around: Wiring) -> None:
        return

    async def scenario() -> None:
        async with running_engines((Family("brief ones", ("a",), brief),), _nobody):
            await asyncio.Event().wait()

    with pytest.raises(DryrackError, match="brief ones ended by themselves"):
        asyncio.run(scenario())


def _nobody(name: str) -> Wiring:
    return Wiring(None, None, None)  # type: ignore[arg-type] # nobody looks at it
