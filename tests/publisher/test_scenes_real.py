"""
The scenes of the demo where nothing but the publisher is ours: KWOK makes the nodes live and runs
the pods, the real kube-scheduler binds them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options

from dryrack.cli.demonstration.scene_on_cluster import play_on
from dryrack.cli.demonstration.scenes import load_scenes
from dryrack.client.kubeconfig import load
from dryrack.cluster.ports import SystemClock

if TYPE_CHECKING:
    from tests.realcluster.controlplane import ControlPlane
    from tests.realcluster.fixtures import StartModuleCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SCENES = {scene.name: scene for scene in load_scenes()}


@pytest.fixture(scope="module")
def kwok_plane(start_module_cluster: StartModuleCluster) -> ControlPlane:
    """A control plane whose nodes and pods are KWOK's."""
    return start_module_cluster(Options(), Parts(kwok=True)).plane


@pytest.mark.parametrize("name", sorted(SCENES))
def test_a_scene_goes_the_same_way_with_kwok(name: str, kwok_plane: ControlPlane) -> None:
    """KWOK makes the nodes, we make the slices, kube-scheduler binds, KWOK runs the pods."""
    connection = load([kwok_plane.kubeconfig], SystemClock())
    assert play_on(connection, SCENES[name], ("slices",)) == []
    left = kwok_plane.kubectl("get", "nodes,resourceslices,deviceclasses", "-o", "name").stdout
    assert left == ""
