"""
A day of a large cluster, in virtual time: what it takes, and what is left of it.

    python -m tests.bench.day [--nodes N] [--pods N] [--hours H]

Nodes have eight devices each. Pods come one by one through the day, each with a claim from a
template, and run for ten minutes: one half ends by itself and is deleted later, the other is
deleted while it runs. Printed for each tenth of the day are the processor time of a pod and the
memory; what is left at the end, or grows with the pods, makes the exit code 1. First an hour in
which nothing happens, to see what time alone costs.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.bench import load

from dryrack.apiserver.verbs.event_expiry import EVENT_SECONDS
from dryrack.base.limits import WATCH_LOG_EVENTS_MAX
from dryrack.client.endpoints import CLASSES, NODES, PODS, SLICES, TEMPLATES
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster.assembly import EngineOptions
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.cluster.initial_objects import virtual_node
from dryrack.cluster.ports import SeededChance

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dryrack.kinds.raw import Raw
    from dryrack.store import Event


NODES_COUNT = 1_000
PODS_COUNT = 100_000
HOURS = 24.0
DEVICES = 8
RUN_SECONDS = 600.0
TENTHS = 10
LONG = 7 * 24 * 3600
# As in a soak: what is kept of each pod is more than a cache that still fills up.
GROWTH_MAX = 0.05
_CLAIMS = "resourceclaims.resource.k8s.io"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.day")
    parser.add_argument("--nodes", type=int, default=NODES_COUNT, metavar="N")
    parser.add_argument("--pods", type=int, default=PODS_COUNT, metavar="N")
    parser.add_argument("--hours", type=float, default=HOURS, metavar="H")
    wanted = parser.parse_args()
    return run_virtual(_whole_day(wanted.nodes, wanted.pods, wanted.hours * 3600))


async def _whole_day(nodes: int, pods: int, seconds: float) -> int:
    # With fewer pods, what is kept for a while is at its bound as early as with all of them.
    bounds = {
        "event_seconds": min(EVENT_SECONDS, seconds / TENTHS / 2),
        "watch_log_events_max": min(WATCH_LOG_EVENTS_MAX, max(100, pods // TENTHS)),
    }
    async with day(nodes, **bounds) as world:
        began = time.process_time()
        await world.clock.advance(3600)
        _say(f"an hour of nothing: {time.process_time() - began:.2f} s")
        sizes = [await _tenth(world, each, pods, seconds) for each in range(TENTHS)]
        await world.end()
        _say(f"a day of {nodes} nodes and {pods} pods: {time.process_time() - began:.1f} s")
        grown = sizes[-1] / sizes[1] - 1
        _say(f"grown by {grown:.1%} since the second tenth (at most {GROWTH_MAX:.0%})")
        _say(f"{world.running} of {pods} pods have run, {world.left()} pods and claims are left")
        return 0 if world.running == pods and not world.left() and grown <= GROWTH_MAX else 1


async def _tenth(world: Day, tenth: int, pods: int, seconds: float) -> float:
    first = pods * tenth // TENTHS
    last = pods * (tenth + 1) // TENTHS
    began = time.process_time()
    for _ in range(first, last):
        await world.pod(seconds / pods)
    used = time.process_time() - began
    gc.collect()
    size = load.memory(os.getpid())
    each = used / max(1, last - first)
    _say(f"{last:>7} pods: {size / 2**20:6.1f} MiB, {each * 1e3:.2f} ms a pod")
    return size


@dataclass(slots=True)
class Day:
    """A cluster, and the pods that are there, by the time at which each is deleted."""

    cluster: EmbeddedCluster
    clock: VirtualClock
    running: int = 0
    _made: int = 0
    _leaving: deque[tuple[float, str]] = field(default_factory=deque)

    async def pod(self, gap: float) -> None:
        """One more, and time until the next; those whose time is over go meanwhile."""
        self._made += 1
        name = f"pod-{self._made}"
        ends = self._made % 2 == 0
        await self.cluster.client.create(PODS, _pod(name, ends=ends))
        self._leaving.append((self.clock.now() + RUN_SECONDS + 60, name))
        await self._pass(self.clock.now() + gap)

    async def end(self) -> None:
        """All pods go, each when its time is over."""
        await self._pass(self.clock.now() + RUN_SECONDS + 120)

    def left(self) -> int:
        store = self.cluster.plane.store
        return store.count("pods") + store.count(_CLAIMS)

    def on_event(self, event: Event) -> None:
        """Counts pods that begin to run."""
        if event.previous is not None and event.previous.object["status"]["phase"] == "Pending":
            self.running += event.stored.object["status"]["phase"] == "Running"

    async def _pass(self, until: float) -> None:
        while self._leaving and self._leaving[0][0] <= until:
            when, name = self._leaving.popleft()
            await self.clock.advance(max(0.0, when - self.clock.now()))
            await self.cluster.client.delete(PODS, name, namespace="default", grace_seconds=1)
        await self.clock.advance(until - self.clock.now())


@asynccontextmanager
async def day(nodes: int, **bounds: Any) -> AsyncIterator[Day]:
    """A cluster with that many nodes, at rest."""
    clock = VirtualClock()
    options = ControlPlaneOptions(clock=clock, chance=SeededChance(), **bounds)
    # Nothing fails here, so nothing is looked at again, and leases outlast the day.
    rest = EngineOptions(resync_seconds=LONG, node_lease_seconds=LONG)
    async with embedded(options, engines=rest) as cluster:
        client = cluster.client
        await client.create(CLASSES, _class())
        await client.create(TEMPLATES, _template())
        for number in range(nodes):
            await client.create(NODES, virtual_node(f"node-{number}"))
            await client.create(SLICES, _slice(f"node-{number}"))
        await clock.advance(60)
        # As `dryrack up` does when it is up: else the collector goes through the whole fleet.
        gc.collect()
        gc.freeze()
        world = Day(cluster, clock)
        leave = cluster.plane.store.subscribe("pods", world.on_event)
        yield world
        leave()
        gc.unfreeze()


def _class() -> Raw:
    expression = "device.driver == 'gpu.example.com'"
    selectors = [{"cel": {"expression": expression}}]
    return {"metadata": {"name": "gpu"}, "spec": {"selectors": selectors}}


def _template() -> Raw:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    metadata = {"name": "gpu", "namespace": "default"}
    return {"metadata": metadata, "spec": {"spec": {"devices": {"requests": [request]}}}}


def _slice(node: str) -> Raw:
    devices = [
        {"name": f"gpu-{index}", "attributes": {"uuid": {"string": f"{node}-{index}"}}}
        for index in range(DEVICES)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices}
    return {"metadata": {"name": node}, "spec": spec}


def _pod(name: str, *, ends: bool) -> Raw:
    metadata: Raw = {"name": name, "namespace": "default"}
    if ends:
        metadata["annotations"] = {"dryrack.dev/run-seconds": str(int(RUN_SECONDS))}
    resources = {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}
    spec = {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i", "resources": resources}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    }
    return {"metadata": metadata, "spec": spec}


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
