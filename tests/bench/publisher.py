"""
Our publisher beside Karpenter's DRA KWOK driver, in one run on one real API server.

    python -m tests.bench.publisher [--small]

Both read the same DRAConfig, one after the other. Karpenter's controller is its own Go module,
built here. How long from a node to its slice, how long until a changed config is on all nodes,
and how many writes when nothing changes.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from rich.console import Console
from rich.table import Table
from tests.bench import load
from tests.golang import GoBuildError, build
from tests.realcluster.controlplane import Options
from tests.realcluster.guard import throw_away

from dryrack.client.client import MERGE_PATCH, Client
from dryrack.client.endpoints import NODES, SLICES, Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.realcluster.cluster import Cluster

    from dryrack.kinds.raw import Raw


MODULE = Path(__file__).parent / "karpenter"
CONFIGS = Endpoint("test.karpenter.sh", "v1alpha1", "draconfigs", "DRAConfig", is_namespaced=False)
DRIVER = "gpu.example.com"
HOUR_SECONDS = 3600
# Two polls of Karpenter's and what its client's rate limit adds for many nodes.
WAIT_SECONDS_MAX = 180.0
# Without a write for so long, what the last change brought about is done.
SETTLE_SECONDS = 3.0
P99_SECONDS_MAX = 0.050
TIMES_FASTER_MIN = 100.0


@dataclass(frozen=True, slots=True)
class Sizes:
    """The number of nodes and the duration: single nodes must meet a poller at any phase."""

    singles: int = 100
    singles_seconds: float = 60.0
    nodes: int = 500
    idle_seconds: float = 65.0


SMALL = Sizes(singles=20, singles_seconds=30.0, nodes=60, idle_seconds=35.0)


@dataclass(frozen=True, slots=True)
class Side:
    """One publisher, as a command that finds its cluster by KUBECONFIG."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    latencies: Sequence[float]
    change_seconds: float
    writes_per_hour: float

    @property
    def mean(self) -> float:
        return statistics.fmean(self.latencies)

    @property
    def p99(self) -> float:
        return statistics.quantiles(self.latencies, n=100, method="inclusive")[98]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.publisher")
    parser.add_argument("--small", action="store_true", help="two minutes instead of seven")
    sizes = SMALL if parser.parse_args().small else Sizes()
    measured = [_measured(side, sizes) for side in _sides()]
    Console(width=None if sys.stdout.isatty() else 140).print(_table(*measured))
    return 0


def _sides() -> tuple[Side, Side]:
    theirs = build(MODULE).path("karpenter")
    nowhere = ("--metrics-address", "0", "--health-address", "0")
    ours = (sys.executable, "-m", "dryrack", "publish", "--no-leader-elect", *nowhere)
    return Side("dryrack", ours), Side("karpenter", (str(theirs),))


def _measured(side: Side, sizes: Sizes) -> Measured:
    with throw_away(replace(Options(), with_scheduler=False)) as bed:
        return asyncio.run(_work(bed, side, sizes))


async def _work(bed: Cluster, side: Side, sizes: Sizes) -> Measured:
    _say(f"{side.name}: starts")
    bed.plane.kubectl("apply", "-f", "-", stdin=_definition())
    bed.plane.kubectl("wait", "--for=condition=Established", f"crd/{CONFIGS.resource}")
    async with load.talking_to(bed.plane.kubeconfig) as client:
        await client.create(CONFIGS, _config("before"))
        environment = {"KUBECONFIG": str(bed.plane.kubeconfig)}
        bed.processes.start(side.name, side.command, environment=environment)
        await _one_node(client)
        _say(f"{side.name}: {sizes.singles} nodes, one by one")
        latencies = await _latencies(client, sizes)
        _say(f"{side.name}: a change on {sizes.nodes} nodes")
        change = await _change(client, sizes)
        _say(f"{side.name}: nothing changes")
        writes = await _writes_at_rest(bed, sizes.idle_seconds)
    return Measured(latencies, change, writes * HOUR_SECONDS / sizes.idle_seconds)


async def _one_node(client: Client) -> None:
    """The publisher is up when it has published once."""
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        await client.create(NODES, load.kwok_node("first"))
        await _seen(client, "0", {"first"}, lambda _: None)


async def _latencies(client: Client, sizes: Sizes) -> list[float]:
    names = [f"single-{number}" for number in range(sizes.singles)]
    created: dict[str, float] = {}
    visible: dict[str, float] = {}
    revision = (await client.list(SLICES)).revision

    def saw(name: str) -> None:
        visible[name] = time.perf_counter()

    async with asyncio.timeout(WAIT_SECONDS_MAX), asyncio.TaskGroup() as group:
        group.create_task(_seen(client, revision, set(names), saw))
        for name in names:
            await client.create(NODES, load.kwok_node(name))
            created[name] = time.perf_counter()
            await asyncio.sleep(sizes.singles_seconds / sizes.singles)
    return [max(visible[name] - created[name], 0.0) for name in names]


