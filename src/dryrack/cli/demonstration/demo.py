"""
`dryrack demo`: the commands on example files, as somebody would type them, and checked.

Every act prints the files it is about, the command, and what the command says; then it compares
that with what must be so. The demo fails if the product does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.cli.demonstration.scene_runner import CLUSTER, play, show, tell
from dryrack.cli.demonstration.scenes import EXAMPLES, load_scenes
from dryrack.cli.files import UsageError
from dryrack.cli.output import paint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.cli.demonstration.scenes import Scene


@dataclass(frozen=True, slots=True)
class Act:
    """One command and what must come of it."""

    title: str
    shown: tuple[str, ...]
    command: str
    exit_code: int
    said: tuple[str, ...]


ACTS = (
    Act(
        "Two nodes with H100s that do not exist, and two who want some",
        ("fleet.yaml", "training.yaml"),
        "allocate -f fleet.yaml -f training.yaml",
        0,
        (
            "default/trainer-gpus     rack-1   gpus      gpu.nvidia.com/rack-1/gpu-0",
            "default/three-anywhere   rack-2   gpus      gpu.nvidia.com/rack-2/gpu-2",
        ),
    ),
    Act(
        "A claim that does not fit, and why",
        ("greedy.yaml",),
        "explain claim four-gpus --node rack-2 -f fleet.yaml -f greedy.yaml",
        1,
        (
            "wants 4 devices, and 3 of 4 can be had",
            "remove the taint example.com/xid:NoSchedule from gpu.nvidia.com/rack-2/gpu-3",
        ),
    ),
    Act(
        "What a cluster would refuse, or take and never schedule",
        ("mistakes.yaml",),
        "lint mistakes.yaml",
        1,
        ("write 'example.com.gpu'", "write 'compute_capability'", "has 1 of 2 slices"),
    ),
)


# The acts that need no control plane, as one scene.
FILES = "files"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Where to play, as it was asked for."""

    keep: bool = False
    kubeconfig: str = ""
    context: str = ""
    without: str = ""

    @property
    def is_visit(self) -> bool:
        """Whether it is on somebody's cluster, and not on control planes of the demo's own."""
        return bool(self.kubeconfig or self.context)


def run(names: Sequence[str], wish: Wish) -> bool:
    """Plays the scenes of these names, or all; whether every one went as it must."""
    if wish.without and not wish.is_visit:
        raise UsageError("--without: only with --kubeconfig or --context")
    known = {scene.name: scene for scene in load_scenes()}
    unknown = [name for name in names if name not in (FILES, *known)]
    if unknown:
        raise UsageError(f"{unknown[0]!r}: no such scene; there are {', '.join((FILES, *known))}")
    failures: list[str] = []
    for name in names or (FILES, *known):
        failures += _play_files() if name == FILES else _play_scene(known[name], wish)
    for failure in failures:
        tell(paint(f"not as it must be: {failure}", "bold red"))
    if not failures:
        tell(paint("all answers are as they must be", "bold green"))
        tell(f"the files are in {EXAMPLES}")
    return not failures


def _play_files() -> list[str]:
    return [failure for act in ACTS for failure in _play(act)]


def _play_scene(scene: Scene, wish: Wish) -> list[str]:
    tell(paint(f"\n== {scene.title}\n", "bold"))
    found = _play_there(scene, wish) if wish.is_visit else play(scene, keep=wish.keep)
    failures = [f"{scene.name}: {what}" for what in found]
    if wish.keep and not wish.is_visit:
        tell(f"the cluster stays; try: dryrack kubeconfig --name {CLUSTER} > demo.kubeconfig")
        tell("  kubectl --kubeconfig demo.kubeconfig get pods,resourceclaims -o wide")
        tell(f"and end it with: dryrack down --name {CLUSTER}")
    return failures


def _play_there(scene: Scene, wish: Wish) -> list[str]:
    """On the cluster that is named."""
    from dryrack.cli.demonstration import scene_on_cluster
    from dryrack.cluster import connection_of

    without = [name.strip() for name in wish.without.split(",") if name.strip()]
    unknown = [name for name in without if name not in scene_on_cluster.ENGINES]
    if unknown:
        raise UsageError(f"--without {unknown[0]}: there are {', '.join(scene_on_cluster.ENGINES)}")
    engines = [name for name in scene_on_cluster.ENGINES if name not in without]
    connection = connection_of(os.environ, kubeconfig=wish.kubeconfig, context=wish.context)
    return scene_on_cluster.play_on(connection, scene, engines)


def _play(act: Act) -> list[str]:
    tell(paint(f"\n== {act.title}\n", "bold"))
    for name in act.shown:
        show(name)
    tell(paint(f"$ dryrack {act.command}", "bold cyan"))
    done = subprocess.run(
        [sys.executable, "-m", "dryrack", *act.command.split()],
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    tell(done.stdout + done.stderr)
    wrong = [f"{act.title}: no word of {words!r}" for words in act.said if words not in done.stdout]
    if done.returncode != act.exit_code:
        wrong.append(f"{act.title}: exit {done.returncode}, not {act.exit_code}")
    return wrong
