"""
Documents on a real API server: kinds that come and go, a status, an event.

A real server takes a while to serve a new kind, prunes what a definition does not have, and deletes
the objects of a kind before the kind itself.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.controllers import scenes
from tests.controllers.slices.definitions import definitions
from tests.controllers.slices.reading import CONFIG_MAP, NAMESPACE, config, dra_config, overlay
from tests.controllers.slices.whole import node
from tests.realcluster.controlplane import Options

from dryrack.client.client import Client
from dryrack.client.endpoints import (
    CONFIG_MAPS,
    DEFINITIONS,
    DRA_CONFIGS,
    EVENTS,
    NAMESPACES,
    NODE_OVERLAYS,
    NODES,
    SLICES,
)
from dryrack.client.https import connected
from dryrack.client.informer import Informers
from dryrack.client.kubeconfig import load
from dryrack.cluster.ports import SystemChance, SystemClock
from dryrack.controllers import slices
from dryrack.controllers.objects import condition_of, has_condition
from dryrack.controllers.writes import EngineContext

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from tests.realcluster.fixtures import StartCluster

    from dryrack.client.informer import Name
    from dryrack.kinds.raw import Raw

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@asynccontextmanager
async def publishing(kubeconfig: Path) -> AsyncIterator[Client]:
    clock = SystemClock()
    chance = SystemChance()
    async with connected(load([kubeconfig], clock)) as transport, asyncio.TaskGroup() as group:
        client = Client(transport)
        informers = Informers(client, clock=clock, chance=chance)
        context = EngineContext(client, informers, clock, chance)
        engine = slices.engine(context, slices.PublisherSettings())
        tasks = [
            group.create_task(informers.run(), name="informers"),
            group.create_task(engine.run(), name="publisher"),
        ]
        yield client
        for task in tasks:
            task.cancel()


async def has_devices(client: Client, *names: str) -> None:
    """Waits until exactly these are published."""

    def are_there(every: Mapping[Name, Raw]) -> bool:
        found = [each["name"] for obj in every.values() for each in obj["spec"]["devices"]]
        return sorted(found) == sorted(names)

    await scenes.settled(client, SLICES, are_there)


async def define(client: Client) -> None:
    for each in definitions():
        await client.create(DEFINITIONS, each)

    def are_established(every: Mapping[Name, Raw]) -> bool:
        return len(every) == 2 and all(
            has_condition(each, "Established") for each in every.values()
        )

    await scenes.settled(client, DEFINITIONS, are_established)


async def whole_play(client: Client) -> None:
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    await client.create(NODES, node("node-a", type="own"))
    metadata = {"name": CONFIG_MAP, "namespace": NAMESPACE}
    text = config("own")
    await client.create(CONFIG_MAPS, {"metadata": metadata, "data": {"config.yaml": text}})
    await has_devices(client, "own")
    await define(client)
    await client.create(DRA_CONFIGS, dra_config("a"))
    await has_devices(client, "own", "gpu-0")
    await status_is_true(client)
    await client.create(NODE_OVERLAYS, overlay("b", 2))
    await has_devices(client, "gpu-0", "gpu-1")
    for each in definitions():
        await client.delete(DEFINITIONS, each["metadata"]["name"])
    await has_devices(client, "own")
    await client.delete(CONFIG_MAPS, CONFIG_MAP, namespace=NAMESPACE)
    await has_devices(client)


async def status_is_true(client: Client) -> None:
    def is_counted(every: Mapping[Name, Raw]) -> bool:
        (obj,) = every.values()
        status = obj.get("status") or {}
        counts = status.get("resourceSliceCount"), status.get("nodeCount")
        return counts == (1, 1) and has_condition(obj, "Ready")

    await scenes.settled(client, DRA_CONFIGS, is_counted)
    found = await client.get(DRA_CONFIGS, "a")
    await client.update(DRA_CONFIGS, found | {"spec": dra_config("a", "No Name")["spec"]})

    def is_refused(every: Mapping[Name, Raw]) -> bool:
        (obj,) = every.values()
        condition = condition_of(obj, "ValidationSucceeded") or {}
        return condition.get("status") == "False" and condition.get("observedGeneration") == 2

    await scenes.settled(client, DRA_CONFIGS, is_refused)
    await has_devices(client, "own", "gpu-0")
    (event,) = [
        each for each in (await client.list(EVENTS)).items if each["reason"] == "InvalidConfig"
    ]
    assert event["message"].startswith("spec.pools[0].resourceSlices[0].devices[0].name: ")


async def test_documents_come_and_go_on_a_real_server(start_cluster: StartCluster) -> None:
    """A real API server shows the same as the embedded one, also with definitions."""
    cluster = start_cluster(Options())

    async with publishing(cluster.plane.kubeconfig) as client:
        await whole_play(client)
