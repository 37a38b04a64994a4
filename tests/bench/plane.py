"""
The embedded control plane beside a real one, in one run on one machine.

    python -m tests.bench.plane [--small]

Both keep nothing on disk (etcd without fsync, ours in memory), then both do. Ratios are what
counts; the times only give the scale.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from tests.bench import load
from tests.clients.served import ServedPlane
from tests.golang import GoBuildError
from tests.realcluster.controlplane import Options
from tests.realcluster.guard import throw_away

from dryrack.cluster.embedded import embedded
from dryrack.testing import Cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from dryrack.client.client import Client

SMALL = load.Sizes(creates=1000, gets=1000, events=100, nodes=200, slices=200, pods=1000)
FRESH_SECONDS_MAX = 0.025
FRESH_RUNS = 20
# What else the machine does only adds to a start, so the best counts, on both sides.
START_RUNS = 3
# In how many parts long tasks are done, by one side after the other.
PARTS = 10


@dataclass(slots=True)
class Measured:
    """The results of one side by task: seconds, or bytes."""

    values: dict[str, float] = field(default_factory=dict)


# Task → how much better ours has to be; None where there is no goal.
STARTED = "start to first kubectl get nodes"
IN_FOREGROUND = "the same, in the foreground"
MEMORY = "memory at rest"
GOALS = {
    STARTED: 8.0,
    IN_FOREGROUND: 8.0,
    "creates, 64 connections": 1.0,
    "gets, 64 connections": None,
    "four lists of all slices": None,
    "watch fan-out to 50": None,
    MEMORY: 4.0,
    "creates, durable": 1.0,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.plane")
    parser.add_argument("--small", action="store_true", help="a fifth of a minute, rough")
    sizes = SMALL if parser.parse_args().small else load.Sizes()
    ours = Measured()
    theirs = Measured()
    _starts(ours, theirs)
    _in_memory(sizes, ours, theirs)
    _durable(sizes, ours, theirs)
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(_table(ours, theirs))
    fresh = asyncio.run(_fresh())
    met = "yes" if fresh <= FRESH_SECONDS_MAX else "no"
    console.print(f"a fresh cluster in process: {fresh * 1e3:.1f} ms (goal 25 ms: {met})")
    for_test = _fresh_for_test()
    met = "yes" if for_test <= FRESH_SECONDS_MAX else "no"
    console.print(f"a fresh cluster of a pytest: {for_test * 1e3:.1f} ms (goal 25 ms: {met})")
    return 0


def _table(ours: Measured, theirs: Measured) -> Table:
    table = Table(title="Embedded plane", title_justify="left", box=None)
    for heading in ("task", "dryrack", "Kubernetes", "ratio", "goal", "met"):
        table.add_column(heading, justify="left" if heading == "task" else "right")
    for task, goal in GOALS.items():
        mine = ours.values[task]
        other = theirs.values[task]
        ratio = other / mine
        words = f"{ratio:.1f}x better" if ratio >= 1 else f"{1 / ratio:.1f}x worse"
        wanted = f"{goal:g}x" if goal else ""
        met = "" if goal is None else ("yes" if ratio >= goal else "no")
        table.add_row(task, _shown(task, mine), _shown(task, other), words, wanted, met)
    return table


def _shown(task: str, value: float) -> str:
    return f"{value / 2**20:.0f} MiB" if task.startswith("memory") else f"{value:.2f} s"


def _starts(ours: Measured, theirs: Measured) -> None:
    ways = (
        (ours, STARTED, _start),
        (ours, IN_FOREGROUND, _start_in_foreground),
        (theirs, STARTED, _start_theirs),
    )
    for _ in range(START_RUNS):
        for side, task, start in ways:
            side.values[task] = min(start(), side.values.get(task, float("inf")))
    theirs.values[IN_FOREGROUND] = theirs.values[STARTED]


def _in_memory(sizes: load.Sizes, ours: Measured, theirs: Measured) -> None:
    with (
        tempfile.TemporaryDirectory() as scratch,
        throw_away(Options()) as bed,
        ServedPlane(Path(scratch), name="bench") as plane,
    ):
        asyncio.run(_work((plane.kubeconfig, bed.plane.kubeconfig), sizes, (ours, theirs)))
        ours.values[MEMORY] = load.memory(plane.process())
        theirs.values[MEMORY] = sum(load.memory(each.pid) for each in bed.processes.running)


def _durable(sizes: load.Sizes, ours: Measured, theirs: Measured) -> None:
    with (
        tempfile.TemporaryDirectory() as scratch,
        throw_away(replace(Options(), durable=True)) as bed,
    ):
        options = ("--data-dir", f"{scratch}/data")
        with ServedPlane(Path(scratch), options, name="bench") as plane:
            both = (plane.kubeconfig, bed.plane.kubeconfig)
            asyncio.run(_writes(both, sizes, (ours, theirs)))


def _start() -> float:
    with tempfile.TemporaryDirectory() as scratch:
        plane = ServedPlane(Path(scratch), name="bench")
        began = time.perf_counter()
        with plane:
            plane.must("get", "nodes")
            return time.perf_counter() - began


def _start_in_foreground() -> float:
    with tempfile.TemporaryDirectory() as scratch:
        plane = ServedPlane(Path(scratch), name="bench")
        began = time.perf_counter()
        with plane.in_foreground():
            plane.must("get", "nodes")
            return time.perf_counter() - began


def _start_theirs() -> float:
    began = time.perf_counter()
    with throw_away(Options()) as bed:
        assert bed.plane.kubectl("get", "nodes").returncode == 0
        return time.perf_counter() - began


async def _work(
    kubeconfigs: tuple[Path, Path], sizes: load.Sizes, measured: tuple[Measured, Measured]
) -> None:
    creates = sizes.creates // PARTS
    gets = sizes.gets // PARTS
    async with _turns(kubeconfigs, measured) as turns:
        await turns.take("", lambda client, _: load.create_slices(client, load.CONNECTIONS, "warm"))
        await turns.take(
            "creates, 64 connections",
            lambda client, part: load.create_slices(client, creates, f"bench-{part}"),
            parts=PARTS,
        )
        await turns.take(
            "gets, 64 connections",
            lambda client, part: load.get_slices(client, gets, f"bench-{part}", creates),
            parts=PARTS,
        )
        await turns.take(
            "four lists of all slices", lambda client, _: load.list_slices(client), parts=4
        )
        await turns.take(
            "watch fan-out to 50", lambda client, _: load.fan_out(client, sizes.events)
        )
        await turns.take("", lambda client, _: load.populate(client, sizes))


async def _writes(
    kubeconfigs: tuple[Path, Path], sizes: load.Sizes, measured: tuple[Measured, Measured]
) -> None:
    creates = sizes.creates // 5 // PARTS
    async with _turns(kubeconfigs, measured) as turns:
        await turns.take("", lambda client, _: load.create_slices(client, load.CONNECTIONS, "warm"))
        await turns.take(
            "creates, durable",
            lambda client, part: load.create_slices(client, creates, f"durable-{part}"),
            parts=PARTS,
        )


@dataclass(frozen=True, slots=True)
class _Turns:
    """Both sides take turns, so that what else the machine does slows both."""

    sides: tuple[tuple[Client, Measured], ...]

    async def take(
        self, task: str, work: Callable[[Client, int], Awaitable[None]], *, parts: int = 1
    ) -> None:
        """Adds up the time of all parts under the name of the task; none if it has no name."""
        for part in range(parts):
            # Who begins changes with every part.
            for client, measured in self.sides if part % 2 == 0 else reversed(self.sides):
                seconds = await load.timed(work(client, part))
                if task:
                    measured.values[task] = measured.values.get(task, 0.0) + seconds


@asynccontextmanager
async def _turns(
    kubeconfigs: tuple[Path, Path], measured: tuple[Measured, Measured]
) -> AsyncIterator[_Turns]:
    async with load.talking_to(kubeconfigs[0]) as one, load.talking_to(kubeconfigs[1]) as other:
        yield _Turns(((one, measured[0]), (other, measured[1])))


async def _fresh() -> float:
    """The best of several: what the machine did besides is not ours."""
    best = float("inf")
    for _ in range(FRESH_RUNS):
        began = time.perf_counter()
        async with embedded():
            best = min(best, time.perf_counter() - began)
    return best


def _fresh_for_test() -> float:
    """From nothing to a cluster that has answered, and its end: what a fixture costs a test."""
    best = float("inf")
    for _ in range(FRESH_RUNS):
        began = time.perf_counter()
        with Cluster() as cluster:
            cluster.list("namespaces")
        best = min(best, time.perf_counter() - began)
    return best


if __name__ == "__main__":
    try:
        sys.exit(main())
    except GoBuildError as error:
        sys.exit(str(error))
