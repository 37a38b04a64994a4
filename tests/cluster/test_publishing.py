"""The publisher on the embedded plane, and once for scripts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.command import documents, example_path
from tests.client.planes import Road, refusal, site

from dryrack.client.client import Client
from dryrack.client.endpoints import CLAIMS, CONFIG_MAPS, NAMESPACES, NODES, PODS, SLICES
from dryrack.client.timekeeping import VirtualClock, settle
from dryrack.cluster import EngineOptions, Family, Wiring, assemble_engines, load_catalogue
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.cluster.initial_objects import add_device_classes, add_nodes, add_objects
from dryrack.cluster.publish_once import PATIENCE_SECONDS, Outcome, publish_once
from dryrack.controllers.slices import PublisherSettings
from dryrack.kinds.documents import read

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tests.client.planes import Site

    from dryrack.client.transport import Request, Response
    from dryrack.kinds.raw import Raw


async def inhabit(client: Client, *nodes: Raw, config: str = "") -> None:
    await client.create(NAMESPACES, {"metadata": {"name": "karpenter"}})
    for node in nodes:
        await client.create(NODES, node)
    if config:
        await client.create(CONFIG_MAPS, documents(config)[0])


async def published(
    *nodes: Raw,
    config: str = "",
    without: Collection[str] = (),
    engines: Sequence[Family] | None = None,
) -> list[str]:
    """The devices of a whole cluster, when all has come to rest."""
    clock = VirtualClock()
    async with embedded(
        ControlPlaneOptions(clock=clock), without=without, engines=engines
    ) as cluster:
        await inhabit(cluster.client, *nodes, config=config)
        for _ in range(10):
            await settle()
            await clock.advance(0.5)
        slices = (await cluster.client.list(SLICES)).items
    return sorted(device["name"] for each in slices for device in each["spec"]["devices"])


GPU_NODES = documents("karpenter-gpu/nodes.yaml")
P5 = documents("catalogue/nodes.yaml")[0]


def test_a_whole_cluster_publishes_by_itself() -> None:
    """Nodes of KWOK, and the ConfigMap of Karpenter's driver: no more is needed."""
    devices = asyncio.run(published(*GPU_NODES, config="karpenter-gpu/config.yaml"))

    assert devices == ["nvidia-t4-0", "nvidia-t4-0"]


def test_the_publisher_can_be_left_out() -> None:
    """By its name, so that another can take its place."""
    there = published(*GPU_NODES, config="karpenter-gpu/config.yaml", without=["slices"])

    assert asyncio.run(there) == []


def test_the_catalogue_is_for_those_who_ask_for_it() -> None:
    """A node of a known instance type has nothing unless it is switched on."""
    assert asyncio.run(published(P5)) == []
    devices = asyncio.run(
        published(P5, engines=assemble_engines(EngineOptions(catalogue=load_catalogue())))
    )
    assert [name for name in devices if name.startswith("gpu-")] == [f"gpu-{n}" for n in range(8)]


