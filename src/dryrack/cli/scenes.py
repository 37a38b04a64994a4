"""
Scenes of the demo that need a control plane: each is a data file, played and checked.

A scene names the files of objects to create, and what must come of them: which pods run where,
and with which devices. It fails if that does not come about.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from dryrack.cli.board import COLUMNS, Sight, devices_of, rows, running_on
from dryrack.cli.files import ContentError
from dryrack.cli.output import print_table, say, stdout_console, table_of
from dryrack.client.client import Client
from dryrack.client.endpoints import CLAIMS, NODES, PODS, SLICES
from dryrack.client.https import connected
from dryrack.client.kubeconfig import load
from dryrack.cluster.ports import SystemClock
from dryrack.cluster.state import state_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SCENES = Path(__file__).parent / "demos"
EXAMPLES = Path(__file__).parent / "examples"
CLUSTER = "demo"
# A pod with a claim runs within a second; a machine that does much else may take its time.
SECONDS_MAX = 60.0
_LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Scene:
    """One data file."""

    name: str
    title: str
    objects: tuple[str, ...]
    running: Mapping[str, str]
    given: Mapping[str, list[str]]

    def lacking(self, sight: Sight) -> list[str]:
        """What must be so and is not, each as a sentence."""
        where, devices = running_on(sight), devices_of(sight)
        wrong = [
            f"pod {pod} runs on {where.get(pod, 'no node')}, not on {node}"
            for pod, node in self.running.items()
            if where.get(pod) != node
        ]
        return wrong + [
            f"pod {pod} has {', '.join(devices.get(pod, ['nothing']))}, not {', '.join(wanted)}"
            for pod, wanted in self.given.items()
            if devices.get(pod) != wanted
        ]


def load_scenes() -> Iterator[Scene]:
    for path in sorted(SCENES.glob("*.yaml")):
        raw: dict[str, Any] = yaml.safe_load(path.read_text())
        yield Scene(
            path.stem, raw["title"], tuple(raw["objects"]), raw["running"], raw.get("given", {})
        )


def play(scene: Scene, *, keep: bool) -> list[str]:
    """Plays a scene on a control plane of its own; what went wrong."""
    objects = "\n---\n".join((EXAMPLES / name).read_text() for name in scene.objects)
    _dryrack("up", "--detach", "--config", "-", stdin=objects)
    try:
        return asyncio.run(_played(scene))
    finally:
        if not keep:
            _dryrack("down")


def _dryrack(verb: str, *options: str, stdin: str = "") -> None:
    command = [sys.executable, "-m", "dryrack", verb, "--name", CLUSTER, *options]
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )
    say(done.stderr.strip())
    if done.returncode != 0:
        raise ContentError(f"dryrack {verb} --name {CLUSTER} did not succeed; its words are above")


async def _played(scene: Scene) -> list[str]:
    connection = load([state_of(CLUSTER).kubeconfig], SystemClock())
    async with connected(connection) as transport:
        return await _watched(scene, Client(transport, agent="dryrack-demo"))


async def _watched(scene: Scene, client: Client) -> list[str]:
    """Shows the cluster until all is as it must be, or too much time has passed."""
    from rich.live import Live

    deadline = time.monotonic() + SECONDS_MAX
    console = stdout_console()
    with Live(console=console, transient=True, auto_refresh=False) as live:
        while True:
            sight = await _look(client)
            if console.is_terminal:
                live.update(table_of(COLUMNS, rows(sight)), refresh=True)
            lacking = scene.lacking(sight)
            if not lacking or time.monotonic() > deadline:
                break
            await asyncio.sleep(_LOOK_SECONDS)
    print_table(COLUMNS, rows(sight))
    return lacking


async def _look(client: Client) -> Sight:
    listings = [await client.list(endpoint) for endpoint in (NODES, SLICES, CLAIMS, PODS)]
    nodes, slices, claims, pods = (listing.items for listing in listings)
    return Sight(nodes, slices, claims, pods)
