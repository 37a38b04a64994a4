"""
Where scenes are played, step by step; and the control plane that a scene has for itself.

Objects go there as `kubectl apply --server-side` would bring them.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.base.errors import ContentError, DryrackError
from dryrack.cli.demonstration.device_table import (
    COLUMNS,
    SLICE_COLUMNS,
    Sight,
    events_of,
    rows,
    slice_rows,
)
from dryrack.cli.demonstration.scenes import EXAMPLES
from dryrack.cli.output import paint, print_line, print_table, say, stdout_console, table_of
from dryrack.client.client import Client
from dryrack.client.discovery import discover
from dryrack.client.endpoints import CLAIMS, EVENTS, NODES, PODS, SLICES
from dryrack.client.https import connected
from dryrack.client.informer import Name, name_of
from dryrack.client.kubeconfig import load
from dryrack.cluster import SystemClock
from dryrack.cluster.process import state_of
from dryrack.cluster.rights import MANIFESTS
from dryrack.kinds.documents import read

if TYPE_CHECKING:
    from dryrack.cli.demonstration.scenes import Scene, Step
    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw

CLUSTER = "demo"
# A pod with a claim runs within a second; a machine that does much else may take its time.
SECONDS_MAX = 60.0
_LOOK_SECONDS = 0.1
_COMMAND = (sys.executable, "-m", "dryrack")
# Longer files are cut: they repeat themselves.
_LINES_SHOWN = 45
# The end of a log, where the reason is.
_WORDS_MAX = 2000


def play(scene: Scene, *, keep: bool) -> list[str]:
    """Plays a scene on a control plane of its own; what went wrong."""
    _dryrack("up", "--detach", *scene.up)
    try:
        return asyncio.run(_played(scene))
    except DryrackError as error:
        return [str(error), *_last_words()]
    finally:
        if not keep:
            _end()


def _end() -> None:
    try:
        _dryrack("down")
    except BrokenPipeError:
        _end_unheard()
        raise


def _end_unheard() -> None:
    """Nobody listens any more, and the control plane would stay for good."""
    subprocess.run([*_COMMAND, "down", "--name", CLUSTER], capture_output=True, check=False)


def _last_words() -> list[str]:
    """What a control plane that ended by itself had to say."""
    state = state_of(CLUSTER)
    if state.running() is not None or not state.log.exists():
        return []
    return ["the control plane has ended: " + state.log.read_text().strip()[-_WORDS_MAX:]]


def _dryrack(verb: str, *options: str) -> None:
    words = [verb, "--name", CLUSTER, *options]
    say(f"$ dryrack {' '.join(words)}")
    command = [*_COMMAND, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    try:
        # What to try next is for people who start it themselves.
        say(done.stderr.partition("\n\n")[0].strip())
    except BrokenPipeError:
        if done.returncode == 0:
            _end_unheard()
        raise
    if done.returncode != 0:
        raise ContentError(f"dryrack {verb} --name {CLUSTER} did not succeed; its words are above")


async def _played(scene: Scene) -> list[str]:
    connection = load([state_of(CLUSTER).kubeconfig], SystemClock())
    async with connected(connection) as transport:
        stage = Stage(Client(transport, agent="dryrack-demo"))
        return await stage.play(scene)


@dataclass(frozen=True, slots=True)
class Actors:
    """The nodes and pods of a scene, where there are others beside them."""

    nodes: frozenset[str]
    pods: frozenset[Name]

    @classmethod
    def of(cls, scene: Scene) -> Actors:
        everything = [obj for name in files_of(scene) for obj in objects_of(name)]
        nodes = frozenset(name_of(obj).name for obj in everything if obj["kind"] == "Node")
        return cls(nodes, frozenset(name_of(obj) for obj in everything if obj["kind"] == "Pod"))

    def alone(self, sight: Sight) -> Sight:
        """What is seen of them; the rest of the cluster is none of the scene's."""
        slices = [each for each in sight.slices if self._reach(each["spec"])]
        return Sight(
            [node for node in sight.nodes if name_of(node).name in self.nodes],
            slices,
            [claim for claim in sight.claims if self._use(claim)],
            [pod for pod in sight.pods if name_of(pod) in self.pods],
            sight.events,
        )

    def _reach(self, spec: Raw) -> bool:
        return spec.get("nodeName") in self.nodes or "nodeName" not in spec

    def _use(self, claim: Raw) -> bool:
        users = (claim.get("status") or {}).get("reservedFor") or ()
        namespace = name_of(claim).namespace
        return any(Name(namespace, user["name"]) in self.pods for user in users)


