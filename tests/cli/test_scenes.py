"""Scenes of the demo: what they expect, and that every one of them can be played."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dryrack.cli.board import Sight, rows, slice_rows
from dryrack.cli.scenes import EXAMPLES, Expectation, Scene, load_scenes
from dryrack.cluster.rights import MANIFESTS

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
