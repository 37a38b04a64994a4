"""A node with a real kubelet has slices only with an option; deleted slices are restored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.publisher.real_publisher import ALONE, CONFIG, start_publisher, until
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options

if TYPE_CHECKING:
    from tests.realcluster.cluster import Cluster
    from tests.realcluster.fixtures import StartCluster
    from tests.realcluster.node import Node

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

KWOK_NODE = """\
apiVersion: v1
kind: Node
metadata:
  name: kwok-1
  annotations: {kwok.x-k8s.io/node: fake}
  labels: {kubernetes.io/hostname: kwok-1}
"""


def test_a_real_node_is_left_alone_unless_asked(start_cluster: StartCluster) -> None:
    """The kubelet deletes all slices of its node when it starts; asked for, they come back."""
    cluster = start_cluster(Options(), Parts(node=True))
    assert cluster.node is not None
    for manifest in (CONFIG, KWOK_NODE):
        assert cluster.plane.kubectl("apply", "-f", "-", stdin=manifest).returncode == 0
    reserved = start_publisher(cluster, ALONE, "--all-nodes")
    until(lambda: _slices(cluster, "kwok-1") != {})
    assert _slices(cluster, cluster.node.name) == {}

    # Two who want different things would undo each other's work.
    cluster.processes.kill(reserved)
    start_publisher(cluster, ALONE, "--all-nodes", "--real-nodes")
    until(lambda: _slices(cluster, _real(cluster).name) != {})
    before = _slices(cluster, cluster.node.name)
    _restart_kubelet(cluster.node)
    until(lambda: _is_back(before, _slices(cluster, _real(cluster).name)))


def _is_back(before: dict[str, str], now: dict[str, str]) -> bool:
    return now.keys() == before.keys() and not set(now.values()) & set(before.values())


def _real(cluster: Cluster) -> Node:
    assert cluster.node is not None
    return cluster.node


def _slices(cluster: Cluster, node: str) -> dict[str, str]:
    """The slices of a node: name and uid."""
    path = "jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}\n{end}"
    selector = f"--field-selector=spec.nodeName={node}"
    listed = cluster.plane.kubectl("get", "resourceslices", selector, "-o", path)
    assert listed.returncode == 0, listed.stderr
    return dict(line.split() for line in listed.stdout.splitlines())


def _restart_kubelet(node: Node) -> None:
    """Start the same command again."""
    kubelet = next(each for each in node.processes.running if each.name == "kubelet")
    command = Path(f"/proc/{kubelet.pid}/cmdline").read_text().split("\0")[:-1]
    node.processes.stop(kubelet)
    node.processes.start("kubelet", command)
