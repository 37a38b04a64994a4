"""A server with a publisher on it, an inventory made by hand, and time that stands still."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.client.planes import Site, site

from dryrack.client.client import Client
from dryrack.client.endpoints import EVENTS, NODES, SLICES
from dryrack.client.informer import Informers
from dryrack.client.timekeeping import settle
from dryrack.controllers.slices import PublisherSettings
from dryrack.controllers.slices.current_inventory import CurrentInventory
from dryrack.controllers.slices.published_counts import PublishedCounts
from dryrack.controllers.slices.publishing import Publishing
from dryrack.controllers.writes import EngineContext
from dryrack.hardware.inventory import Assignment, Batch, Inventory, Origin, SourceKind, ThisNode
from dryrack.kinds.core import NodeSelectorRequirement, NodeSelectorTerm
from dryrack.kinds.resource import Device, DeviceAttribute

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from dryrack.hardware.inventory import Reach
    from dryrack.kinds.raw import Raw


DRIVER = "gpu.example.com"
KWOK = {"kwok.x-k8s.io/node": "fake"}


def devices(model: str, count: int) -> tuple[Device, ...]:
    attributes = {"model": DeviceAttribute(string_value=model)}
    return tuple(Device(name=f"{model}-{n}", attributes=attributes) for n in range(count))


def mapping(
    name: str, label: str, given: Iterable[Device], *, pool: str = "", reach: Reach | None = None
) -> Assignment:
    """These devices on nodes with `label=yes`."""
    requirement = NodeSelectorRequirement(key=label, operator="In", values=("yes",))
    return Assignment(
        Origin(SourceKind.CONFIG_MAP, "dra-kwok-configmap", name),
        (NodeSelectorTerm(match_expressions=(requirement,)),),
        (Batch(DRIVER, pool, reach or ThisNode(), tuple(given)),),
    )


def inventory(*mappings: Assignment) -> Inventory:
    return Inventory(assignments=mappings)


GPUS = mapping("gpu", "gpu", devices("t4", 2))


@dataclass(slots=True)
class Stage:
    """The publisher at work, and another client beside it."""

    site: Site
    publishing: Publishing
    current: CurrentInventory
    counts: PublishedCounts
    client: Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = Client(self.site.road.to)

    async def node(
        self, name: str, *, annotations: Raw | None = None, status: Raw | None = None, **labels: str
    ) -> Raw:
        """Makes a node; one of KWOK's unless said otherwise."""
        given = KWOK if annotations is None else annotations
        metadata = {"name": name, "labels": labels, "annotations": given}
        return await self.client.create(NODES, {"metadata": metadata, "status": status or {}})

    async def label(self, name: str, **labels: str | None) -> None:
        await self.client.patch(NODES, name, {"metadata": {"labels": labels}})

    async def slices(self, node: str | None = None) -> list[Raw]:
        """Those of a node, or all."""
        found = (await self.client.list(SLICES)).items
        return [each for each in found if node is None or each["spec"].get("nodeName") == node]

    async def devices(self, node: str) -> list[str]:
        return [
            device["name"]
            for each in await self.slices(node)
            for device in each["spec"].get("devices", ())
        ]

    async def events(self) -> list[tuple[str, str]]:
        found = (await self.client.list(EVENTS)).items
        return [(each["reason"], each["message"]) for each in found]

    def writes(self) -> list[str]:
        """Return the writes of the publisher without events."""
        asked = self.site.road.asked
        return [
            f"{each.method} {each.path}"
            for each in asked
            if each.method != "GET" and "/events" not in each.path
        ]

    async def rest(self) -> None:
        """Let all tasks run until they wait."""
        await settle(600)


@asynccontextmanager
async def stage(
    *mappings: Assignment,
    options: PublisherSettings | None = None,
    where: Site | None = None,
    wanted: Inventory | None = None,
) -> AsyncIterator[Stage]:
    """A publisher on a server; its inventory is known if there are mappings."""
    place = where or site()
    informers = Informers(place.client, clock=place.clock, chance=place.chance)
    context = EngineContext(place.client, informers, place.clock, place.chance)
    current = CurrentInventory()
    counts = PublishedCounts()
    publishing = Publishing(
        context,
        options or PublisherSettings(),
        current=current,
        counts=counts,
        source_object=lambda label: None,
    )
    if mappings or wanted is not None:
        current.replace(wanted or inventory(*mappings))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(informers.run()), group.create_task(publishing.run())]
        made = Stage(place, publishing, current, counts)
        await made.rest()
        yield made
        for task in tasks:
            task.cancel()
