"""Scenes of the demo: what they expect, and that every one of them can be played."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from dryrack.base.errors import ContentError
from dryrack.cli.demonstration.device_table import Sight, rows, slice_rows
from dryrack.cli.demonstration.scene_on_cluster import ENGINES, play_on
from dryrack.cli.demonstration.scene_runner import Stage
from dryrack.cli.demonstration.scenes import EXAMPLES, Expectation, Scene, load_scenes
from dryrack.client.kubeconfig import load
from dryrack.cluster.embedded import embedded
from dryrack.cluster.engines import families, with_catalogue
from dryrack.cluster.ports import SystemClock
from dryrack.cluster.rights import MANIFESTS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.realcluster.controlplane import ControlPlane

Raw = dict[str, Any]

SCENES = {scene.name: scene for scene in load_scenes()}


def slice_of(node: str, *devices: str, **where: Any) -> Raw:
    spec: Raw = {
        "driver": "gpu.example.com",
        "pool": {"name": node or "shared", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": name} for name in devices],
        **(where or {"nodeName": node}),
    }
    return {"metadata": {"name": f"{node}-slice"}, "spec": spec}


def pod(name: str, node: str = "") -> Raw:
    status = {"phase": "Running" if node else "Pending"}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": node},
        "status": status,
    }


def claim(user: str, *devices: str) -> Raw:
    results = [
        dict(zip(("driver", "pool", "device"), device.split("/"), strict=True))
        for device in devices
    ]
    return {
        "metadata": {"name": f"{user}-claim", "namespace": "default"},
        "status": {
            "reservedFor": [{"name": user}],
            "allocation": {"devices": {"results": results}},
        },
    }


def event(message: str) -> Raw:
    return {"involvedObject": {"kind": "ConfigMap", "name": "c"}, "message": message}


SIGHT = Sight(
    nodes=[{"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}}],
    slices=[
        slice_of("n1", "gpu-0", "gpu-1"),
        slice_of("", "disk-0", allNodes=True),
    ],
    claims=[claim("a", "gpu.example.com/n1/gpu-0")],
    pods=[pod("a", "n1"), pod("b")],
    events=[event("config.yaml:3: wrong")],
)

AS_IT_IS = {
    "devices": {
        "n1": ["gpu.example.com/n1/gpu-0", "gpu.example.com/n1/gpu-1"],
        "n2": [],
        "all nodes": ["gpu.example.com/shared/disk-0"],
    },
    "counts": {"n1": {"gpu.example.com": 2}},
    "slices": {"n1": ["n1-*"]},
    "running": {"default/a": "n1"},
    "waiting": ("default/b",),
    "given": {"default/a": ["gpu.example.com/*/gpu-0"], "default/b": []},
    "told": ("ConfigMap c: config.yaml:3",),
}


def test_what_is_as_it_must_be_lacks_nothing() -> None:
    """Names may be patterns; what is not mentioned does not matter."""
    assert msgspec.convert(AS_IT_IS, Expectation).lacking(SIGHT) == []


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"ready": ["n1"]}, "node n1 is not ready"),
        ({"devices": {"n2": ["x/y/z"]}}, "node n2 has nothing, not x/y/z"),
        ({"devices": {"all nodes": []}}, "node all nodes has gpu.example.com/shared/disk-0, not"),
        ({"slices": {"n1": ["other-*"]}}, "node n1 has the slices n1-slice, not other-*"),
        ({"counts": {"n1": {"gpu.example.com": 3}}}, "has 2 of gpu.example.com, not 3 of"),
        ({"running": {"default/b": "*"}}, "pod default/b runs on no node, not on *"),
        ({"running": {"default/a": "n2"}}, "pod default/a runs on n1, not on n2"),
        ({"waiting": ["default/a"]}, "pod default/a runs on n1, and must wait"),
        ({"given": {"default/a": []}}, "pod default/a has gpu.example.com/n1/gpu-0, not nothing"),
        ({"given": {"default/a": ["*", "*"]}}, "pod default/a has gpu.example.com/n1/gpu-0, not"),
        ({"told": ["right"]}, "no event says 'right'"),
    ],
)
def test_what_is_not_as_it_must_be_is_told(wrong: Raw, complaint: str) -> None:
    """Each thing that differs, with what is there and what must be."""
    [told] = msgspec.convert(wrong, Expectation).lacking(SIGHT)

    assert complaint in told


def test_the_board_shows_devices_of_nodes_and_of_the_cluster() -> None:
    """A line for each device and for each node without; slices beside them."""
    assert rows(SIGHT) == [
        ("n1", "NotReady", "gpu-0", "default/a-claim", "default/a Running"),
        ("n1", "NotReady", "gpu-1", "-", "-"),
        ("n2", "NotReady", "-", "-", "-"),
        ("all nodes", "-", "disk-0", "-", "-"),
    ]
    assert slice_rows(SIGHT)[1] == (
        *("-slice", "all nodes", "gpu.example.com", "shared", "1", "1"),
    )


def test_a_long_row_of_free_devices_is_cut() -> None:
    """Those in use are all shown."""
    devices = [f"gpu-{number:02}" for number in range(20)]
    held = claim("a", "gpu.example.com/n1/gpu-19")
    sight = Sight(SIGHT.nodes[:1], [slice_of("n1", *devices)], [held], [pod("a", "n1")])
    shown = [row[2] for row in rows(sight)]

    assert shown == [*devices[:8], "gpu-19", "and 11 more"]


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_every_file_of_a_scene_is_there(scene: Scene) -> None:
    """Whatever a step applies, deletes or shows."""
    named = {name for step in scene.steps for name in (*step.apply, *step.delete, *step.show)}
    there = {path.name for folder in (EXAMPLES, MANIFESTS) for path in folder.glob("*.yaml")}

    assert named <= there
    assert all(step.expect != Expectation() for step in scene.steps)


def test_every_example_is_used() -> None:
    """By a scene, or by the acts on files."""
    used = {name for scene in SCENES.values() for step in scene.steps for name in step.apply}
    files = {"greedy.yaml", "mistakes.yaml"}

    assert {path.name for path in EXAMPLES.glob("*.yaml")} - used == files


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_every_scene_goes_as_it_must(scene: Scene) -> None:
    """On a control plane in this process: the documents' examples, as they are written."""

    async def played() -> list[str]:
        engines = families(with_catalogue if "--catalogue" in scene.up else None)
        async with embedded(engines=engines) as cluster:
            return await Stage(cluster.client).play(scene)

    assert asyncio.run(played()) == []


