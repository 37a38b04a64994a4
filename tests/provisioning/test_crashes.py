"""
The provisioner dies at each of its writes, and a new one finishes the work.

Whether the write arrived or not, there is one node for the pod afterwards, and nothing when the pod
is gone.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.controllers.scenes import phase
from tests.provisioning.worlds import catalogue, names, pod, pool, settings, template

from dryrack.client.client import Client
from dryrack.client.endpoints import (
    CLAIMS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PODS,
    SLICES,
    TEMPLATES,
)
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster.assembly import EngineOptions, assemble_engines
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.engines import running_engines
from dryrack.cluster.initial_objects import add_device_classes, add_node_pools

if TYPE_CHECKING:
    from dryrack.client.transport import Request, Response, Transport
    from dryrack.cluster.engines import Wiring

WRITES = ("POST", "PUT", "PATCH", "DELETE")
# Creation and removal of a node take fewer writes; the last numbers crash nothing.
NUMBERS = range(1, 26, 3)
STORM = 120


class Mortal:
    """A transport whose user dies at its n-th write: from then on, no request is answered."""

    def __init__(self, inner: Transport, dies_at: int, *, arrives: bool) -> None:
        self.dead = asyncio.Event()
        self._inner = inner
        self._left = dies_at
        self._arrives = arrives

    async def send(self, request: Request) -> Response:
        if self.dead.is_set():
            await asyncio.Event().wait()
        if request.method in WRITES and "/events" not in request.path:
            self._left -= 1
            if not self._left:
                if self._arrives:
                    await self._inner.send(request)
                self.dead.set()
                await asyncio.Event().wait()
        return await self._inner.send(request)


@pytest.mark.parametrize("arrives", [False, True])
@pytest.mark.parametrize("dies_at", NUMBERS)
def test_a_crash_at_any_write_leaks_nothing(dies_at: int, arrives: bool) -> None:
    """After a restart, the Pod runs on one node; when the Pod is deleted, no object remains."""

    async def run() -> None:
        clock = VirtualClock()
        plane = build_control_plane(ControlPlaneOptions(clock=clock))
        client = plane.client()
        options = EngineOptions(catalogue=catalogue(), provisioner=settings())
        families = assemble_engines(options)
        own = [each for each in families if each.name == "provisioner"]
        others = [each for each in families if each.name != "provisioner"]
        mortal = Mortal(plane.transport, dies_at, arrives=arrives)

        def mortal_wiring(engine: str) -> Wiring:
            return replace(plane.wiring(engine), client=Client(mortal, agent=engine))

        await add_node_pools(client)
        await add_device_classes(client, catalogue().device_classes.values())
        await client.create(NODE_POOLS, pool())
        await client.create(TEMPLATES, template(1))
        try:
            async with running_engines(others, plane.wiring):
                async with running_engines(own, mortal_wiring):
                    await clock.advance(1)
                    await client.create(PODS, pod("train", gpus=1))
                    await clock.advance(10)
                    if not mortal.dead.is_set():
                        await client.delete(PODS, "train", namespace="default")
                        await clock.advance(60)
                async with running_engines(own, plane.wiring):
                    await clock.advance(20)
                    if await names(client, PODS):
                        found = await client.get(PODS, "train", "default")
                        assert phase(found) == "Running"
                        assert len(await names(client, NODES)) == 1
                        assert len(await names(client, NODE_CLAIMS)) == 1
                        await client.delete(PODS, "train", namespace="default")
                    await clock.advance(120)
                    for endpoint in (NODE_CLAIMS, NODES, SLICES, CLAIMS):
                        assert not await names(client, endpoint), endpoint.plural
        finally:
            plane.expiry.stop()

    run_virtual(run())


def test_a_claim_that_is_deleted_during_its_launch_leaves_no_node() -> None:
    """No node, slice, or NodeClaim remains, at whichever step the deletion comes."""
    from tests.provisioning.worlds import claim, instance_type, play

    async def scene(client: Client, clock: VirtualClock) -> None:
        for number in range(20):
            name = f"short-{number}"
            await client.create(NODE_CLAIMS, claim(name, instance_type("g5.xlarge")))
            # The deletion meets the launch at a different step each time.
            for _ in range(number):
                await asyncio.sleep(0)
            await client.delete(NODE_CLAIMS, name)
        await clock.advance(60)
        for endpoint in (NODE_CLAIMS, NODES, SLICES):
            assert not await names(client, endpoint), endpoint.plural

    play(scene)


def test_nothing_is_written_when_nothing_changes() -> None:
    """For an hour, no object gets a new version, although a Pod is pending."""
    from tests.provisioning.worlds import play

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(NODE_POOLS, pool())
        await client.create(TEMPLATES, template(1))
        await client.create(PODS, pod("train", gpus=1))
        await client.create(PODS, pod("huge", cpu="4000"))
        await clock.advance(120)

        async def state() -> list[tuple[str, str]]:
            return [
                (each["metadata"]["name"], each["metadata"]["resourceVersion"])
                for endpoint in (NODE_POOLS, NODE_CLAIMS, NODES, SLICES, PODS)
                for each in (await client.list(endpoint)).items
            ]

        before = await state()
        assert len(before) == 6
        await clock.advance(3600)
        assert await state() == before

    play(scene)


def test_a_storm_of_pods_that_are_deleted_meanwhile_leaves_nothing() -> None:
    """The remaining Pods run, and no object remains after the last Pod is deleted."""
    from tests.provisioning.worlds import play

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(NODE_POOLS, pool())
        await client.create(TEMPLATES, template(1))
        for number in range(STORM):
            made = pod(f"p-{number}", gpus=1) if number % 2 else pod(f"p-{number}", cpu="2")
            await client.create(PODS, made)
            if number % 20 == 0:
                await clock.advance(0.3)
        for number in range(0, STORM, 3):
            await client.delete(PODS, f"p-{number}", namespace="default")
        await clock.advance(30)
        found = (await client.list(PODS)).items
        assert {phase(each) for each in found} == {"Running"}
        assert len(found) == STORM - len(range(0, STORM, 3))
        for each in found:
            await client.delete(PODS, each["metadata"]["name"], namespace="default")
        # A tenth of the nodes goes at a time.
        await clock.advance(900)
        for endpoint in (NODE_CLAIMS, NODES, SLICES, CLAIMS):
            assert not await names(client, endpoint), endpoint.plural

    play(scene)
