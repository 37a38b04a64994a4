"""
The end-to-end tests of Karpenter's driver (`dra_kwok_test.go`), under the names they have.

All engines of an embedded cluster are at work; time passes only when a test waits.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from tests.apiserver.replay import CountingChance

from dryrack.client.endpoints import (
    CLASSES,
    CONFIG_MAPS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    SLICES,
    TEMPLATES,
)
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.kinds.documents import read
from dryrack.scenario.reading import LIBRARY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw


DRIVER = "karpenter.sh.dra-kwok-driver"
KINDS = {
    each.kind: each for each in (CLASSES, CONFIG_MAPS, NAMESPACES, NODES, PODS, SLICES, TEMPLATES)
}


@dataclass(frozen=True, slots=True)
class World:
    """A whole cluster."""

    client: Client
    clock: VirtualClock

    async def apply(self, *files: str) -> None:
        """The examples of the demo, which are those of the driver's documents."""
        for obj in (each for file in files for each in _objects(file)):
            await self.client.apply(KINDS[obj["kind"]], obj, manager="test", force=True)

    async def until(self, holds: Callable[[], Awaitable[bool]], *, seconds: int = 20) -> None:
        for _ in range(seconds * 10):
            if await holds():
                return
            await self.clock.advance(0.1)
        pytest.fail(f"not so after {seconds} s")

    async def comes_to_have(self, node: str, *devices: str) -> None:
        async def holds() -> bool:
            return await self.devices(node) == sorted(devices)

        await self.until(holds)

    async def comes_to_run(self, pod: str) -> None:
        async def holds() -> bool:
            return bool(
                (await self.client.get(PODS, pod, "default"))["status"]["phase"] == "Running"
            )

        await self.until(holds)

    async def devices(self, node: str) -> list[str]:
        slices = (await self.client.list(SLICES)).items
        return sorted(
            device["name"]
            for each in slices
            if each["spec"].get("nodeName") == node
            for device in each["spec"]["devices"]
        )


def _objects(file: str) -> list[Raw]:
    return [each.raw for each in read((LIBRARY / file).read_bytes(), file).documents]


