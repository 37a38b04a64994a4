"""A scheduler on an embedded plane in virtual time, which can be stopped and started again."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.apiserver.replay import CountingChance

from dryrack.client.client import Client, Selection
from dryrack.client.endpoints import EVENTS, PODS
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from dryrack.client.transport import Transport
    from dryrack.cluster.engines import Family

Raw = dict[str, Any]


class Stage:
    """The cluster, its clock, and a client."""

    def __init__(self, cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        self.cluster = cluster
        self.clock = clock
        self.client = cluster.client

    @asynccontextmanager
    async def scheduler(
        self, transport: Transport | None = None, **options: Any
    ) -> AsyncIterator[None]:
        """A scheduler that runs within the block, and has had its turn when the block begins."""
        client = Client(transport or self.cluster.transport, agent="scheduler")
        scheduler = Scheduler(client, clock=self.clock, chance=CountingChance(), **options)
        task = asyncio.create_task(scheduler.run(), name="scheduler")
        try:
            await self.clock.advance(1)
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def after(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    async def node_of(self, pod: str) -> str:
        """Where a pod is, "" if nowhere."""
        return str((await self.client.get(PODS, pod, "default"))["spec"].get("nodeName", ""))

    async def told(self, pod: str) -> str:
        """Why the pod is not scheduled, by its condition."""
        return str((await self.condition(pod)).get("message", ""))

    async def condition(self, pod: str) -> Raw:
        """Return the condition PodScheduled of a pod; empty if it has none."""
        status = (await self.client.get(PODS, pod, "default")).get("status", {})
        found = [it for it in status.get("conditions", ()) if it["type"] == "PodScheduled"]
        return found[0] if found else {}

    async def events(self, name: str, reason: str) -> list[str]:
        """What was said about an object for a reason, as it came."""
        events = (await self.client.list(EVENTS, Selection(namespace="default"))).items
        mine = [it for it in events if it["involvedObject"]["name"] == name]
        ordered = sorted(mine, key=lambda it: int(it["metadata"]["resourceVersion"]))
        return [it["message"] for it in ordered if it["reason"] == reason]


def on_stage(
    story: Callable[[Stage], Awaitable[None]],
    engines: Sequence[Family] | None = (),
    **options: Any,
) -> None:
    """Tells a story to a plane with these engines."""

    async def run() -> None:
        clock = VirtualClock()
        plane = ControlPlaneOptions(chance=CountingChance(), clock=clock, **options)
        async with embedded(plane, engines=engines) as cluster:
            await story(Stage(cluster, clock))

    run_virtual(run())
