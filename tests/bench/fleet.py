"""
The cost of the publisher by the number of nodes, on the embedded cluster.

    python -m tests.bench.fleet [--small]

Each fleet is published from cold, gets another config, and then has its nodes replaced one by
one. Afterwards every node must have its slice, with the right devices and the right owner. What
counts is whether time and memory per node stay flat. Times are what the process used of the
processor, the API server included.

Last a fleet of machines with hundreds of partitions each, and what the process takes for a node
when all is published.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import yaml
from rich.console import Console
from rich.table import Table
from tests.bench import load

from dryrack.client.endpoints import CONFIG_MAPS, NAMESPACES, NODES, SLICES
from dryrack.cluster import EngineOptions, load_catalogue
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.cluster.initial_objects import virtual_node

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from dryrack.kinds.raw import Raw


FLEETS = (1_000, 3_000, 10_000)
FLEETS_SMALL = (200, 500, 1_000)
# Of ten nodes, how many are replaced one by one.
REPLACED = 6
DEVICES = 8
# With dynamic MIG a node has 242 devices in 7 slices, a quarter of a megabyte of JSON.
PARTITIONED = "p5.48xlarge"
PARTITIONED_NODES = 200
PARTITIONED_NODES_SMALL = 50
PARTITIONED_KIB_MAX = 1024
# A busy machine makes slow progress; a run without progress for this long has failed.
STUCK_SECONDS_MIN = 120.0


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds for the whole fleet, and bytes that the process grew by."""

    nodes: int
    publish: float
    change: float
    replace: float
    memory: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.fleet")
    parser.add_argument("--small", action="store_true", help="fleets up to a thousand nodes")
    parser.add_argument("--fleet", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--partitioned", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.partitioned:
        sys.stdout.write(f"{asyncio.run(_partitioned(options.partitioned))}\n")
        return 0
    if options.fleet:
        _print_one(asyncio.run(_measured(options.fleet)))
        return 0
    measured = [
        Measured(count, *asyncio.run(_apart("--fleet", count)))
        for count in (FLEETS_SMALL if options.small else FLEETS)
    ]
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(_table(measured))
    count = PARTITIONED_NODES_SMALL if options.small else PARTITIONED_NODES
    (memory,) = asyncio.run(_apart("--partitioned", count))
    kib = memory / count / 1024
    met = "yes" if kib <= PARTITIONED_KIB_MAX else "no"
    console.print(
        f"{count} × {PARTITIONED} with dynamic MIG: {kib:.0f} KiB a node"
        f" (goal {PARTITIONED_KIB_MAX} KiB: {met})"
    )
    return 0


async def _apart(option: str, count: int) -> list[float]:
    """In a process of its own: memory of one fleet must not count for the next."""
    command = (sys.executable, "-m", "tests.bench.fleet", option, str(count))
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await child.communicate()
    assert child.returncode == 0, f"the fleet of {count} nodes failed; its words are above"
    return [float(part) for part in output.decode().split()]


async def _partitioned(count: int) -> float:
    """Bytes that the process grew by when nodes came, after the first."""
    async with embedded(engines=EngineOptions(catalogue=load_catalogue())) as cluster:
        await _add_machines(cluster, range(1))
        before = load.memory(os.getpid())
        _say(count, "partitioned machines published")
        await _add_machines(cluster, range(1, count + 1))
        return load.memory(os.getpid()) - before


async def _add_machines(cluster: EmbeddedCluster, numbers: range) -> None:
    """Returns when nothing has been written for a while."""
    for number in numbers:
        node = virtual_node(f"machine-{number}")
        labels = {"node.kubernetes.io/instance-type": PARTITIONED, "dryrack.dev/mig": "dynamic"}
        node["metadata"]["labels"] |= labels
        await cluster.client.create(NODES, node)
    before = -1
    written = 0
    while before != written:
        await asyncio.sleep(2)
        before = written
        written = cluster.plane.store.count("resourceslices.resource.k8s.io")


def _print_one(measured: Measured) -> None:
    sys.stdout.write(f"{measured.publish} {measured.change} {measured.replace} {measured.memory}\n")


async def _measured(count: int) -> Measured:
    async with embedded() as cluster:
        await cluster.client.create(NAMESPACES, {"metadata": {"name": "karpenter"}})
        names = [f"node-{number:05}" for number in range(count)]
        before = _memory()
        _say(count, "published from cold")
        publish = await _used(_publish(cluster, names))
        memory = _memory() - before
        _say(count, "config changed")
        change = await _used(_change(cluster, names))
        _say(count, "nodes replaced")
        replaced = names[: count * REPLACED // 10]
        replace = await _used(_replace(cluster, replaced, names))
    return Measured(count, publish, change, replace, memory)


async def _publish(cluster: EmbeddedCluster, names: Sequence[str]) -> None:
    client = cluster.client
    await client.create(CONFIG_MAPS, _config_map("before"))
    async with asyncio.TaskGroup() as group:
        group.create_task(_until(cluster, set(names), lambda spec: _has(spec, "before")))
        await load.at_once(len(names), lambda n: client.create(NODES, load.kwok_node(names[n])))


async def _change(cluster: EmbeddedCluster, names: Sequence[str]) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_until(cluster, set(names), lambda spec: _has(spec, "after")))
        patch = {"data": _config_map("after")["data"]}
        await cluster.client.patch(CONFIG_MAPS, "dra-kwok-configmap", patch, namespace="karpenter")


async def _replace(cluster: EmbeddedCluster, replaced: Sequence[str], names: Sequence[str]) -> None:
    """Each is deleted and made anew at once, under the same name, with another identity."""
    crew = _Crew(missing=set(replaced))
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(crew.watch(cluster))
        for name in replaced:
            await cluster.client.delete(NODES, name)
            made = await cluster.client.create(NODES, load.kwok_node(name))
            crew.replaced(name, made["metadata"]["uid"])
        await crew.done.wait()
        watching.cancel()
    await _checked(cluster, names)


@dataclass(slots=True)
class _Crew:
    """Nodes that still wait for a slice that is owned by who they are now."""

    missing: set[str]
    uids: dict[str, str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def replaced(self, name: str, uid: str) -> None:
        self.uids[name] = uid
        self._look(name)

    async def watch(self, cluster: EmbeddedCluster) -> None:
        async with cluster.client.watch(SLICES, revision="0") as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED"):
                    (owner,) = event.object["metadata"]["ownerReferences"]
                    self.owners[owner["name"]] = owner["uid"]
                    self._look(owner["name"])

    def _look(self, name: str) -> None:
        if name in self.uids and self.uids[name] == self.owners.get(name):
            self.missing.discard(name)
            if not self.missing:
                self.done.set()


async def _used(work: Awaitable[None]) -> float:
    began = time.process_time()
    await work
    return time.process_time() - began


async def _checked(cluster: EmbeddedCluster, names: Sequence[str]) -> None:
    """No slice is missing, none is too many, and each belongs to the node that is there now."""
    fewest = len(names) + 1
    since = time.monotonic()
    while wrong := await _wrong(cluster, names):
        if len(wrong) < fewest:
            fewest = len(wrong)
            since = time.monotonic()
        stuck = time.monotonic() - since > STUCK_SECONDS_MIN
        assert not stuck, f"{len(wrong)} nodes stay wrong, such as {wrong[0]}"
        await asyncio.sleep(1 + len(wrong) / 100)


async def _wrong(cluster: EmbeddedCluster, names: Sequence[str]) -> list[str]:
    nodes = (await cluster.client.list(NODES)).items
    slices = (await cluster.client.list(SLICES)).items
    uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in nodes}
    owners: dict[str, list[str]] = {}
    for each in slices:
        (owner,) = each["metadata"]["ownerReferences"]
        if _has(each["spec"], "after"):
            owners.setdefault(each["spec"]["nodeName"], []).append(owner["uid"])
    return [name for name in names if owners.get(name) != [uids[name]]]


async def _until(
    cluster: EmbeddedCluster, missing: set[str], is_right: Callable[[Raw], bool]
) -> None:
    async with cluster.client.watch(SLICES, revision="0") as events:
        async for event in events:
            spec = event.object.get("spec") or {}
            if event.type != "DELETED" and spec and is_right(spec):
                missing.discard(spec["nodeName"])
            if not missing:
                return


def _has(spec: Raw, model: str) -> bool:
    devices = spec.get("devices") or []
    return len(devices) == DEVICES and all(
        each["attributes"]["model"]["string"] == model for each in devices
    )


def _config_map(model: str) -> Raw:
    device = {"name": "gpu", "count": DEVICES, "attributes": {"model": model}}
    mapping = {
        "name": "gpus",
        "nodeSelector": {"matchLabels": {"node.kubernetes.io/instance-type": "bench"}},
        "resourceSlice": {"devices": [device]},
    }
    config = yaml.safe_dump({"driver": "gpu.example.com", "mappings": [mapping]})
    return {
        "metadata": {"name": "dra-kwok-configmap", "namespace": "karpenter"},
        "data": {"config.yaml": config},
    }


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def _table(measured: Sequence[Measured]) -> Table:
    table = Table(title="Fleets, per node", title_justify="left", box=None)
    headings = ("nodes", "publish", "change", "replace", "memory")
    for heading in headings:
        table.add_column(heading, justify="right")
    for each in measured:
        replaced = each.replace / (each.nodes * REPLACED // 10)
        times = (each.publish / each.nodes, each.change / each.nodes, replaced)
        shown = (f"{seconds * 1e3:.2f} ms" for seconds in times)
        table.add_row(f"{each.nodes}", *shown, f"{each.memory / each.nodes / 1024:.1f} KiB")
    return table


def _say(count: int, what: str) -> None:
    sys.stderr.write(f"bench: {count} nodes: {what}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
