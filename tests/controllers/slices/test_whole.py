"""From documents to slices: what the parts promise together."""

from __future__ import annotations

import asyncio

from tests.client.planes import refusal
from tests.controllers.slices.reading import (
    CONFIG_MAP,
    DRA_CONFIGS,
    NAMESPACE,
    NODE_OVERLAYS,
    config,
    dra_config,
    overlay,
)
from tests.controllers.slices.whole import Cluster, at_work, ground, node, played

from dryrack.client.endpoints import CONFIG_MAPS, DEFINITIONS, NODES
from dryrack.cluster.definitions import definitions

BAD = config().replace("operator: In", "operator: Inn")


def test_slices_survive_a_start_with_a_bad_configuration() -> None:
    """Whoever starts and cannot read the ConfigMap deletes nothing of what it has caused."""

    async def run() -> None:
        at = await ground()
        async with at_work(at) as cluster:
            await cluster.put(config("gpu-0"))
            (before,) = await cluster.slices()
        found = await at.client.get(CONFIG_MAPS, CONFIG_MAP, NAMESPACE)
        await at.client.update(CONFIG_MAPS, found | {"data": {"config.yaml": BAD}})
        async with at_work(at) as cluster:
            await at.clock.advance(100)
            assert await cluster.slices() == [before]
            await at.client.delete(CONFIG_MAPS, CONFIG_MAP, namespace=NAMESPACE)
            assert await cluster.slices() == []

    asyncio.run(run())


def test_slices_survive_a_start_while_kinds_cannot_be_asked_for() -> None:
    """Until it is known whether there are overlays, nothing is deleted, and then nothing either."""

    async def run() -> None:
        at = await ground()
        async with at_work(at) as cluster:
            await cluster.define()
            await cluster.create(NODE_OVERLAYS, overlay("a", 2))
            before = await cluster.slices()
            assert await cluster.devices() == ["gpu-0", "gpu-1"]
        closed = {"/apis/karpenter.sh/v1alpha1"}
        at.road.refuse = lambda request: refusal(503, "No") if request.path in closed else None
        async with at_work(at) as cluster:
            await at.clock.advance(100)
            assert await cluster.slices() == before
            closed.clear()
            await at.clock.advance(100)
            assert await cluster.slices() == before

    asyncio.run(run())


def test_configs_of_one_driver_make_one_whole_pool() -> None:
    """Two DRAConfigs that match one node: one pool, one count, the first by name first."""

    async def scene(cluster: Cluster) -> None:
        await cluster.define()
        await cluster.create(DRA_CONFIGS, dra_config("b", "gpu-b"))
        await cluster.create(DRA_CONFIGS, dra_config("a", "gpu-a"))
        found = await cluster.slices()
        pools = {tuple(sorted(each["spec"]["pool"].items())) for each in found}
        assert len(pools) == 1
        assert found[0]["spec"]["pool"]["name"] == "gpu.example.com/node-a"
        assert found[0]["spec"]["pool"]["resourceSliceCount"] == len(found) == 2
        assert await cluster.devices() == ["gpu-a", "gpu-b"]

    played(scene)


def test_of_two_configs_with_one_device_the_first_has_it() -> None:
    """The second is told which of its devices were left out, and why."""

    async def scene(cluster: Cluster) -> None:
        await cluster.define()
        await cluster.create(DRA_CONFIGS, dra_config("b"))
        await cluster.create(DRA_CONFIGS, dra_config("a"))
        await cluster.at.clock.advance(3)
        assert await cluster.devices() == ["gpu-0"]
        first = await cluster.at.client.get(DRA_CONFIGS, "a")
        second = await cluster.at.client.get(DRA_CONFIGS, "b")
        assert first["status"]["resourceSliceCount"] == 1
        assert second["status"]["resourceSliceCount"] == 0
        (ready,) = (each for each in second["status"]["conditions"] if each["type"] == "Ready")
        assert "device gpu-0 is there already, from DRAConfig a" in ready["message"]

    played(scene)


def test_a_config_counts_what_it_has_caused() -> None:
    """Slices and nodes, while nodes come and go; ready when they have their devices."""

    async def scene(cluster: Cluster) -> None:
        await cluster.define()
        await cluster.create(DRA_CONFIGS, dra_config("a"))
        for number in range(5):
            await cluster.create(NODES, node(f"more-{number}", type="x"))
        await cluster.at.clock.advance(3)
        status = (await cluster.at.client.get(DRA_CONFIGS, "a"))["status"]
        assert (status["resourceSliceCount"], status["nodeCount"]) == (6, 6)
        assert {each["type"]: each["status"] for each in status["conditions"]} == {
            "ValidationSucceeded": "True",
            "Ready": "True",
        }
        await cluster.at.client.delete(NODES, "more-3")
        await cluster.at.clock.advance(3)
        status = (await cluster.at.client.get(DRA_CONFIGS, "a"))["status"]
        assert (status["resourceSliceCount"], status["nodeCount"]) == (5, 5)

    played(scene)


def test_an_overlay_stands_before_the_others_while_it_is_there() -> None:
    """Its devices instead of the ConfigMap's; and those again when its kind is taken away."""

    async def scene(cluster: Cluster) -> None:
        await cluster.put(config("gpu-0"))
        await cluster.define()
        await cluster.create(NODE_OVERLAYS, overlay("a", 2))
        assert await cluster.devices() == ["gpu-0", "gpu-1"]
        for each in definitions():
            await cluster.at.client.delete(DEFINITIONS, each["metadata"]["name"])
        await cluster.at.clock.advance(2)
        assert await cluster.devices() == ["gpu-0"]

    played(scene)
