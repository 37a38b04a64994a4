"""
All that a slice can say, on a real API server.

The server writes quantities and times in forms of its own, fills in what was left out, and drops
what its gates do not know. None of that may look like a change.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.client.planes import Road
from tests.controllers import scenes
from tests.controllers.slices.everything import (
    EVERYTHING,
    SLICES_OF_A_NODE,
    SLICES_OF_THE_CLUSTER,
)
from tests.realcluster.controlplane import Options

from dryrack.client.client import Client
from dryrack.client.endpoints import EVENTS, NODES, SLICES
from dryrack.client.https import connected
from dryrack.client.informer import Informers
from dryrack.client.kubeconfig import load
from dryrack.client.timekeeping import sleep
from dryrack.cluster.ports import SystemChance, SystemClock
from dryrack.controllers.slices import PublisherSettings
from dryrack.controllers.slices.current_inventory import CurrentInventory
from dryrack.controllers.slices.published_counts import PublishedCounts
from dryrack.controllers.slices.publishing import Publishing
from dryrack.controllers.writes import EngineContext

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from tests.realcluster.fixtures import StartCluster

    from dryrack.client.informer import Name
    from dryrack.client.transport import Transport
    from dryrack.kinds.raw import Raw

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

NODE_NAMES = ("node-0", "node-1")


@asynccontextmanager
async def publishing(transport: Transport) -> AsyncIterator[Publishing]:
    """A publisher that looks at everything again all the time."""
    client = Client(transport)
    clock = SystemClock()
    chance = SystemChance()
    informers = Informers(client, clock=clock, chance=chance)
    context = EngineContext(client, informers, clock, chance)
    current = CurrentInventory()
    engine = Publishing(
        context,
        PublisherSettings(resync_seconds=0.2),
        current=current,
        counts=PublishedCounts(),
        source_object=lambda label: None,
    )
    current.replace(EVERYTHING)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(informers.run()), group.create_task(engine.run())]
        yield engine
        for task in tasks:
            task.cancel()


async def is_published(client: Client, nodes: int) -> None:
    shared = SLICES_OF_THE_CLUSTER if nodes else 0

    def are_there(every: Mapping[Name, Raw]) -> bool:
        return len(every) == nodes * SLICES_OF_A_NODE + shared

    await scenes.settled(client, SLICES, are_there)


async def is_quiet(engine: Publishing, road: Road) -> None:
    """Waits until all is settled; then nothing is written in ten rounds of looking again."""
    clock = SystemClock()
    while not engine.is_idle or engine.unsettled():
        await sleep(clock, 0.05)
    await sleep(clock, 0.5)
    before = len([each for each in road.asked if each.method != "GET"])
    await sleep(clock, 2.0)
    assert len([each for each in road.asked if each.method != "GET"]) == before


async def play(kubeconfig: Path) -> set[str]:
    """Nodes come, all is published, a new publisher agrees, nodes go; the reasons of events."""
    async with connected(load([kubeconfig], SystemClock())) as transport:
        client = Client(transport)
        road = Road(transport)
        for name in NODE_NAMES:
            marks = {"labels": {"gpu": "yes"}, "annotations": {"kwok.x-k8s.io/node": "fake"}}
            await client.create(NODES, {"metadata": {"name": name, **marks}})
        async with publishing(road) as engine:
            await is_published(client, len(NODE_NAMES))
            await is_quiet(engine, road)
            first = (await client.list(SLICES)).items
        async with publishing(road) as engine:
            await is_quiet(engine, road)
            assert [each["spec"] for each in (await client.list(SLICES)).items] == [
                each["spec"] for each in first
            ]
            for name in NODE_NAMES:
                await client.delete(NODES, name)
            await is_published(client, 0)
        return {each["reason"] for each in (await client.list(EVENTS)).items}


def test_a_real_server_gives_back_what_was_meant(start_cluster: StartCluster) -> None:
    """Everything is accepted and whole, and nothing is ever written twice."""
    plane = start_cluster(Options(with_scheduler=False)).plane
    told = asyncio.run(play(plane.kubeconfig))

    assert "DevicesPublished" in told
    assert not told & {"DevicesRefused", "DevicesIncomplete"}


def test_a_real_server_with_gates_off_is_not_written_to_for_ever(
    start_cluster: StartCluster,
) -> None:
    """Dropped fields are reported once, and then accepted."""
    gates = {"DRAConsumableCapacity": False}
    plane = start_cluster(Options(with_scheduler=False, feature_gates=gates)).plane
    told = asyncio.run(play(plane.kubeconfig))

    assert "DevicesIncomplete" in told
