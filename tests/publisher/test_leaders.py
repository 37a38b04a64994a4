"""Several publishers: the leader is killed without warning, and another one goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.publisher.real_publisher import CONFIG, start_publisher, until
from tests.realcluster.controlplane import Options

if TYPE_CHECKING:
    from tests.realcluster.cluster import Cluster
    from tests.realcluster.fixtures import StartCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

NODE = """\
apiVersion: v1
kind: Node
metadata:
  name: NAME
  annotations: {kwok.x-k8s.io/node: fake}
  labels: {kubernetes.io/hostname: NAME}
"""


def test_the_second_publisher_goes_on_when_the_first_is_killed(
    start_cluster: StartCluster,
) -> None:
    """Only one instance publishes; the other one takes over an expired lease."""
    cluster = start_cluster(Options(with_scheduler=False))
    _apply(cluster, CONFIG)
    first = start_publisher(cluster, name="first")
    until(lambda: _holder(cluster) != "")
    leader = _holder(cluster)
    start_publisher(cluster, name="second")
    _apply(cluster, NODE.replace("NAME", "node-1"))
    until(lambda: "node-1" in _published(cluster))
    assert _holder(cluster) == leader

    cluster.processes.kill(first)
    _apply(cluster, NODE.replace("NAME", "node-2"))
    until(lambda: "node-2" in _published(cluster))
    assert _holder(cluster) not in ("", leader)
    assert sorted(_published(cluster)) == ["node-1", "node-2"]


def test_each_shard_has_a_leader_of_its_own(start_cluster: StartCluster) -> None:
    """Two shards publish together; when one leader is killed, its second replica takes over."""
    cluster = start_cluster(Options(with_scheduler=False))
    _apply(cluster, CONFIG)
    leaders = [
        start_publisher(cluster, "--shard", f"{index}/2", name=f"shard-{index}")
        for index in range(2)
    ]
    until(lambda: len(_holder(cluster).split()) == 2)
    start_publisher(cluster, "--shard", "1/2", name="second-replica")
    # Their shards of two are 1, 0, 1, and 1.
    for number in range(3):
        _apply(cluster, NODE.replace("NAME", f"node-{number}"))
    until(lambda: sorted(_published(cluster)) == ["node-0", "node-1", "node-2"])

    cluster.processes.kill(leaders[1])
    _apply(cluster, NODE.replace("NAME", "node-3"))
    until(lambda: sorted(_published(cluster)) == [f"node-{number}" for number in range(4)])
    leases = cluster.plane.kubectl("get", "leases", "-n", "karpenter", "-o", "name").stdout
    names = [f"lease.coordination.k8s.io/dryrack-publisher-{index}" for index in range(2)]
    assert leases.split() == names


def _holder(cluster: Cluster) -> str:
    path = "jsonpath={.items[*].spec.holderIdentity}"
    return cluster.plane.kubectl("get", "leases", "-n", "karpenter", "-o", path).stdout


def _published(cluster: Cluster) -> list[str]:
    path = "jsonpath={.items[*].spec.nodeName}"
    return cluster.plane.kubectl("get", "resourceslices", "-o", path).stdout.split()


def _apply(cluster: Cluster, manifest: str) -> None:
    done = cluster.plane.kubectl("apply", "-f", "-", stdin=manifest)
    assert done.returncode == 0, done.stderr
