"""From documents to slices: what the parts promise together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.client.planes import refusal
from tests.controllers.slices.definitions import definitions
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

from dryrack.client.endpoints import CONFIG_MAPS, DEFINITIONS, EVENTS, NODES

if TYPE_CHECKING:
    from dryrack.client.transport import Request, Response
    from dryrack.kinds.raw import Raw


BAD = config().replace("operator: In", "operator: Inn")


async def test_slices_survive_a_start_with_a_bad_configuration() -> None:
    """A start with an unreadable ConfigMap deletes none of its slices."""
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


async def test_slices_survive_a_start_while_kinds_cannot_be_asked_for() -> None:
    """Until it is known whether there are overlays, nothing is deleted, and then nothing either."""
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
    """An event on the second source names the devices that are left out, and the reason."""

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
        assert "DRAConfig a (pool) already defines device gpu-0" in ready["message"]

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


def for_all(name: str) -> Raw:
    slices = {"driver": "san.example.com", "pool": {"name": name}, "allNodes": True}
    return {"spec": slices | {"devices": [{"name": "nvme"}]}}


MAP = ("ConfigMap", CONFIG_MAP)
POOL = "san.example.com/of-the-map"
SHARED_CONFIG = """\
driver: san.example.com
mappings:
- name: san
  nodeSelectorTerms:
  - matchExpressions:
    - {key: type, operator: Exists}
  resourceSlice:
    pool: {name: of-the-map}
    allNodes: true
    devices:
    - {name: nvme}
"""


def test_whoever_asks_for_pools_of_the_whole_cluster_hears_of_them() -> None:
    """Without a node, the events about new and deleted slices are on the source."""

    async def scene(cluster: Cluster) -> None:
        await cluster.define()
        await cluster.create(NODE_OVERLAYS, overlay("a", resourceSlices=[for_all("a")]))
        await cluster.put(SHARED_CONFIG)
        await cluster.at.clock.advance(3)
        assert await told(cluster) == [
            ("NodeOverlay", "a", "san.example.com/a: 1 device in 1 slice"),
        ]
        await cluster.at.client.delete(NODE_OVERLAYS, "a")
        await cluster.at.clock.advance(3)
        assert (*MAP, f"{POOL}: 1 device in 1 slice") in await told(cluster)

        await cluster.at.client.delete(NODES, "node-a")
        await cluster.at.clock.advance(3)
        assert (*MAP, f"{POOL}: removed") in await told(cluster)

    played(scene)


def test_whoever_asks_for_a_refused_pool_of_the_whole_cluster_hears_of_it() -> None:
    """On the object, as on a node, and once."""

    async def scene(cluster: Cluster) -> None:
        def refuse(request: Request) -> Response | None:
            is_it = request.method == "POST" and b'"allNodes":true' in request.body
            return refusal(422, "Invalid") if is_it else None

        cluster.at.road.refuse = refuse
        await cluster.put(SHARED_CONFIG)
        await cluster.at.clock.advance(60)
        assert await told(cluster, "DevicesRefused") == [(*MAP, "refused: Invalid")]

    played(scene)


async def told(cluster: Cluster, reason: str = "DevicesPublished") -> list[tuple[str, str, str]]:
    """The events of that reason: on what, and what they say."""
    found = (await cluster.at.client.list(EVENTS)).items
    return sorted(
        (each["involvedObject"]["kind"], each["involvedObject"]["name"], each["message"])
        for each in found
        if each["reason"] == reason
    )
