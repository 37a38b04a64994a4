"""
The DRA test of the original, in its own words: two workers with 8 mock GPUs each, a pod with one, a
pod with two, and a gang of three that needs all three.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cli.command import EXAMPLES
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options
from tests.scheduler.real_scheduler import start_scheduler

if TYPE_CHECKING:
    from tests.realcluster.cluster import Cluster
    from tests.realcluster.fixtures import StartCluster

NAMESPACE = "dra-gpu-test"
PODS = ("single-gpu-pod", "dual-gpu-pod", *(f"gang-gpu-pod-{number}" for number in range(3)))


@pytest.mark.real
@pytest.mark.timeout(300)
def test_all_pods_run_on_a_real_cluster_beside_kube_scheduler(start_cluster: StartCluster) -> None:
    """With the rights that are printed, and no other, as kubenexus-scheduler."""
    cluster = start_cluster(Options(), Parts(kwok=True))
    start_scheduler(cluster, "--name", "kubenexus-scheduler")
    _apply(cluster, "dra-gpu-test-workers.yaml")
    _apply(cluster, "dra-gpu-test.yaml")

    _wait_until_running(cluster)

    devices = _devices(cluster)
    assert len(devices) == len(set(devices)) == 6
    assert _schedulers(cluster) == {"kubenexus-scheduler"}
    assert "forbidden" not in cluster.processes.log("schedule").read_text()


def _apply(cluster: Cluster, example: str) -> None:
    done = cluster.plane.kubectl("apply", "-f", str(EXAMPLES / example))
    assert done.returncode == 0, done.stderr


def _wait_until_running(cluster: Cluster) -> None:
    pods = [f"pod/{name}" for name in PODS]
    goal = ("--for=jsonpath={.status.phase}=Running", "--timeout=60s")
    done = cluster.plane.kubectl("wait", "-n", NAMESPACE, *goal, *pods)
    said = cluster.plane.kubectl("describe", "pods", "-n", NAMESPACE).stdout
    assert done.returncode == 0, said + cluster.processes.log("schedule").read_text()


def _devices(cluster: Cluster) -> list[str]:
    """Who has what: pool and device of every result of every claim."""
    result = "{.pool}/{.device}"
    path = f"jsonpath={{range .items[*].status.allocation.devices.results[*]}}{result} {{end}}"
    return cluster.plane.kubectl(
        "get", "resourceclaims", "-n", NAMESPACE, "-o", path
    ).stdout.split()


def _schedulers(cluster: Cluster) -> set[str]:
    """Who says that pods were scheduled."""
    chosen = ("--field-selector", "reason=Scheduled", "-o", "jsonpath={.items[*].source.component}")
    return set(cluster.plane.kubectl("get", "events", "-n", NAMESPACE, *chosen).stdout.split())
