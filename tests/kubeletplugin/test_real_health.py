"""
Faults on a real node: a real kubelet hears of the health of devices, and pods and slices show it.

The faults are said by the command, and by the file of the plugin.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.kubeletplugin.real_node import RealNode
from tests.kubeletplugin.test_real_node import claim_spec, pod, template
from tests.publisher.real_publisher import until
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options

if TYPE_CHECKING:
    from tests.realcluster.fixtures import StartModuleCluster

    from dryrack.kinds.raw import Raw

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

EXPECTED_NAME = "claim:claim-0"


@pytest.fixture(scope="module")
def real(start_module_cluster: StartModuleCluster) -> RealNode:
    """One node for all tests of the module."""
    return RealNode(start_module_cluster(Options(), Parts(node=True)))


def fault(real: RealNode, *words: str) -> None:
    kubeconfig = str(real.cluster.plane.kubeconfig)
    command = (sys.executable, "-m", "dryrack", "fault", *words, "--kubeconfig", kubeconfig)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def told(real: RealNode, namespace: str) -> list[Raw]:
    """Return the health of devices that the kubelet has written to the pod."""
    (status,) = real.read("pod", namespace, "pod0")["status"]["containerStatuses"]
    entries = status.get("allocatedResourcesStatus") or []
    assert [each["name"] for each in entries] in ([], [EXPECTED_NAME])
    return [each for entry in entries for each in entry["resources"]]


def published(real: RealNode) -> dict[str, list[str]]:
    """The devices in the slices, and the keys of their taints."""
    (only,) = json.loads(real.kubectl("get", "resourceslices", "-o", "json"))["items"]
    return {
        device["name"]: [taint["key"] for taint in device.get("taints", ())]
        for device in only["spec"]["devices"]
    }


def test_a_pod_says_that_its_device_is_unhealthy_and_well_again(real: RealNode) -> None:
    """By the kubelet, with the message; the slice is tainted meanwhile, and the pod runs on."""
    file = real.node.directory / "faults"
    plugin = real.start("fake:2", options=(f"--fault-file={file}",))
    namespace = real.namespace("health")
    real.apply(template(namespace, claim_spec()) + pod(namespace, "pod0"))
    real.wait_ready(namespace, "pod0")
    path = "jsonpath={.items[0].status.allocation.devices.results[0].device}"
    device = real.kubectl("get", "resourceclaims", "-n", namespace, "-o", path)
    until(lambda: [each["health"] for each in told(real, namespace)] == ["Healthy"])
    [healthy] = told(real, namespace)

    fault(real, "device", f"{real.node.name}/{device}", "unhealthy=it smokes")
    until(lambda: [each["health"] for each in told(real, namespace)] == ["Unhealthy"])
    [unhealthy] = told(real, namespace)
    tainted = published(real)
    fault(real, "device", f"{real.node.name}/{device}", "ok")
    until(lambda: [each["health"] for each in told(real, namespace)] == ["Healthy"])

    file.write_text(f"{device} unknown=who knows\n")
    until(lambda: [each["health"] for each in told(real, namespace)] == ["Unknown"])
    file.unlink()
    until(lambda: [each["health"] for each in told(real, namespace)] == ["Healthy"])
    untainted = published(real)

    real.kubectl("delete", "namespace", namespace, "--timeout=90s")
    real.stop(plugin)

    assert healthy["resourceID"].startswith("k8s.")
    assert healthy["resourceID"].endswith(f"-{device}")
    assert "message" not in healthy
    assert unhealthy == healthy | {"health": "Unhealthy", "message": "it smokes"}
    assert tainted == {"fake-0": [], "fake-1": []} | {device: ["dryrack.dev/unhealthy"]}
    assert untainted == {"fake-0": [], "fake-1": []}


def test_a_lost_device_and_a_claim_that_cannot_be_prepared(real: RealNode) -> None:
    """The device leaves the slice, and the pod waits with the message; both are over at once."""
    plugin = real.start("fake:2")
    namespace = real.namespace("lost")
    fault(real, "device", f"{real.node.name}/fake-0", "lost")
    until(lambda: published(real) == {"fake-1": []})
    fault(real, "node", real.node.name, "prepare=fail=no disk")
    real.apply(template(namespace, claim_spec()) + pod(namespace, "pod0"))
    fields = ("--field-selector", "reason=FailedPrepareDynamicResources")
    until(lambda: "no disk" in real.kubectl("get", "events", "-n", namespace, *fields))
    fault(real, "clear")
    # The kubelet looks at the first pod again after a minute or two; another is prepared at once.
    until(lambda: published(real) == {"fake-0": [], "fake-1": []})
    real.apply(pod(namespace, "pod1"))
    real.wait_ready(namespace, "pod1")
    real.kubectl("delete", "namespace", namespace, "--timeout=90s")
    real.stop(plugin)