def played(scene: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        async with _world() as world:
            await world.apply("karpenter.yaml")
            await scene(world)

    asyncio.run(run())


@asynccontextmanager
async def _world() -> AsyncIterator[World]:
    clock = VirtualClock()
    options = ControlPlaneOptions(clock=clock, chance=CountingChance())
    async with embedded(options) as cluster:
        yield World(cluster.client, clock)


def test_should_create_and_manage_resourceslices_based_on_configmap() -> None:
    """Slices come with the ConfigMap, are owned by their nodes, and go with it."""

    async def scene(world: World) -> None:
        await world.apply("karpenter-gpu/nodes.yaml", "karpenter-gpu/config.yaml")
        await world.comes_to_have("kwok-1", "nvidia-t4-0")
        await world.comes_to_have("kwok-2", "nvidia-t4-0")
        nodes = {
            each["metadata"]["name"]: each["metadata"]["uid"]
            for each in (await world.client.list(NODES)).items
        }
        for each in (await world.client.list(SLICES)).items:
            (owner,) = each["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["uid"]) == ("Node", nodes[each["spec"]["nodeName"]])
            assert each["spec"]["driver"] == DRIVER
            assert each["metadata"]["labels"]["kwok.x-k8s.io/managed-by"] == "dra-kwok-driver"
        await world.client.delete(CONFIG_MAPS, "dra-kwok-configmap", namespace="karpenter")
        await world.comes_to_have("kwok-1")
        await world.comes_to_have("kwok-2")

    played(scene)


def test_should_handle_configmap_updates_dynamically() -> None:
    """A changed ConfigMap is on all nodes without anybody asking."""

    async def scene(world: World) -> None:
        await world.apply("karpenter-gpu/nodes.yaml", "karpenter-gpu/config.yaml")
        await world.comes_to_have("kwok-1", "nvidia-t4-0")
        await world.apply("karpenter-gpu/config-changed.yaml")
        await world.comes_to_have("kwok-1", "nvidia-t4-0", "nvidia-t4-1")
        await world.comes_to_have("kwok-2", "nvidia-t4-0", "nvidia-t4-1")

    played(scene)


def test_should_support_fpga_device_types() -> None:
    """Devices are what the configuration says, with all their attributes."""

    async def scene(world: World) -> None:
        await world.apply("karpenter-fpga/nodes.yaml", "karpenter-fpga/config.yaml")
        nodes = [each["metadata"]["name"] for each in _objects("karpenter-fpga/nodes.yaml")]
        await world.comes_to_have(nodes[0], "xilinx-u250-0")
        (each,) = (await world.client.list(SLICES)).items
        assert each["spec"]["devices"][0]["attributes"] == {
            "type": {"string": "xilinx-alveo-u250"},
            "memory": {"string": "64Gi"},
            "dsp_slices": {"string": "12288"},
            "interface": {"string": "pcie-gen3"},
        }

    played(scene)


def test_should_support_multiple_resourceslices_for_single_instance_type() -> None:
    """Two mappings that match one node make two pools there, each of them complete."""

    async def scene(world: World) -> None:
        await world.apply("karpenter-multi/nodes.yaml", "karpenter-multi/config.yaml")
        (node, *_) = (each["metadata"]["name"] for each in _objects("karpenter-multi/nodes.yaml"))
        await world.comes_to_have(node, "fpga-0", "nvidia-gpu-0", "nvidia-gpu-1")
        slices = (await world.client.list(SLICES)).items
        pools = [each["spec"]["pool"] for each in slices if each["spec"]["nodeName"] == node]
        assert sorted(each["name"] for each in pools) == [f"{node}/fpga-pool", f"{node}/gpu-pool"]
        assert [each["resourceSliceCount"] for each in pools] == [1, 1]

    played(scene)


def test_should_handle_invalid_configmap_gracefully() -> None:
    """What was published stays; an event on the ConfigMap says line, field and fix."""

    async def scene(world: World) -> None:
        await world.apply("karpenter-gpu/nodes.yaml", "karpenter-gpu/config.yaml")
        await world.comes_to_have("kwok-1", "nvidia-t4-0")
        await world.apply("karpenter-gpu/config-wrong.yaml")

        async def is_told() -> bool:
            events = (await world.client.list(EVENTS)).items
            return any("config.yaml:25: mappings[0]" in each["message"] for each in events)

        await world.until(is_told)
        await world.clock.advance(60)
        assert await world.devices("kwok-1") == ["nvidia-t4-0"]

    played(scene)


def test_should_ignore_dra_pods_when_ignoredrarequests_is_enabled() -> None:
    """A pod that no device fits makes nobody publish anything, nor any node appear."""

    async def scene(world: World) -> None:
        await world.apply("karpenter-gpu/pods.yaml")
        await world.clock.advance(60)
        pod = await world.client.get(PODS, "first", "default")
        assert pod["status"]["phase"] == "Pending"
        assert not (await world.client.list(NODES)).items
        assert not (await world.client.list(SLICES)).items

    played(scene)


def test_should_prepare_dra_testing_infrastructure_for_future_karpenter_dra_implementation() -> (
    None
):
    """A pod waits for devices; a node that Karpenter makes gets them, and the pod runs there."""

    async def scene(world: World) -> None:
        await world.apply("karpenter-gpu/config.yaml", "karpenter-gpu/pods.yaml")
        await world.clock.advance(5)
        await world.apply("karpenter-gpu/nodes.yaml")
        await world.comes_to_run("first")
        await world.comes_to_run("second")

    played(scene)


def test_the_design_document_means_nodes_by_karpenters_annotation() -> None:
    """It writes the mark of KWOK among labels, where nodes carry an annotation of that name."""

    async def scene(world: World) -> None:
        metadata = {
            "name": "marked",
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"node.kubernetes.io/instance-type": "f1.2xlarge"},
        }
        await world.client.create(NODES, {"metadata": metadata})
        await world.apply("overlay-h100/config.yaml")
        await world.comes_to_have("marked", "xilinx-u250-0")
        mark = {"metadata": {"annotations": {"kwok.x-k8s.io/node": "other"}}}
        await world.client.patch(NODES, "marked", mark)
        await world.comes_to_have("marked")

    played(scene)
