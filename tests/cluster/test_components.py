"""
The strictest clients there are: a real kube-scheduler and a real kube-controller-manager.

They take the place of our own engines, are pointed at `dryrack up` instead of a real API server,
speak protobuf as they are used to, and run a hundred pods with a claim each.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.command import dryrack
from tests.realcluster import programs
from tests.realcluster.releases import RELEASE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

PODS = 100
NODES = ("node-1", "node-2")
OURS = (
    *("scheduler", "claims", "garbage-collector", "namespaces", "serviceaccounts"),
    *("nodes", "taint-eviction", "endpoints", "endpointslices"),
    *(
        "deployments",
        "replicasets",
        "replicationcontrollers",
        "daemonsets",
        "statefulsets",
        "jobs",
        "cronjobs",
        "volumes",
    ),
)
_RELEASE = RELEASE
_LIMITS = ("--kube-api-qps=2000", "--kube-api-burst=4000")


@pytest.fixture
def kubeconfig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cluster whose only engine of ours is the virtual kubelet."""
    with tempfile.TemporaryDirectory() as home:
        monkeypatch.setenv("DRYRACK_HOME", home)
        release = ("--release", _RELEASE.minor)
        up = dryrack("up", "--detach", "--nodes", "2", *release, "--without", ",".join(OURS))
        assert up.returncode == 0, up.stderr
        yield Path(home) / "default" / "kubeconfig"
        assert dryrack("down").returncode == 0


@contextmanager
def component(name: str, kubeconfig: Path) -> Iterator[None]:
    """One of Kubernetes' own programs, for the length of a block."""
    program = programs.kubernetes(name, _RELEASE)
    options = ("--secure-port=0", "--leader-elect=false", *_LIMITS)
    command = [str(program), f"--kubeconfig={kubeconfig}", *options]
    log = kubeconfig.parent / f"{name}.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=output) as running,
    ):
        try:
            yield
            assert running.poll() is None, f"{name} ended: {log.read_text()[-2000:]}"
            # client-go reports in these words that a kind cannot be listed or watched as it asks.
            refused = [line for line in log.read_text().splitlines() if "Failed to watch" in line]
            assert not refused, "\n".join(refused)
        finally:
            running.kill()


def kubectl(kubeconfig: Path, *words: str, stdin: str = "") -> str:
    program = programs.kubernetes("kubectl", _RELEASE)
    done = subprocess.run(
        [str(program), f"--kubeconfig={kubeconfig}", *words],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def inventory() -> list[Raw]:
    """A class, a template, and enough devices on each node for half of the pods."""
    group = "resource.k8s.io/v1"
    slices = [
        {
            "apiVersion": group,
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-gpus"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": f"gpu-{number}"} for number in range(PODS // len(NODES))],
            },
        }
        for node in NODES
    ]
    expression = "device.driver == 'gpu.example.com'"
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    return [
        *slices,
        {
            "apiVersion": group,
            "kind": "DeviceClass",
            "metadata": {"name": "gpu"},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        },
        {
            "apiVersion": group,
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "one-gpu"},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        },
    ]


def workload() -> Raw:
    claim = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}
    container = {"name": "c", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}
    labels = {"app": "training"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "training"},
        "spec": {
            "replicas": PODS,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "resourceClaims": [claim]},
            },
        },
    }


def test_a_hundred_pods_with_claims_run_by_kubernetes_own_components(kubeconfig: Path) -> None:
    """All pods run, each with a device of its own; deleting the workload frees every device."""
    objects = "\n---\n".join(json.dumps(each) for each in (*inventory(), workload()))
    with ExitStack() as stack:
        for name in ("kube-controller-manager", "kube-scheduler"):
            stack.enter_context(component(name, kubeconfig))
        kubectl(kubeconfig, "create", "-f", "-", stdin=objects)
        kubectl(kubeconfig, "rollout", "status", "deployment/training", "--timeout=120s")
        claims = json.loads(kubectl(kubeconfig, "get", "resourceclaims", "-o", "json"))["items"]
        devices = {
            (result["pool"], result["device"])
            for claim in claims
            for result in claim["status"]["allocation"]["devices"]["results"]
        }
        assert (len(claims), len(devices)) == (PODS, PODS)
        kubectl(
            kubeconfig, "delete", "deployment", "training", "--cascade=foreground", "--timeout=120s"
        )
        kubectl(kubeconfig, "wait", "--for=delete", "resourceclaims", "--all", "--timeout=120s")
