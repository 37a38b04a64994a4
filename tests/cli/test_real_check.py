"""`dryrack check` on a real API server with kube-scheduler and KWOK."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options

if TYPE_CHECKING:
    from tests.realcluster.cluster import Cluster
    from tests.realcluster.fixtures import StartCluster

WORLD = """
apiVersion: v1
kind: Node
metadata: {name: node-a, annotations: {kwok.x-k8s.io/node: fake}, labels: {type: kwok}}
status:
  allocatable: {cpu: "8", memory: 8Gi, pods: "10"}
  capacity: {cpu: "8", memory: 8Gi, pods: "10"}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: "device.driver == 'x.example.com'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: slice-x}
spec:
  driver: x.example.com
  nodeName: node-a
  pool: {name: node-a, generation: 1, resourceSliceCount: 1}
  devices: [{name: d0}, {name: d1}]
"""
POD = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: NAME, namespace: default}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: default}
spec:
  resourceClaims: [{name: r, resourceClaimName: NAME}]
  containers: [{name: c, image: i, resources: {claims: [{name: r}]}}]
"""


def check(cluster: Cluster, wait: str) -> tuple[int, dict[str, Any]]:
    words = ("check", "--kubeconfig", str(cluster.plane.kubeconfig), "--wait", wait, "-o", "json")
    done = subprocess.run(
        (sys.executable, "-m", "dryrack", *words),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    return done.returncode, {it["check"]: it for it in json.loads(done.stdout)["checks"]}


@pytest.mark.real
def test_check_finds_what_is_wrong_on_a_real_cluster(start_cluster: StartCluster) -> None:
    """Pods that kube-scheduler has placed are sound; a device of two claims is reported."""
    cluster = start_cluster(Options(), Parts(kwok=True))
    plane = cluster.plane
    for text in (WORLD, POD.replace("NAME", "a"), POD.replace("NAME", "b")):
        assert plane.kubectl("apply", "-f", "-", stdin=text).returncode == 0
    ready = plane.kubectl("wait", "pod", "a", "b", "--for=condition=Ready", "--timeout=60s")
    assert ready.returncode == 0, ready.stderr
    status, checks = check(cluster, "20s")
    assert status == 0, checks
    assert {name for name, each in checks.items() if each["state"] == "not checked"} == {"prepared"}

    claim = json.loads(plane.kubectl("get", "resourceclaim", "a", "-o", "json").stdout)
    other = POD.replace("NAME", "c").partition("---")[0]
    assert plane.kubectl("apply", "-f", "-", stdin=other).returncode == 0
    taken = json.dumps({"status": {"allocation": claim["status"]["allocation"]}})
    words = ("resourceclaim", "c", "--subresource=status", "--type=merge", "-p", taken)
    patched = plane.kubectl("patch", *words)
    assert patched.returncode == 0, patched.stderr
    status, checks = check(cluster, "1s")
    assert status == 1
    assert [each["message"] for each in checks["one-holder"]["violations"]] == [
        "is allocated to claims default/a, default/c"
    ]
