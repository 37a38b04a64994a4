"""
The strictest clients there are: Kubernetes' own scheduler and controllers on the embedded plane.

They speak JSON, because the embedded plane serves no protobuf. Our own engines of the same name
are left out, so what happens here was done by them.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.clients.served import ServedPlane
from tests.realcluster import programs
from tests.realcluster.processes import Processes
from tests.realcluster.releases import DEFAULT_RELEASE, RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.real

NODES, DEVICES, PODS = 20, 8, 100
DRIVER = "gpu.example.com"
OURS = "claims,garbage,namespaces,accounts,eviction,deployments,replicasets,daemonsets"
FLAGS = (
    *("--kube-api-content-type=application/json", "--leader-elect=false", "--secure-port=0"),
    *("--kube-api-qps=1000", "--kube-api-burst=2000"),
)
_READY_SECONDS_MAX = 90.0


@contextmanager
def components(plane: ServedPlane, *names: str) -> Iterator[Processes]:
    """Kubernetes' own programs, pointed at the plane."""
    processes = Processes(plane.directory)
    try:
        for name in names:
            program = programs.kubernetes(name, RELEASES[DEFAULT_RELEASE])
            processes.start(name, [str(program), "--kubeconfig", str(plane.kubeconfig), *FLAGS])
        yield processes
    finally:
        processes.stop_all()


def fleet() -> Iterator[dict[str, Any]]:
    """Nodes with devices, a class, and a template that wants one device."""
    for number in range(NODES):
        name = f"node-{number}"
        annotations = {"kwok.x-k8s.io/node": "fake"}
        yield {"kind": "Node", "metadata": {"name": name, "annotations": annotations}}
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"gpu-{index}"} for index in range(DEVICES)]
        spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
        yield {"kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    yield {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    template = {"spec": {"devices": {"requests": requests}}}
    yield {"kind": "ResourceClaimTemplate", "metadata": {"name": "one"}, "spec": template}


def workload() -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    labels = {"app": "w"}
    inside = {"containers": [container], "resourceClaims": claims}
    pod = {"metadata": {"labels": labels}, "spec": inside}
    spec = {"replicas": PODS, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}, "spec": spec}


def manifest() -> str:
    documents = [
        {"apiVersion": "v1" if each["kind"] == "Node" else "resource.k8s.io/v1", **each}
        for each in fleet()
    ]
    return yaml.safe_dump_all([*documents, workload()])


def running(plane: ServedPlane) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(plane.must("get", "pods", "-o", "json"))["items"]
    return [pod for pod in items if pod["status"].get("phase") == "Running"]


def wait_until_running(plane: ServedPlane, processes: Processes) -> None:
    deadline = time.monotonic() + _READY_SECONDS_MAX
    while len(running(plane)) < PODS:
        processes.check()
        assert time.monotonic() < deadline, plane.must("get", "events", "-A")[-3000:]
        time.sleep(0.5)


def test_kube_scheduler_and_controller_manager_run_a_deployment_with_claims(
    tmp_path: Path,
) -> None:
    """A deployment of 100 pods with a claim each, all made, allocated and bound by Kubernetes."""
    options = ("--without", f"scheduler,{OURS},statefulsets,jobs")
    with (
        ServedPlane(tmp_path, options) as plane,
        components(plane, "kube-scheduler", "kube-controller-manager") as processes,
    ):
        plane.must("apply", "-f", "-", stdin=manifest())
        wait_until_running(plane, processes)
        claims = json.loads(plane.must("get", "resourceclaims", "-o", "json"))["items"]
        given = [
            (result["pool"], result["device"])
            for claim in claims
            for result in claim["status"]["allocation"]["devices"]["results"]
        ]

    assert len(given) == PODS
    assert len(set(given)) == PODS


def test_our_scheduler_and_theirs_agree_on_who_fits(tmp_path: Path) -> None:
    """With our own engines the same deployment runs as well, and no device is given twice."""
    with ServedPlane(tmp_path) as plane:
        plane.must("apply", "-f", "-", stdin=manifest())
        wait_until_running(plane, Processes(tmp_path))
        claims = json.loads(plane.must("get", "resourceclaims", "-o", "json"))["items"]
        given = [
            (result["pool"], result["device"])
            for claim in claims
            for result in claim["status"]["allocation"]["devices"]["results"]
        ]

    assert len(set(given)) == PODS