async def run_on_machines(instance_type: str, file: str) -> tuple[list[str], list[str]]:
    """The pods that run, and the devices that are given, on nodes that `up` starts with."""
    clock = VirtualClock()
    engines = assemble_engines(EngineOptions(catalogue=load_catalogue()))
    async with embedded(ControlPlaneOptions(clock=clock), engines=engines) as cluster:
        catalogue = load_catalogue()
        await add_device_classes(cluster.client, catalogue.device_classes.values())
        await add_nodes(cluster.client, 2, catalogue.instance_types[instance_type])
        await add_objects(cluster.plane, read(example_path(file).read_bytes(), file).documents)
        for _ in range(20):
            await settle()
            await clock.advance(0.5)
        pods = (await cluster.client.list(PODS)).items
        claims = (await cluster.client.list(CLAIMS)).items
    running = [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Running"]
    results = [
        result
        for claim in claims
        if "allocation" in claim.get("status", {})
        for result in claim["status"]["allocation"]["devices"]["results"]
    ]
    return running, [f"{each['driver']}/{each['pool']}/{each['device']}" for each in results]


@pytest.mark.parametrize(
    ("file", "pod", "devices"),
    [
        ("quickstart/one-h100.yaml", "one-h100", ["gpu-0"]),
        ("quickstart/two-gpus.yaml", "two-gpus", ["gpu-0", "gpu-1"]),
    ],
)
def test_examples_run_on_machines_of_the_catalogue(file: str, pod: str, devices: list[str]) -> None:
    """Nodes, their devices and the classes of their drivers are there without another word."""
    running, given = asyncio.run(run_on_machines("p5.48xlarge", file))

    assert running == [pod]
    assert given == [f"gpu.nvidia.com/node-1/{device}" for device in devices]


def test_without_a_word_about_devices_nothing_is_written() -> None:
    """A publisher that has nothing to do costs a cluster no write, however long it runs."""

    async def scenario() -> list[str]:
        at = site()
        await inhabit(at.client, *GPU_NODES)
        road = Road(at.road)
        controllers = assemble_engines()[0]
        around = Wiring(Client(road), at.clock, at.chance)
        running = asyncio.ensure_future(controllers.run(["slices"], around))
        await at.clock.advance(300)
        running.cancel()
        await asyncio.wait([running])
        return [f"{each.method} {each.path}" for each in road.asked if each.method != "GET"]

    assert asyncio.run(scenario()) == []


async def once(at: Site, road: Road | None = None, **options: Any) -> Outcome:
    """Publishes once, in a time that passes by itself."""
    publishing = asyncio.ensure_future(
        publish_once(
            Client(road or at.road), PublisherSettings(**options), clock=at.clock, chance=at.chance
        )
    )
    while not publishing.done():
        await at.clock.advance(0.1)
    return publishing.result()


def test_once_is_over_when_all_is_as_desired() -> None:
    """It says how much there is; a second time it writes no slice."""

    async def scenario() -> tuple[Outcome, Outcome, int]:
        at = site()
        await inhabit(at.client, *GPU_NODES, config="karpenter-gpu/config.yaml")
        first = await once(at)
        road = Road(at.road)
        second = await once(at, road)
        writes = [each for each in road.asked if each.method != "GET"]
        return first, second, sum("slices" in each.path for each in writes)

    first, second, writes = asyncio.run(scenario())

    assert (first.nodes, first.slices, first.is_as_desired) == (2, 2, True)
    assert second == first
    assert writes == 0


def test_once_knows_whether_anything_says_what_to_publish() -> None:
    """Nodes alone are no configuration; who called is to be told what is missing."""

    async def scenario() -> tuple[Outcome, Outcome]:
        bare = site()
        full = site()
        await inhabit(bare.client, *GPU_NODES)
        await inhabit(full.client, *GPU_NODES, config="karpenter-gpu/config.yaml")
        return await once(bare), await once(full)

    bare, full = asyncio.run(scenario())

    assert (bare.sources, bare.slices, bare.is_as_desired) == (0, 0, True)
    assert full.sources == 1


def test_once_names_the_nodes_that_are_not_as_desired() -> None:
    """What the server said about each; the others are published."""

    def refuse(request: Request) -> Response | None:
        is_meant = request.method == "POST" and b'"kwok-2"' in request.body
        return refusal(403, "Forbidden") if is_meant and "slices" in request.path else None

    async def scenario() -> tuple[Outcome, float]:
        at = site()
        await inhabit(at.client, *GPU_NODES, config="karpenter-gpu/config.yaml")
        began = at.clock.now()
        outcome = await once(at, Road(at.road, refuse=refuse))
        return outcome, at.clock.now() - began

    outcome, seconds = asyncio.run(scenario())

    assert outcome.failing == {"kwok-2": "refused: Forbidden"}
    assert not outcome.is_as_desired
    assert outcome.slices == 1
    assert seconds < 2 * PATIENCE_SECONDS


def test_once_is_patient_with_what_passes() -> None:
    """A server that is busy for a moment is asked again."""
    refusals = [refusal(429, "TooManyRequests") for _ in range(6)]

    def refuse(request: Request) -> Response | None:
        is_meant = request.method == "POST" and "slices" in request.path
        return refusals.pop() if is_meant and refusals else None

    async def scenario() -> Outcome:
        at = site()
        await inhabit(at.client, *GPU_NODES, config="karpenter-gpu/config.yaml")
        return await once(at, Road(at.road, refuse=refuse))

    assert asyncio.run(scenario()).is_as_desired


@pytest.mark.parametrize("config", ["karpenter-gpu/config-wrong.yaml"])
def test_once_does_not_succeed_with_documents_that_cannot_be_read(config: str) -> None:
    """Nobody can say what is desired; nothing is written for it."""

    async def scenario() -> tuple[Outcome, int]:
        at = site()
        await inhabit(at.client, *GPU_NODES, config=config)
        outcome = await once(at)
        return outcome, len((await at.client.list(SLICES)).items)

    outcome, slices = asyncio.run(scenario())

    assert not outcome.is_as_desired
    assert "config.yaml:25: mappings[0].resourceSlice.devices[1].name" in outcome.unread[0]
    assert slices == 0
