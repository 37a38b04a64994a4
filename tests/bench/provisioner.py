"""
dryrack's provisioner next to Karpenter's: from an unschedulable Pod to a running one.

    python -m tests.bench.provisioner [--runs N]

Two embedded control planes run at the same time: one with `dryrack up --provisioner`, the other
with the KWOK provider of Karpenter 1.14.1 and `dryrack provision --karpenter`. The cases take
turns. Each time, one Pod is created, gets a new node, and goes with it.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from tests.bench import load
from tests.clients.served import ServedPlane
from tests.golang import GoBuildError
from tests.provisioning.beds import POOL, TRAIN, Bed
from tests.provisioning.worlds import pod
from tests.publisher.real_publisher import ALONE
from tests.realcluster import guard
from tests.realcluster.processes import Processes

from dryrack.client.endpoints import NODE_CLAIMS, NODES, PODS

if TYPE_CHECKING:
    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw

WAIT_SECONDS_MAX = 120.0
SELECTOR = {"node.kubernetes.io/instance-type": "g5.12xlarge"}


@dataclass(frozen=True, slots=True)
class Case:
    """A Pod on one of the two clusters."""

    name: str
    bed: Bed
    has_claim: bool


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.provisioner")
    parser.add_argument("--runs", type=int, default=10, help="Pods for each case")
    runs = parser.parse_args().runs
    guard.ensure()
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        ours = _serve(stack, Path(directory), "ours", "--provisioner")
        theirs = _serve(stack, Path(directory), "theirs", "--catalogue")
        types = theirs.start_karpenter()
        theirs.start_dryrack("provision", "--karpenter", "--instance-types", str(types), ALONE)
        for bed in (ours, theirs):
            bed.must("apply", "-f", "-", stdin=POOL)
            bed.must("apply", "-f", "-", stdin=TRAIN)
            bed.must("delete", "deployment", "train", "--cascade=foreground", "--wait=true")
        cases = (
            Case("Karpenter, without claims", theirs, has_claim=False),
            Case("Karpenter with stand-ins, with a claim", theirs, has_claim=True),
            Case("dryrack, without claims", ours, has_claim=False),
            Case("dryrack, with a claim", ours, has_claim=True),
        )
        seconds: dict[str, list[float]] = {each.name: [] for each in cases}
        for number in range(runs):
            for case in cases:
                sys.stderr.write(f"bench: {case.name}, {number + 1} of {runs}\n")
                seconds[case.name].append(asyncio.run(_measure(case)))
    table = Table(title="From unschedulable to Running", title_justify="left", box=None)
    for heading in ("case", "median", "longest", "ratio"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    base = statistics.median(seconds[cases[0].name])
    for name, own in seconds.items():
        median = statistics.median(own)
        table.add_row(name, f"{median:.2f} s", f"{max(own):.2f} s", f"{median / base:.2f}")
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    return 0


def _serve(stack: ExitStack, directory: Path, name: str, option: str) -> Bed:
    folder = directory / name
    folder.mkdir()
    plane = stack.enter_context(ServedPlane(folder, name=name, options=(option,)))
    processes = Processes(folder)
    stack.callback(processes.kill_all)
    return Bed(plane.kubeconfig, processes, plane.kubectl)


async def _measure(case: Case) -> float:
    """Return the seconds from the condition Unschedulable of a Pod to its phase Running."""
    made = pod("train", cpu="1", nodeSelector=SELECTOR)
    if case.has_claim:
        made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "two-gpus"}]
    async with load.talking_to(case.bed.kubeconfig) as client:
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            await _wait_for_none(client)
            revision = (await client.list(PODS)).revision
            await client.create(PODS, made)
            seconds = await _observe(client, revision)
            await client.delete(PODS, "train", namespace="default")
            for each in (await client.list(NODE_CLAIMS)).items:
                await client.delete(NODE_CLAIMS, each["metadata"]["name"])
            await _wait_for_none(client)
    return seconds


async def _observe(client: Client, revision: str) -> float:
    began = 0.0
    async with client.watch(PODS, revision=revision) as events:
        async for event in events:
            if event.object["metadata"]["name"] != "train":
                continue
            if not began and _is_unschedulable(event.object):
                began = time.perf_counter()
            if event.object["status"].get("phase") == "Running":
                return time.perf_counter() - began
    raise AssertionError("the watch ended before the Pod was Running")


def _is_unschedulable(found: Raw) -> bool:
    conditions = found["status"].get("conditions", ())
    return any(each.get("reason") == "Unschedulable" for each in conditions)


async def _wait_for_none(client: Client) -> None:
    for endpoint in (PODS, NODE_CLAIMS, NODES):
        while True:
            if not (await client.list(endpoint)).items:
                break
            await asyncio.sleep(0.1)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except GoBuildError as error:
        sys.exit(str(error))
