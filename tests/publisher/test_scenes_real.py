"""
The scenes of the demo on a real cluster: KWOK makes the nodes live and runs the pods, the real
kube-scheduler binds them, and `dryrack publish` makes the slices.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.publisher.real_publisher import ALONE, start_publisher
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options

from dryrack.cli.scenes import Scene, load_scenes
from dryrack.cli.stage import Stage
from dryrack.client.client import Client
from dryrack.client.https import connected
from dryrack.client.kubeconfig import load
from dryrack.cluster.ports import SystemClock

if TYPE_CHECKING:
    from pathlib import Path

    from tests.realcluster.fixtures import StartCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SCENES = {scene.name: scene for scene in load_scenes() if scene.name != "h100"}


@pytest.mark.parametrize("name", sorted(SCENES))
def test_a_scene_goes_the_same_way_on_a_real_cluster(
    name: str, start_cluster: StartCluster
) -> None:
    """What the embedded plane shows, Kubernetes, its scheduler and KWOK show too."""
    cluster = start_cluster(Options(), Parts(kwok=True))
    start_publisher(cluster, ALONE, *SCENES[name].up)
    assert asyncio.run(_played(cluster.plane.kubeconfig, SCENES[name])) == []


async def _played(kubeconfig: Path, scene: Scene) -> list[str]:
    async with connected(load([kubeconfig], SystemClock())) as transport:
        return await Stage(Client(transport, agent="dryrack-test")).play(scene)
