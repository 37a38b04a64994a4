"""
The DRA test of the original, in its own words: two workers with 8 mock GPUs each, a pod with one, a
pod with two, and a gang of three that needs all three.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.command import documents
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options
from tests.scheduler.real_scheduler import start_scheduler

if TYPE_CHECKING:
    from tests.realcluster.cluster import Cluster
    from tests.realcluster.fixtures import StartCluster

    from dryrack.kinds.raw import Raw


NAMESPACE = "dra-gpu-test"
WORKERS = Path(__file__).parent / "dra_gpu_workers.yaml"
PODS = ("single-gpu-pod", "dual-gpu-pod", *(f"gang-gpu-pod-{number}" for number in range(3)))


@pytest.mark.real
@pytest.mark.timeout(300)
def test_all_pods_run_on_a_real_cluster_beside_kube_scheduler(start_cluster: StartCluster) -> None:
    """The printed permissions suffice for kubenexus-scheduler; two of three reserve nothing."""
    cluster = start_cluster(Options(), Parts(kwok=True))
    start_scheduler(cluster, "--name", "kubenexus-scheduler")
    _apply(cluster, *yaml.safe_load_all(WORKERS.read_text()))
    files = ("single-gpu/pod.yaml", "dual-gpu/pod.yaml", "gang-gpu/first-two.yaml")
    others = [each for file in files for each in documents(file)]
    [last] = documents("gang-gpu/third.yaml")
    assert last["metadata"]["name"] == "gang-gpu-pod-2"

    _apply(cluster, *others)
    _wait(cluster, "jsonpath={.status.phase}=Running", "single-gpu-pod", "dual-gpu-pod")
    _wait(cluster, "condition=PodScheduled=False", "gang-gpu-pod-0", "gang-gpu-pod-1")
    told = _field(cluster, "gang-gpu-pod-0", "{.status.conditions[0].message}")
    assert told.startswith(f"pod group {NAMESPACE}/gpu-gang has 2 pods, needs at least 3")
    assert len(_devices(cluster)) == 3

    _apply(cluster, last)
    _wait(cluster, "jsonpath={.status.phase}=Running", *PODS)

    devices = _devices(cluster)
    assert len(devices) == len(set(devices)) == 6
    assert _schedulers(cluster) == {"kubenexus-scheduler"}
    assert "forbidden" not in cluster.processes.log("schedule").read_text()


def _apply(cluster: Cluster, *objects: Raw) -> None:
    bundle = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    done = cluster.plane.kubectl("apply", "-f", "-", stdin=bundle)
    assert done.returncode == 0, done.stderr


def _wait(cluster: Cluster, goal: str, *names: str) -> None:
    pods = [f"pod/{name}" for name in names]
    done = cluster.plane.kubectl("wait", "-n", NAMESPACE, f"--for={goal}", "--timeout=60s", *pods)
    said = cluster.plane.kubectl("describe", "pods", "-n", NAMESPACE).stdout
    assert done.returncode == 0, said + cluster.processes.log("schedule").read_text()


def _field(cluster: Cluster, pod: str, path: str) -> str:
    asked = ("pod", pod, "-n", NAMESPACE, "-o", f"jsonpath={path}")
    return cluster.plane.kubectl("get", *asked).stdout


def _devices(cluster: Cluster) -> list[str]:
    """Return the pool and the device of every result of every claim."""
    result = "{.pool}/{.device}"
    path = f"jsonpath={{range .items[*].status.allocation.devices.results[*]}}{result} {{end}}"
    return cluster.plane.kubectl(
        "get", "resourceclaims", "-n", NAMESPACE, "-o", path
    ).stdout.split()


def _schedulers(cluster: Cluster) -> set[str]:
    """Return the schedulers that reported that pods were scheduled."""
    chosen = ("--field-selector", "reason=Scheduled", "-o", "jsonpath={.items[*].source.component}")
    return set(cluster.plane.kubectl("get", "events", "-n", NAMESPACE, *chosen).stdout.split())
