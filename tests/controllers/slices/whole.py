"""The whole publisher on an embedded server whose time stands still until it is moved."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.client.planes import site
from tests.controllers.slices.definitions import definitions
from tests.controllers.slices.reading import CONFIG_MAP, NAMESPACE

from dryrack.client.endpoints import CONFIG_MAPS, DEFINITIONS, NAMESPACES, NODES, SLICES
from dryrack.client.informer import Informers
from dryrack.client.timekeeping import settle
from dryrack.controllers import slices
from dryrack.controllers.slices import PublisherSettings
from dryrack.controllers.writes import EngineContext

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from tests.client.planes import Site

    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw


@dataclass(frozen=True, slots=True)
class Cluster:
    """A server with a node of Karpenter's, and the whole publisher at work."""

    at: Site

    async def slices(self) -> list[Raw]:
        await settle()
        return list((await self.at.client.list(SLICES)).items)

    async def devices(self) -> list[str]:
        found = [each["spec"].get("devices") or () for each in await self.slices()]
        return sorted(device["name"] for devices in found for device in devices)

    async def create(self, endpoint: Endpoint, obj: Raw) -> None:
        await self.at.client.create(endpoint, obj)
        await settle()

    async def put(self, text: str) -> None:
        """Gives the ConfigMap this text; it must not be there."""
        metadata = {"name": CONFIG_MAP, "namespace": NAMESPACE}
        await self.create(CONFIG_MAPS, {"metadata": metadata, "data": {"config.yaml": text}})

    async def define(self) -> None:
        for each in definitions():
            await self.at.client.create(DEFINITIONS, each)
        await self.at.clock.advance(1)


def node(name: str, **labels: str) -> Raw:
    metadata = {
        "name": name,
        "annotations": {"kwok.x-k8s.io/node": "fake"},
        "labels": {"node.kubernetes.io/instance-type": "c-4x-amd64-linux"} | labels,
    }
    return {"metadata": metadata}


async def ground() -> Site:
    """Return a server with a node and the namespace of the ConfigMap, without a publisher."""
    at = site()
    await at.client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    await at.client.create(NODES, node("node-a", type="gpu-0"))
    return at


@asynccontextmanager
async def at_work(at: Site, options: PublisherSettings | None = None) -> AsyncIterator[Cluster]:
    """A publisher for the length of a block; others may have been there before."""
    informers = Informers(at.client, clock=at.clock, chance=at.chance)
    context = EngineContext(at.client, informers, at.clock, at.chance)
    engine = slices.engine(context, options or PublisherSettings())
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(informers.run(), name="informers"),
            group.create_task(engine.run(), name="publisher"),
        ]
        await settle()
        try:
            yield Cluster(at)
        finally:
            for task in tasks:
                task.cancel()


def played(scene: Callable[[Cluster], Awaitable[None]]) -> None:
    """One scene with one publisher."""

    async def run() -> None:
        async with at_work(await ground()) as cluster:
            await scene(cluster)

    asyncio.run(run())
