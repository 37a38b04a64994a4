"""
The end-to-end tests of Karpenter's driver (`dra_kwok_test.go`), under the names they have.

All engines of a cluster run; time passes only when a test waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.stage import Stage

from dryrack.client.endpoints import (
    CONFIG_MAPS,
    EVENTS,
    NODES,
    PODS,
    SLICES,
)
from dryrack.kinds.documents import read
from dryrack.scenario.reading import LIBRARY

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw


DRIVER = "karpenter.sh.dra-kwok-driver"


class PublisherStage(Stage):
    """A cluster with the class, the namespace and the workload of the examples."""

    async def set_up(self) -> None:
        await self.apply_files("karpenter.yaml")

    async def apply_files(self, *files: str) -> None:
        """Apply examples of the demo, which are those of the driver's documents."""
        await self.apply([LIBRARY / file for file in files])

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


pytestmark = pytest.mark.stage(kind=PublisherStage)


async def test_should_create_and_manage_resourceslices_based_on_configmap(
    stage: PublisherStage,
) -> None:
    """Slices come with the ConfigMap, are owned by their nodes, and go with it."""
    await stage.apply_files("karpenter-gpu/nodes.yaml", "karpenter-gpu/config.yaml")
    await stage.comes_to_have("kwok-1", "nvidia-t4-0")
    await stage.comes_to_have("kwok-2", "nvidia-t4-0")
    nodes = {
        each["metadata"]["name"]: each["metadata"]["uid"]
        for each in (await stage.client.list(NODES)).items
    }
    for each in (await stage.client.list(SLICES)).items:
        (owner,) = each["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Node", nodes[each["spec"]["nodeName"]])
        assert each["spec"]["driver"] == DRIVER
        assert each["metadata"]["labels"]["kwok.x-k8s.io/managed-by"] == "dra-kwok-driver"
    await stage.client.delete(CONFIG_MAPS, "dra-kwok-configmap", namespace="karpenter")
    await stage.comes_to_have("kwok-1")
    await stage.comes_to_have("kwok-2")


async def test_should_handle_configmap_updates_dynamically(stage: PublisherStage) -> None:
    """A changed ConfigMap is on all nodes without anybody asking."""
    await stage.apply_files("karpenter-gpu/nodes.yaml", "karpenter-gpu/config.yaml")
    await stage.comes_to_have("kwok-1", "nvidia-t4-0")
    await stage.apply_files("karpenter-gpu/config-changed.yaml")
    await stage.comes_to_have("kwok-1", "nvidia-t4-0", "nvidia-t4-1")
    await stage.comes_to_have("kwok-2", "nvidia-t4-0", "nvidia-t4-1")


async def test_should_support_fpga_device_types(stage: PublisherStage) -> None:
    """Devices are what the configuration says, with all their attributes."""
    await stage.apply_files("karpenter-fpga/nodes.yaml", "karpenter-fpga/config.yaml")
    nodes = [each["metadata"]["name"] for each in _objects("karpenter-fpga/nodes.yaml")]
    await stage.comes_to_have(nodes[0], "xilinx-u250-0")
    (each,) = (await stage.client.list(SLICES)).items
    assert each["spec"]["devices"][0]["attributes"] == {
        "type": {"string": "xilinx-alveo-u250"},
        "memory": {"string": "64Gi"},
        "dsp_slices": {"string": "12288"},
        "interface": {"string": "pcie-gen3"},
    }


async def test_should_support_multiple_resourceslices_for_single_instance_type(
    stage: PublisherStage,
) -> None:
    """Two mappings that match one node make two pools there, each of them complete."""
    await stage.apply_files("karpenter-multi/nodes.yaml", "karpenter-multi/config.yaml")
    (node, *_) = (each["metadata"]["name"] for each in _objects("karpenter-multi/nodes.yaml"))
    await stage.comes_to_have(node, "fpga-0", "nvidia-gpu-0", "nvidia-gpu-1")
    slices = (await stage.client.list(SLICES)).items
    pools = [each["spec"]["pool"] for each in slices if each["spec"]["nodeName"] == node]
    assert sorted(each["name"] for each in pools) == [f"{node}/fpga-pool", f"{node}/gpu-pool"]
    assert [each["resourceSliceCount"] for each in pools] == [1, 1]


async def test_should_handle_invalid_configmap_gracefully(stage: PublisherStage) -> None:
    """Published slices stay; an event on the ConfigMap has line, field and fix."""
    await stage.apply_files("karpenter-gpu/nodes.yaml", "karpenter-gpu/config.yaml")
    await stage.comes_to_have("kwok-1", "nvidia-t4-0")
    await stage.apply_files("karpenter-gpu/config-wrong.yaml")

    async def is_told() -> bool:
        events = (await stage.client.list(EVENTS)).items
        return any("config.yaml:25: mappings[0]" in each["message"] for each in events)

    await stage.until(is_told)
    await stage.advance(60)
    assert await stage.devices("kwok-1") == ["nvidia-t4-0"]


async def test_should_ignore_dra_pods_when_ignoredrarequests_is_enabled(
    stage: PublisherStage,
) -> None:
    """A pod without a fitting device causes neither slices nor nodes."""
    await stage.apply_files("karpenter-gpu/pods.yaml")
    await stage.advance(60)
    pod = await stage.client.get(PODS, "first", "default")
    assert pod["status"]["phase"] == "Pending"
    assert not (await stage.client.list(NODES)).items
    assert not (await stage.client.list(SLICES)).items


async def test_should_prepare_dra_testing_infrastructure_for_future_karpenter_dra_implementation(
    stage: PublisherStage,
) -> None:
    """A pod waits for devices; a node that Karpenter makes gets them, and the pod runs there."""
    await stage.apply_files("karpenter-gpu/config.yaml", "karpenter-gpu/pods.yaml")
    await stage.advance(5)
    await stage.apply_files("karpenter-gpu/nodes.yaml")
    await stage.comes_to_run("first")
    await stage.comes_to_run("second")


async def test_the_design_document_means_nodes_by_karpenters_annotation(
    stage: PublisherStage,
) -> None:
    """It writes the mark of KWOK among labels, where nodes carry an annotation of that name."""
    metadata = {
        "name": "marked",
        "annotations": {"kwok.x-k8s.io/node": "fake"},
        "labels": {"node.kubernetes.io/instance-type": "f1.2xlarge"},
    }
    await stage.client.create(NODES, {"metadata": metadata})
    await stage.apply_files("overlay-h100/config.yaml")
    await stage.comes_to_have("marked", "xilinx-u250-0")
    mark = {"metadata": {"annotations": {"kwok.x-k8s.io/node": "other"}}}
    await stage.client.patch(NODES, "marked", mark)
    await stage.comes_to_have("marked")
