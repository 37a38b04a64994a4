"""
The packaged scenarios where nothing but the publisher and the plugin are ours: KWOK makes the nodes
live and runs the pods, the real kube-scheduler binds them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options

from dryrack.base.errors import ContentError
from dryrack.client.kubeconfig import load
from dryrack.cluster.ports import SystemClock
from dryrack.scenario import ClusterRun, load_packaged, packaged_names, run_on_cluster

if TYPE_CHECKING:
    from tests.realcluster.controlplane import ControlPlane
    from tests.realcluster.fixtures import StartModuleCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

# A fleet of a thousand nodes is for a plane of ours; faults need engines of ours.
NAMES = sorted(
    name
    for name in packaged_names()
    if name != "fleet" and not any(step.fail for step in load_packaged(name).scenario.steps)
)
# KWOK prepares nothing, and these look at what is prepared.
PREPARED = ("fake-4", "fake-5")


@pytest.fixture(scope="module")
def kwok_plane(start_module_cluster: StartModuleCluster) -> ControlPlane:
    """A control plane whose nodes and pods are KWOK's."""
    return start_module_cluster(Options(), Parts(kwok=True)).plane


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(PREPARED)))
def test_a_scenario_goes_the_same_way_with_kwok(name: str, kwok_plane: ControlPlane) -> None:
    """KWOK makes the nodes, we make the slices, kube-scheduler binds, KWOK runs the pods."""
    connection = load([kwok_plane.kubeconfig], SystemClock())
    how = ClusterRun(connection=connection, engines=("slices", "plugin"))
    assert run_on_cluster(load_packaged(name), how).failures == ()
    left = kwok_plane.kubectl("get", "nodes,resourceslices,deviceclasses", "-o", "name").stdout
    assert left == ""


@pytest.mark.parametrize("name", ["karpenter-gpu", "gang-gpu", *PREPARED])
def test_a_scenario_holds_where_nobody_runs_pods(name: str, real_plane: ControlPlane) -> None:
    """The scenario passes with Kubernetes' scheduler and controllers and our virtual kubelet."""
    how = ClusterRun(connection=load([real_plane.kubeconfig], SystemClock()))

    assert run_on_cluster(load_packaged(name), how).failures == ()


def test_a_scenario_does_not_touch_what_is_there(real_plane: ControlPlane) -> None:
    """A scenario that would change existing objects is refused."""
    theirs = "apiVersion: v1\nkind: Node\nmetadata: {name: kwok-f1}\n"
    assert real_plane.kubectl("apply", "-f", "-", stdin=theirs).returncode == 0
    how = ClusterRun(connection=load([real_plane.kubeconfig], SystemClock()))
    try:
        with pytest.raises(ContentError, match="Node/kwok-f1: already exists"):
            run_on_cluster(load_packaged("karpenter-fpga"), how)
        assert real_plane.kubectl("get", "namespace", "karpenter").returncode != 0
    finally:
        real_plane.kubectl("delete", "node", "kwok-f1")
