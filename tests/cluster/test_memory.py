"""What a cluster keeps: shared where it is alike, and as it was where engines read it."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from tests.bench.soak import soaking

from dryrack.client import endpoints
from dryrack.client.endpoints import CLAIMS, CLASSES, DEPLOYMENTS, NODES, PODS, SLICES, TEMPLATES
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster import EngineOptions, Family, Wiring, assemble_engines, load_catalogue
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.cluster.initial_objects import virtual_node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterator

    from dryrack.client.informer import Informers
    from dryrack.kinds.raw import Raw


KINDS = [each for each in vars(endpoints).values() if isinstance(each, endpoints.Endpoint)]


@pytest.fixture(autouse=True)
def nothing_is_changed_in_place() -> None:
    """Instead of the one of all tests, which keeps objects that are counted here."""


@dataclass(slots=True)
class Reader:
    """An engine that does nothing but read the caches of the others."""

    seen: list[Informers] = field(default_factory=list)

    async def run(self, _: Collection[str], around: Wiring) -> None:
        assert around.informers is not None
        self.seen.append(around.informers)
        await asyncio.Event().wait()

    @property
    def informers(self) -> Informers:
        return self.seen[0]


@asynccontextmanager
async def whole_cluster() -> AsyncIterator[tuple[EmbeddedCluster, VirtualClock, Reader]]:
    """All engines, the catalogue, and one that reads along."""
    clock = VirtualClock()
    reader = Reader()
    engines = (
        *assemble_engines(EngineOptions(catalogue=load_catalogue())),
        Family("reader", ("reader",), reader.run),
    )
    async with embedded(ControlPlaneOptions(clock=clock), engines=engines) as cluster:
        await clock.advance(0.1)
        yield cluster, clock, reader


def machine(name: str, instance_type: str, **labels: str) -> Raw:
    node = virtual_node(name)
    node["metadata"]["labels"] |= {"node.kubernetes.io/instance-type": instance_type} | labels
    return node


def pod_template() -> Raw:
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    return {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [container], "resourceClaims": claims},
    }


async def work(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
    """Workloads come, change and go; nodes too."""
    client = cluster.client
    for name in ("a", "b"):
        await client.create(NODES, machine(name, "g6.12xlarge"))
    expression = "device.driver == 'gpu.nvidia.com'"
    await client.create(
        CLASSES,
        {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": expression}}]}},
    )
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    await client.create(
        TEMPLATES,
        {
            "metadata": {"name": "gpu", "namespace": "default"},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        },
    )
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "x"}}, "template": pod_template()}
    await client.create(
        DEPLOYMENTS, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}
    )
    await clock.advance(3)
    await client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 2}}, namespace="default")
    await client.delete(NODES, "b")
    await clock.advance(10)


def test_engines_change_no_object_that_an_informer_gave_them() -> None:
    """Parts of objects are shared; every cache says what the server says, field by field."""

    async def scenario() -> dict[str, int]:
        async with whole_cluster() as (cluster, clock, reader):
            await work(cluster, clock)
            compared = {}
            for kind in KINDS:
                informer = reader.informers.find_existing(kind)
                if informer is None or not informer.synced.is_set():
                    continue
                there = (await cluster.client.list(kind)).items
                for each in there:
                    each["metadata"].pop("managedFields", None)
                assert list(informer.all()) == list(there), kind.resource
                compared[kind.resource] = len(there)
            return compared

    compared = run_virtual(scenario())
    busy = (NODES, PODS, CLAIMS, SLICES, DEPLOYMENTS)
    assert all(compared[kind.resource] for kind in busy), compared


def parts_of(value: Any) -> Iterator[Any]:
    """All dicts and lists within a value, itself included."""
    if isinstance(value, dict | list):
        yield value
        for each in value.values() if isinstance(value, dict) else value:
            yield from parts_of(each)


def test_what_nodes_have_in_common_is_kept_once() -> None:
    """A further node of a type takes what is its own: a tenth of what it has."""

    async def scenario() -> tuple[int, int]:
        async with whole_cluster() as (cluster, clock, reader):
            slices = reader.informers.of(SLICES)
            known: set[int] = set()
            for name in ("a", "b", "c"):
                node = machine(name, "p5.48xlarge", **{"dryrack.dev/mig": "dynamic"})
                await cluster.client.create(NODES, node)
                await clock.advance(2)
                own = [each for each in slices.all() if each["spec"].get("nodeName") == name]
                parts = [id(part) for each in own for part in parts_of(each)]
                added = len({*parts} - known)
                known |= {*parts}
            return added, len(parts)

    added, whole = run_virtual(scenario())
    assert whole > 5_000
    assert added < whole / 10


def objects_by_type() -> Counter[str]:
    """Ours, and what objects of the API are made of; the event loop has some of its own."""
    gc.collect()
    kinds = (type(each) for each in gc.get_objects())
    return Counter(
        kind.__name__
        for kind in kinds
        if kind in (dict, list, set) or str(kind.__module__).startswith("dryrack")
    )


def test_pods_that_are_gone_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bounds of what is kept for a while, no engine keeps a thing of them."""
    monkeypatch.setattr("dryrack.store.store.READABLE_OBJECTS_MAX", 10)

    async def scenario() -> Counter[str]:
        async with soaking(event_seconds=90.0, watch_log_events_max=10) as soak:
            for _ in range(4):
                await soak.batch(6)
            before = objects_by_type()
            for _ in range(18):
                await soak.batch(6)
            return objects_by_type() - before

    grown = run_virtual(scenario())
    # Events that are a minute older, and timers that are not due: up to 44 objects were seen,
    # however many pods there were. A leak of one object for each pod makes it 108.
    assert grown.total() < 90, grown