async def _change(client: Client, sizes: Sizes) -> float:
    names = [f"many-{number}" for number in range(sizes.nodes - sizes.singles - 1)]
    revision = (await client.list(SLICES)).revision
    async with asyncio.timeout(WAIT_SECONDS_MAX), asyncio.TaskGroup() as group:
        group.create_task(_seen(client, revision, set(names), lambda _: None))
        await load.at_once(len(names), lambda n: client.create(NODES, load.kwok_node(names[n])))
    listing = await client.list(SLICES)
    everywhere = {each["spec"]["nodeName"] for each in listing.items}
    began = time.perf_counter()
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        spec = _config("after")["spec"]
        await client.patch(CONFIGS, "gpus", {"spec": spec}, media_type=MERGE_PATCH)
        await _seen(client, listing.revision, everywhere, lambda _: None, model="after")
    return time.perf_counter() - began


async def _seen(
    client: Client,
    revision: str,
    nodes: set[str],
    saw: Callable[[str], None],
    *,
    model: str = "",
) -> None:
    """Waits until each node has a slice (with devices of a model)."""
    missing = set(nodes)
    async with client.watch(SLICES, revision=revision) as events:
        async for event in events:
            spec = event.object.get("spec") or {}
            name = spec.get("nodeName", "")
            if event.type == "DELETED" or name not in missing or not _has(spec, model):
                continue
            saw(name)
            missing.discard(name)
            if not missing:
                return


def _has(spec: Raw, model: str) -> bool:
    devices = spec.get("devices") or []
    return bool(devices) and all(
        not model or each["attributes"]["model"]["string"] == model for each in devices
    )


async def _writes_at_rest(bed: Cluster, seconds: float) -> float:
    """Writes in that time, once what the last change brought about (events of it) is written."""
    before = _writes(bed)
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while True:
            await asyncio.sleep(SETTLE_SECONDS)
            before, earlier = _writes(bed), before
            if before == earlier:
                break
    await asyncio.sleep(seconds)
    return _writes(bed) - before


def _writes(bed: Cluster) -> float:
    """Writes of slices, configs and events that the server has answered so far."""
    text = bed.plane.kubectl("get", "--raw", "/metrics").stdout
    lines = [line for line in text.splitlines() if line.startswith("apiserver_request_total{")]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if _is_write(line))


def _is_write(line: str) -> bool:
    verbs = ("POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION")
    kinds = ("resourceslices", "draconfigs", "events")
    return any(f'verb="{each}"' in line for each in verbs) and any(
        f'resource="{each}"' in line for each in kinds
    )


def _config(model: str) -> Raw:
    devices = [
        {"name": f"gpu-{number}", "attributes": {"model": {"string": model}}} for number in range(8)
    ]
    key = "node.kubernetes.io/instance-type"
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": ["bench"]}]}
    pool = {
        "name": "gpus",
        "nodeSelectorTerms": [term],
        "resourceSlices": [{"devices": devices}],
    }
    return {"metadata": {"name": "gpus"}, "spec": {"driver": DRIVER, "pools": [pool]}}


def _definition() -> str:
    """The kind, with no more schema than it takes to keep what is written."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": CONFIGS.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"plural": CONFIGS.plural, "singular": "draconfig", "kind": CONFIGS.kind}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": CONFIGS.resource},
        "spec": {
            "group": CONFIGS.group,
            "scope": "Cluster",
            "names": names,
            "versions": [version],
        },
    }
    return yaml.safe_dump(definition)


def _table(ours: Measured, theirs: Measured) -> Table:
    table = Table(title="Publisher", title_justify="left", box=None)
    for heading in ("task", "dryrack", "Karpenter", "ratio", "goal", "met"):
        table.add_column(heading, justify="left" if heading == "task" else "right")
    faster = theirs.mean / ours.mean
    _row(
        table,
        "node to slice, mean",
        ours.mean,
        theirs.mean,
        goal="100x",
        met=faster >= TIMES_FASTER_MIN,
    )
    _row(
        table,
        "node to slice, p99",
        ours.p99,
        theirs.p99,
        goal="50 ms",
        met=ours.p99 <= P99_SECONDS_MAX,
    )
    _row(table, "config change on all nodes", ours.change_seconds, theirs.change_seconds)
    idle = (f"{each.writes_per_hour:.0f}" for each in (ours, theirs))
    table.add_row(
        "writes per hour at rest", *idle, "", "0", "yes" if ours.writes_per_hour == 0 else "no"
    )
    return table


def _row(
    table: Table, task: str, ours: float, theirs: float, *, goal: str = "", met: bool | None = None
) -> None:
    word = "" if met is None else ("yes" if met else "no")
    times = (f"{ours * 1e3:.1f} ms", f"{theirs * 1e3:.0f} ms")
    table.add_row(task, *times, f"{theirs / ours:.0f}x", goal, word)


def _say(what: str) -> None:
    sys.stderr.write(f"bench: {what}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except GoBuildError as error:
        sys.exit(str(error))