def files_of(scene: Scene) -> list[str]:
    """All files whose objects a scene brings, in the order in which it does."""
    return list(dict.fromkeys(name for step in scene.steps for name in step.apply))


class Stage:
    """A cluster on which scenes are played."""

    def __init__(self, client: Client, actors: Actors | None = None) -> None:
        self._client = client
        self._actors = actors
        self._endpoints: dict[tuple[str, str], Endpoint] = {}

    async def play(self, scene: Scene) -> list[str]:
        """All steps, up to the first that does not come to what it must."""
        for step in scene.steps:
            lacking = await self._step(step)
            if lacking:
                return [f"{step.title}: {each}" for each in lacking]
        return []

    async def _step(self, step: Step) -> list[str]:
        tell(paint(f"-- {step.title}", "bold"))
        for name in step.show:
            show(name)
        for name in step.apply:
            tell(paint(f"$ kubectl apply -f {name}", "bold cyan"))
            for obj in objects_of(name):
                await self._apply(obj)
        for name in step.delete:
            tell(paint(f"$ kubectl delete -f {name}", "bold cyan"))
            for obj in reversed(objects_of(name)):
                await self._delete(obj)
        return await self._watched(step)

    async def _apply(self, obj: Raw) -> None:
        endpoint = await self.endpoint(obj)
        await self._client.apply(endpoint, obj, manager="dryrack-demo", force=True)

    async def _delete(self, obj: Raw) -> None:
        endpoint, name = await self.endpoint(obj), name_of(obj)
        await self._client.delete(endpoint, name.name, namespace=name.namespace)

    async def endpoint(self, obj: Raw) -> Endpoint:
        """Where objects of this kind are; a kind that was defined just now may take a moment."""
        key = (obj["apiVersion"], obj["kind"])
        deadline = time.monotonic() + SECONDS_MAX
        while key not in self._endpoints:
            if time.monotonic() > deadline:
                raise ContentError(f"{key[1]} of {key[0]}: the cluster has no such kind")
            found = [each.endpoint for each in await discover(self._client)]
            self._endpoints = {(each.api_version, each.kind): each for each in found}
            if key not in self._endpoints:
                await asyncio.sleep(_LOOK_SECONDS)
        return self._endpoints[key]

    async def _watched(self, step: Step) -> list[str]:
        """Shows the cluster until all is as it must be, or too much time has passed."""
        from rich.live import Live

        deadline = time.monotonic() + SECONDS_MAX
        console = stdout_console()
        with Live(console=console, transient=True, auto_refresh=False) as live:
            while True:
                sight = await self._look()
                if console.is_terminal:
                    live.update(table_of(COLUMNS, rows(sight)), refresh=True)
                lacking = step.expect.lacking(sight)
                if not lacking or time.monotonic() > deadline:
                    break
                await asyncio.sleep(_LOOK_SECONDS)
        _show_sight(sight, step)
        return lacking

    async def _look(self) -> Sight:
        kinds = (NODES, SLICES, CLAIMS, PODS, EVENTS)
        sight = Sight(*[(await self._client.list(kind)).items for kind in kinds])
        return sight if self._actors is None else self._actors.alone(sight)


def _show_sight(sight: Sight, step: Step) -> None:
    print_table(COLUMNS, rows(sight))
    if sight.slices and (step.expect.devices or step.expect.counts):
        tell()
        print_table(SLICE_COLUMNS, slice_rows(sight))
    for event in events_of(sight):
        if any(words in event for words in step.expect.told):
            tell(f"event: {event}")
    tell()


def objects_of(name: str) -> list[Raw]:
    """What a file of the examples, or of the package's manifests, has in it."""
    path = next(each / name for each in (EXAMPLES, MANIFESTS) if (each / name).exists())
    reading = read(path.read_bytes(), name)
    if reading.problems:
        raise ContentError("\n".join(str(problem) for problem in reading.problems))
    return [document.raw for document in reading.documents]


def show(name: str) -> None:
    """A file of the examples, for people to read."""
    lines = (EXAMPLES / name).read_text().splitlines()
    tell(paint(f"   {name}", "bold"))
    tell(paint("\n".join(lines[:_LINES_SHOWN]), "dim"))
    if len(lines) > _LINES_SHOWN:
        tell(f"   … and {len(lines) - _LINES_SHOWN} more lines like these")
    tell()


def tell(text: str = "") -> None:
    """A line before whatever comes next, be it another process that prints."""
    print_line(text)
    sys.stdout.flush()