def test_a_scene_that_does_not_go_as_it_must_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the publisher nothing comes of it; the step and what is lacking are named."""
    monkeypatch.setattr("dryrack.cli.demonstration.scene_runner.SECONDS_MAX", 0.2)

    async def played() -> list[str]:
        async with embedded(without=["slices"]) as cluster:
            return await Stage(cluster.client).play(SCENES["karpenter-multi"])

    told = asyncio.run(played())

    assert "Both mappings publish" in told[0]
    assert "node kwok-multi has nothing, not karpenter.sh.dra-kwok-driver/kwok-multi" in told[0]


@pytest.mark.real
@pytest.mark.timeout(300)
def test_a_scene_goes_as_it_must_where_nobody_runs_pods(real_plane: ControlPlane) -> None:
    """With Kubernetes' own scheduler and controllers, and pods that our virtual kubelet runs."""
    connection = load([real_plane.kubeconfig], SystemClock())

    assert play_on(connection, SCENES["karpenter-gpu"], ENGINES) == []


@pytest.mark.real
@pytest.mark.timeout(300)
def test_a_scene_does_not_touch_what_is_there(real_plane: ControlPlane) -> None:
    """A scene that would change somebody's object is not begun."""
    theirs = "apiVersion: v1\nkind: Node\nmetadata: {name: kwok-f1}\n"
    assert real_plane.kubectl("apply", "-f", "-", stdin=theirs).returncode == 0
    connection = load([real_plane.kubeconfig], SystemClock())
    try:
        with pytest.raises(ContentError, match="Node kwok-f1: there already"):
            play_on(connection, SCENES["karpenter-fpga"], ENGINES)
        assert real_plane.kubectl("get", "namespace", "karpenter").returncode != 0
    finally:
        real_plane.kubectl("delete", "node", "kwok-f1")


def test_a_demo_that_nobody_watches_leaves_nothing_running(tmp_path: Path) -> None:
    """`dryrack demo | head` ends the control plane that it began."""
    environment = {**os.environ, "DRYRACK_HOME": str(tmp_path)}
    script = f"{sys.executable} -m dryrack demo h100 | head -12 >/dev/null"
    subprocess.run(["bash", "-c", f"set -o pipefail; {script}"], env=environment, check=False)
    status = [sys.executable, "-m", "dryrack", "status"]
    done = subprocess.run(status, env=environment, capture_output=True, text=True, check=False)

    assert "no clusters" in done.stderr
