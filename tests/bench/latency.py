"""
The latency of requests during a long search of the scheduler.

    python -m tests.bench.latency [--nodes N]

A served plane has nodes that all differ, on none of which anybody can tell whether twenty-five of
sixty devices fit into four counters. One client gets an object over and over: at rest, then from
the moment when a pod wants such devices until the pod is told.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from tests.allocation.builders import device_class
from tests.allocation.knapsacks import hard_claim, hard_node
from tests.bench import load
from tests.clients.served import ServedPlane

from dryrack.client.client import STRATEGIC_PATCH
from dryrack.client.endpoints import CLAIMS, CLASSES, NODES, PODS, SLICES
from dryrack.kinds.decode import to_builtins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.client.client import Client

NODES_MAX = 6
GETS_AT_REST = 1000
SECONDS_MAX = 120.0
# What the project promises itself.
GOAL_SECONDS = 0.1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.latency")
    parser.add_argument("--nodes", type=int, default=NODES_MAX)
    nodes = parser.parse_args().nodes
    with tempfile.TemporaryDirectory() as scratch, ServedPlane(Path(scratch)) as plane:
        at_rest, meanwhile = asyncio.run(_measured(plane.kubeconfig, nodes))
    table = Table(title="A get, in ms", title_justify="left", box=None)
    for heading in ("", "gets", "seconds", "p50", "p99", "most"):
        table.add_column(heading, justify="right")
    for title, waits in (("at rest", at_rest), (f"{nodes} searches", meanwhile)):
        shown = (f"{1e3 * _quantile(waits, each):.1f}" for each in (0.5, 0.99, 1.0))
        table.add_row(title, str(len(waits)), f"{sum(waits):.1f}", *shown)
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    met = "yes" if _quantile(meanwhile, 0.99) < GOAL_SECONDS else "no"
    console.print(f"goal of {GOAL_SECONDS * 1e3:g} ms at p99 met: {met}")
    return 0


def _quantile(waits: Sequence[float], part: float) -> float:
    return sorted(waits)[min(len(waits) - 1, int(part * len(waits)))]


async def _measured(kubeconfig: Path, nodes: int) -> tuple[list[float], list[float]]:
    async with asyncio.timeout(SECONDS_MAX), load.talking_to(kubeconfig) as client:
        await _furnish(client, nodes)
        at_rest = [await load.timed(client.get(NODES, "node-0")) for _ in range(GETS_AT_REST)]
        await _want(client)
        meanwhile: list[float] = []
        while f"{nodes} timed out" not in await _told(client):
            meanwhile += [await load.timed(client.get(NODES, "node-0")) for _ in range(10)]
    return at_rest, meanwhile


async def _told(client: Client) -> str:
    pod = await client.get(PODS, "hard", "default")
    conditions = pod["status"].get("conditions", [])
    return "".join(each.get("message", "") for each in conditions)


async def _furnish(client: Client, nodes: int) -> None:
    await client.create(CLASSES, to_builtins(device_class()))
    allocatable = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    for number in range(nodes):
        name = f"node-{number}"
        await client.create(NODES, {"metadata": {"name": name}})
        status = {"status": {"allocatable": allocatable, "capacity": allocatable}}
        await client.patch(NODES, name, status, subresource="status", media_type=STRATEGIC_PATCH)
        for each in hard_node(name, spare=number):
            await client.create(SLICES, to_builtins(each))


async def _want(client: Client) -> None:
    claim = {**to_builtins(hard_claim()), "metadata": {"name": "hard", "namespace": "default"}}
    await client.create(CLAIMS, claim)
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "r"}]}}
    claims = [{"name": "r", "resourceClaimName": "hard"}]
    # No kubelet renews the leases of these nodes, so they are soon tainted.
    spec = {
        "containers": [container],
        "resourceClaims": claims,
        "tolerations": [{"operator": "Exists"}],
    }
    metadata = {"name": "hard", "namespace": "default"}
    await client.create(PODS, {"metadata": metadata, "spec": spec})


if __name__ == "__main__":
    sys.exit(main())
