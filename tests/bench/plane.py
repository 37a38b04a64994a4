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
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from tests.bench import load
from tests.clients.served import ServedPlane
from tests.golang import GoBuildError
from tests.realcluster import cluster
from tests.realcluster.controlplane import Options

from dryrack.cluster.embedded import embedded

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL = load.Sizes(creates=1000, gets=1000, events=100, nodes=200, slices=200, pods=1000)
FRESH_SECONDS_MAX = 0.025
FRESH_RUNS = 20
# What else the machine does only adds to a start, so the best counts, on both sides.
START_RUNS = 3


@dataclass(slots=True)
class Measured:
    """What one side did, by the name of the task: seconds, or bytes."""

    values: dict[str, float] = field(default_factory=dict)


# Task → how much better ours has to be; None where there is no goal.
STARTED = "start to first kubectl get nodes"
IN_FOREGROUND = "the same, in the foreground"
GOALS = {
    STARTED: 8.0,
    IN_FOREGROUND: 8.0,
    "creates, 64 connections": 1.0,
    "gets, 64 connections": None,
    "list of all slices": None,
    "watch fan-out to 50": None,
    "memory at rest": 4.0,
    "creates, durable": 1.0,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.plane")
    parser.add_argument("--small", action="store_true", help="a fifth of a minute, rough")
    sizes = SMALL if parser.parse_args().small else load.Sizes()
    ours, theirs = _ours(sizes), _theirs(sizes)
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(_table(ours, theirs))
    fresh = asyncio.run(_fresh())
    met = "yes" if fresh <= FRESH_SECONDS_MAX else "no"
    console.print(f"a fresh cluster in process: {fresh * 1e3:.1f} ms (goal 25 ms: {met})")
    return 0


def _table(ours: Measured, theirs: Measured) -> Table:
    table = Table(title="Embedded plane", title_justify="left", box=None)
    for heading in ("task", "dryrack", "Kubernetes", "ratio", "goal", "met"):
        table.add_column(heading, justify="left" if heading == "task" else "right")
    for task, goal in GOALS.items():
        mine, other = ours.values[task], theirs.values[task]
        ratio = other / mine
        words = f"{ratio:.1f}x better" if ratio >= 1 else f"{1 / ratio:.1f}x worse"
        wanted = f"{goal:g}x" if goal else ""
        met = "" if goal is None else ("yes" if ratio >= goal else "no")
        table.add_row(task, _shown(task, mine), _shown(task, other), words, wanted, met)
    return table


def _shown(task: str, value: float) -> str:
    return f"{value / 2**20:.0f} MiB" if task.startswith("memory") else f"{value:.2f} s"


def _ours(sizes: load.Sizes) -> Measured:
    measured = Measured()
    measured.values[STARTED] = min(_start() for _ in range(START_RUNS))
    measured.values[IN_FOREGROUND] = min(_start_in_foreground() for _ in range(START_RUNS))
    with (
        tempfile.TemporaryDirectory() as scratch,
        ServedPlane(Path(scratch), name="bench") as plane,
    ):
        asyncio.run(_work(plane.kubeconfig, sizes, measured))
        measured.values["memory at rest"] = _memory([plane.process()])
    with tempfile.TemporaryDirectory() as scratch:
        options = ("--data-dir", f"{scratch}/data")
        with ServedPlane(Path(scratch), options, name="bench") as plane:
            measured.values["creates, durable"] = asyncio.run(_creates(plane.kubeconfig, sizes))
    return measured


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


def _theirs(sizes: load.Sizes) -> Measured:
    measured = Measured()
    started = min(_start_theirs() for _ in range(START_RUNS))
    measured.values[STARTED] = measured.values[IN_FOREGROUND] = started
    with _bed(Options()) as bed:
        asyncio.run(_work(bed.plane.kubeconfig, sizes, measured))
        pids = [each.pid for each in bed.processes.running]
        measured.values["memory at rest"] = _memory(pids)
    with _bed(replace(Options(), durable=True)) as bed:
        measured.values["creates, durable"] = asyncio.run(_creates(bed.plane.kubeconfig, sizes))
    return measured


def _start_theirs() -> float:
    began = time.perf_counter()
    with _bed(Options()) as bed:
        assert bed.plane.kubectl("get", "nodes").returncode == 0
        return time.perf_counter() - began


@contextmanager
def _bed(options: Options) -> Iterator[cluster.Cluster]:
    bed = cluster.start(Path(tempfile.mkdtemp(prefix="dryrack-")), options)
    try:
        yield bed
    finally:
        bed.stop()


async def _work(kubeconfig: Path, sizes: load.Sizes, measured: Measured) -> None:
    async with load.talking_to(kubeconfig) as client:
        values = measured.values
        await load.create_slices(client, load.CONNECTIONS, "first")
        values["creates, 64 connections"] = await load.timed(
            load.create_slices(client, sizes.creates, "bench")
        )
        values["gets, 64 connections"] = await load.timed(
            load.get_slices(client, sizes.gets, "bench", sizes.creates)
        )
        values["list of all slices"] = await load.timed(load.list_slices(client))
        values["watch fan-out to 50"] = await load.timed(load.fan_out(client, sizes.events))
        await load.populate(client, sizes)


async def _creates(kubeconfig: Path, sizes: load.Sizes) -> float:
    async with load.talking_to(kubeconfig) as client:
        # What is loaded with the first write is no part of how fast writes are.
        await load.create_slices(client, load.CONNECTIONS, "first")
        return await load.timed(load.create_slices(client, sizes.creates // 5, "durable"))


def _memory(pids: list[int]) -> float:
    """Resident memory of processes, in bytes."""
    total = 0
    for pid in pids:
        status = Path(f"/proc/{pid}/status").read_text()
        line = next(each for each in status.splitlines() if each.startswith("VmRSS:"))
        total += int(line.split()[1]) * 1024
    return float(total)


async def _fresh() -> float:
    """The best of several: what the machine did besides is not ours."""
    best = float("inf")
    for _ in range(FRESH_RUNS):
        began = time.perf_counter()
        async with embedded():
            best = min(best, time.perf_counter() - began)
    return best


if __name__ == "__main__":
    try:
        sys.exit(main())
    except GoBuildError as error:
        sys.exit(str(error))
