"""A publisher's sources on an embedded server whose time stands still until it is moved."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.client.planes import site
from tests.controllers.slices.definitions import definitions

from dryrack.base.metrics import Registry
from dryrack.client.endpoints import (
    CONFIG_MAPS,
    DEFINITIONS,
    DRA_CONFIGS,
    EVENTS,
    NAMESPACES,
    NODE_OVERLAYS,
)
from dryrack.client.errors import NotFoundError
from dryrack.client.informer import Informers
from dryrack.client.timekeeping import settle
from dryrack.controllers.slices import PublisherSettings
from dryrack.controllers.slices.current_inventory import CurrentInventory
from dryrack.controllers.slices.published_counts import PublishedCounts
from dryrack.controllers.slices.publisher import watch_counts, watch_sources
from dryrack.controllers.slices.sources import Sources
from dryrack.controllers.writes import EngineContext

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tests.client.planes import Site

    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw


NAMESPACE = "karpenter"
CONFIG_MAP = "dra-kwok-configmap"


def config(device: str = "gpu-0", *more: str) -> str:
    """A configuration without anything to warn of; each device in a mapping of its own."""
    mappings = "".join(
        f"""\
- name: {name}
  nodeSelectorTerms:
  - matchExpressions:
    - {{key: type, operator: In, values: [{name}]}}
  resourceSlice:
    driver: gpu.example.com
    devices:
    - name: {name}
"""
        for name in (device, *more)
    )
    return f"driver: gpu.example.com\nmappings:\n{mappings}"


def dra_config(name: str, device: str = "gpu-0", driver: str = "gpu.example.com") -> Raw:
    terms = [{"matchExpressions": [{"key": "type", "operator": "Exists"}]}]
    pool = {
        "name": "pool",
        "nodeSelectorTerms": terms,
        "resourceSlices": [{"devices": [{"name": device}]}],
    }
    return {"metadata": {"name": name}, "spec": {"driver": driver, "pools": [pool]}}


def overlay(name: str, devices: int = 1, **spec: Any) -> Raw:
    slices = {
        "spec": {
            "driver": "gpu.example.com",
            "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
        }
    }
    requirements = [{"key": "type", "operator": "Exists"}]
    whole = {"requirements": requirements, "resourceSlices": [slices]} | spec
    kept = {key: value for key, value in whole.items() if value is not None}
    return {"metadata": {"name": name}, "spec": kept}


@dataclass
class Stage:
    """The sources of a publisher, and the server with the documents."""

    at: Site
    options: PublisherSettings
    current: CurrentInventory
    counts: PublishedCounts
    metrics: Registry
    sources: Sources
    running: asyncio.Task[None]

    @property
    def devices(self) -> list[str]:
        """The names of all devices in the current inventory, in order."""
        inventory = self.current.inventory
        assert inventory is not None, "no inventory is known"
        given = (*(each.assignment for each in inventory.overlays), *inventory.assignments)
        return [device.name for each in given for batch in each.batches for device in batch.devices]

    async def put(self, text: str | None, key: str = "config.yaml") -> None:
        """Gives the ConfigMap this text; None leaves it without data."""
        await self.put_data({} if text is None else {key: text})

    async def put_data(self, data: dict[str, str], **metadata: Any) -> None:
        name = {"name": CONFIG_MAP, "namespace": NAMESPACE} | metadata
        try:
            old = await self.at.client.get(CONFIG_MAPS, CONFIG_MAP, NAMESPACE)
        except NotFoundError:
            await self.at.client.create(CONFIG_MAPS, {"metadata": name, "data": data})
        else:
            new = old | {"data": data, "metadata": old["metadata"] | metadata}
            await self.at.client.update(CONFIG_MAPS, new)
        await settle()

    async def remove(self, endpoint: Endpoint, name: str, namespace: str = "") -> None:
        await self.at.client.delete(endpoint, name, namespace=namespace)
        await settle()

    async def define(self) -> None:
        """NodeOverlay and DRAConfig come into being."""
        for each in definitions():
            await self.at.client.create(DEFINITIONS, each)
        await self.at.clock.advance(1)

    async def create(self, endpoint: Endpoint, obj: Raw) -> None:
        await self.at.client.create(endpoint, obj)
        await settle()

    async def change(self, endpoint: Endpoint, obj: Raw) -> None:
        old = await self.at.client.get(endpoint, obj["metadata"]["name"])
        await self.at.client.update(endpoint, old | {"spec": obj["spec"]})
        await settle()

    async def status(self, name: str) -> Raw:
        """The status of a DRAConfig."""
        found = await self.at.client.get(DRA_CONFIGS, name)
        return found.get("status") or {}

    async def condition(self, name: str, kind: str) -> Raw:
        conditions = (await self.status(name)).get("conditions") or []
        (found,) = (each for each in conditions if each["type"] == kind)
        return dict(found)

    async def events(self, *reasons: str) -> list[Raw]:
        """Those with these reasons, the oldest first."""
        found = (await self.at.client.list(EVENTS)).items
        kept = [each for each in found if each["reason"] in reasons]
        return sorted(kept, key=lambda each: int(each["metadata"]["resourceVersion"]))

    async def stop(self) -> None:
        self.running.cancel()
        await asyncio.wait([self.running])


async def begin(at: Site, options: PublisherSettings | None = None) -> Stage:
    """A new process on a server that may have seen others."""
    chosen = options or PublisherSettings()
    informers = Informers(at.client, clock=at.clock, chance=at.chance)
    metrics = Registry()
    current = CurrentInventory()
    counts = PublishedCounts()
    context = EngineContext(at.client, informers, at.clock, at.chance, metrics=metrics)
    sources = Sources(context, chosen, current=current, counts=counts)
    watch_sources(metrics, sources.statuses)
    watch_counts(metrics, counts)

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(informers.run(), name="informers")
            group.create_task(sources.run(), name="sources")

    running = asyncio.create_task(run(), name="publisher")
    await settle()
    return Stage(at, chosen, current, counts, metrics, sources, running)


async def prepared(at: Site) -> Site:
    await at.client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    return at


def play(
    scene: Callable[[Stage], Awaitable[None]],
    *,
    options: PublisherSettings | None = None,
    before: Callable[[Site], Awaitable[None]] | None = None,
) -> None:
    """One scene with one process; `before` is what it finds."""

    async def run() -> None:
        at = await prepared(site())
        if before is not None:
            await before(at)
        stage = await begin(at, options)
        try:
            await scene(stage)
        finally:
            await stage.stop()

    asyncio.run(run())


def messages(events: Sequence[Raw]) -> list[str]:
    return [each["message"] for each in events]


__all__ = ["DRA_CONFIGS", "NODE_OVERLAYS", "Stage", "begin", "play", "prepared"]
