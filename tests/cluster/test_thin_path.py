"""A pod asks for a device, gets it, runs, and gives it back, in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cluster.one_gpu import add_gpu_node, pod

from dryrack.client.endpoints import CLAIMS, NODES, PODS
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from tests.stage import Stage

pytestmark = pytest.mark.stage(prepare=add_gpu_node)


async def test_a_node_annotated_for_kwok_becomes_ready(stage: Stage) -> None:
    """The virtual kubelet reports for a node that has no kubelet."""

    async def is_ready() -> bool:
        conditions = get(await stage.client.get(NODES, "n1"), "status.conditions", ())
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    await stage.until(is_ready)


async def test_a_pod_with_a_template_gets_its_device_and_runs(stage: Stage) -> None:
    """The claim is created, allocated and reserved; the pod runs, and its log shows the device."""
    await stage.create(PODS, pod("first"))
    await stage.until(lambda: stage.is_in_phase("first", "Running"))

    assert await stage.node_of("first") == "n1"
    (claim,) = (await stage.client.list(CLAIMS)).items
    results = claim["status"]["allocation"]["devices"]["results"]
    assert [each["device"] for each in results] == ["gpu-0"]
    assert [each["name"] for each in claim["status"]["reservedFor"]] == ["first"]
    assert "device: gpu.example.com/n1/gpu-0" in (await stage.logs("first")).splitlines()


async def test_a_device_goes_on_to_the_next_pod_when_its_pod_is_deleted(stage: Stage) -> None:
    """The claim is deleted with its pod, and the pod that waits gets the device."""
    await stage.create(PODS, pod("first"))
    await stage.until(lambda: stage.is_in_phase("first", "Running"))
    await stage.create(PODS, pod("second"))
    await stage.advance(5)
    assert await stage.is_in_phase("second", "Pending")

    await stage.delete("pod", "first")
    await stage.until(lambda: stage.is_gone(PODS, "first"))
    await stage.until(lambda: stage.is_in_phase("second", "Running"), seconds=120)

    (claim,) = (await stage.client.list(CLAIMS)).items
    assert [each["name"] for each in claim["status"]["reservedFor"]] == ["second"]
