"""Devices for which a kubelet leaves out the calls of their driver, and fields that are dropped."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from dryrack.client.endpoints import CLAIMS, NODES, PODS, SLICES
from dryrack.hardware.pool_plan import document
from dryrack.kinds.releases import Release, find_dropped, without_gates
from dryrack.kubeletplugin.kinds.fake import FakeKind
from dryrack.kubeletplugin.slices import DroppedGates, node_slices, publish
from dryrack.testing import AsyncCluster, Setup

if TYPE_CHECKING:
    from tests.stage import Stage

    from dryrack.kinds.raw import Raw

GATE = "DRAOptionalNodeOperations"
CLAIM: Raw = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "one"},
    "spec": {
        "devices": {"requests": [{"name": "d", "exactly": {"deviceClassName": "fake.3-shake.com"}}]}
    },
}
POD: Raw = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "d"}]}}],
        "resourceClaims": [{"name": "d", "resourceClaimName": "one"}],
    },
}


@pytest.mark.parametrize(("skipped", "phase"), [("all", "Running"), ("none", "Pending")])
async def test_a_virtual_kubelet_prepares_no_devices_that_skip_it(skipped: str, phase: str) -> None:
    """A driver that is gone keeps no pod from running if it has nothing to prepare."""
    setup = Setup(release="1.37", feature_gates=f"{GATE}=true")
    async with AsyncCluster(setup) as cluster:
        await cluster.add_nodes(devices=f"fake:2,skip-node-operations={skipped}")
        await cluster.advance(30)
        await cluster.fail("node node-1 driver=gone")
        await cluster.apply([CLAIM, POD])
        await cluster.expect_scheduled("p", devices=1)
        await cluster.advance(60)
        claim = await cluster.client.get(CLAIMS, "one", "default")
        pod = await cluster.client.get(PODS, "p", "default")
        node = await cluster.client.get(NODES, pod["spec"]["nodeName"])
        (slice_,) = (await cluster.client.list(SLICES)).items

    (result,) = claim["status"]["allocation"]["devices"]["results"]
    operations = ["*"] if skipped == "all" else None
    assert slice_["spec"].get("skipNodeOperations") == operations
    assert result.get("skipNodeOperations") == operations
    assert GATE in node["status"]["declaredFeatures"]
    assert pod["status"]["phase"] == phase


def test_gates_of_dropped_fields_are_found_and_left_out() -> None:
    """A partitionable device needs two gates here, and one of them is off."""
    (slice_,) = node_slices(FakeKind(2, skip_node_operations=("*",)), "node-1")
    sent = document(slice_)
    stored = without_gates(sent, [GATE])

    assert find_dropped(sent, stored) == (GATE,)
    assert "skipNodeOperations" not in stored["spec"]
    assert stored["spec"]["devices"] == sent["spec"]["devices"]
    assert find_dropped(sent, sent) == ()


@pytest.mark.stage(only=(), release=Release.V1_36)
async def test_a_plugin_names_the_gate_of_a_dropped_field_once(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """Kubernetes 1.36 has no such field; the slices are not written again for it."""
    node = await stage.client.create(NODES, {"metadata": {"name": "node-1"}})
    dropped = DroppedGates()
    kind = FakeKind(2, skip_node_operations=("*",))

    async def write() -> bool:
        observed = (await stage.client.list(SLICES)).items
        return await publish(stage.client, kind, node, observed, dropped=dropped)

    with caplog.at_level(logging.WARNING):
        assert await write()
        assert not await write()
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len(warnings) == 1
    assert f"enable the feature gate {GATE}" in warnings[0]
