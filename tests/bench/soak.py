"""
A soak: many short pods with claims through one plane, and what is left of them.

    python -m tests.bench.soak [--pods N]

Pods come in batches, each with a claim from a template, on a whole embedded cluster in virtual
time; when they run they are deleted, and when pods and claims are gone the next batch comes, a
minute after the last. What a cluster keeps for a while, as watch logs and Events, is at its bound
after the first tenth: with fewer pods than usual these bounds are lower. Memory after each tenth
is printed; if the last is much above the second, the exit code is 1.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.bench import load

from dryrack.apiserver.event_expiry import EVENT_SECONDS
from dryrack.base.limits import WATCH_LOG_EVENTS_MAX
from dryrack.client.endpoints import CLASSES, NODES, PODS, SLICES, TEMPLATES
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.cluster.inhabitants import virtual_node
from dryrack.cluster.plane import PlaneOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

Raw = dict[str, Any]

PODS_MAX = 100_000
TENTHS = 10
# Two nodes have a device for each pod of a batch.
BATCH = 64
DEVICES = 32
BATCH_SECONDS = 60.0
# Caches with a bound of their own may still fill up; a thing that is kept of each pod is more.
GROWTH_MAX = 0.05
# A batch takes some seconds of the clock; one that takes more than this is stuck.
PATIENCE_SECONDS = 600.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.soak")
    parser.add_argument("--pods", type=int, default=PODS_MAX, metavar="N", help="how many")
    wanted = parser.parse_args()
    grown = run_virtual(_soaked(max(1, wanted.pods // BATCH // TENTHS)))
    sys.stdout.write(f"grown by {grown:.1%} since the second tenth (at most {GROWTH_MAX:.0%})\n")
    return 0 if grown <= GROWTH_MAX else 1


async def _soaked(batches: int) -> float:
    """By how much the memory has grown from the second tenth to the last."""
    sizes: list[float] = []
    async with soaking(
        event_seconds=min(EVENT_SECONDS, batches * BATCH_SECONDS / 2),
        watch_log_events_max=min(WATCH_LOG_EVENTS_MAX, batches * BATCH),
    ) as soak:
        for tenth in range(1, TENTHS + 1):
            began = time.process_time()
            for _ in range(batches):
                await soak.batch()
            seconds = (time.process_time() - began) / (batches * BATCH)
            gc.collect()
            sizes.append(load.memory(os.getpid()))
            sys.stdout.write(
                f"{tenth * batches * BATCH:>7} pods: {sizes[-1] / 2**20:6.1f} MiB,"
                f" {seconds * 1e3:.1f} ms a pod\n"
            )
            sys.stdout.flush()
    return sizes[-1] / sizes[1] - 1


@dataclass(slots=True)
class Soak:
    """A cluster with room for a batch of pods."""

    cluster: EmbeddedCluster
    clock: VirtualClock
    _made: int = field(default=0)

    async def batch(self, size: int = BATCH) -> None:
        """Pods come, run, and go with their claims; a minute passes."""
        client, began = self.cluster.client, self.clock.now()
        names = [f"pod-{self._made + number}" for number in range(size)]
        self._made += size
        for name in names:
            await client.create(PODS, _pod(name))
        await self._until(lambda: self._running() == size, "pods run")
        for name in names:
            await client.delete(PODS, name, namespace="default", grace_seconds=1)
        await self._until(lambda: not self._left(), "pods and claims are gone")
        await self.clock.advance(max(0.0, began + BATCH_SECONDS - self.clock.now()))

    def _running(self) -> int:
        pods = self.cluster.plane.store.list("pods", None)[0]
        return sum(each.object.get("status", {}).get("phase") == "Running" for each in pods)

    def _left(self) -> int:
        store = self.cluster.plane.store
        return store.count("pods") + store.count("resourceclaims.resource.k8s.io")

    async def _until(self, is_so: Callable[[], bool], what: str) -> None:
        latest = self.clock.now() + PATIENCE_SECONDS
        while not is_so():
            assert self.clock.now() < latest, f"never: {what}"
            await self.clock.advance(0.5)


@asynccontextmanager
async def soaking(**bounds: Any) -> AsyncIterator[Soak]:
    """A cluster with these among its options."""
    clock = VirtualClock()
    async with embedded(PlaneOptions(clock=clock, **bounds)) as cluster:
        client = cluster.client
        for name in ("a", "b"):
            await client.create(NODES, virtual_node(name))
            await client.create(SLICES, _slice(name))
        await client.create(CLASSES, _class())
        await client.create(TEMPLATES, _template())
        await clock.advance(1)
        yield Soak(cluster, clock)


def _slice(node: str) -> Raw:
    devices = [{"name": f"gpu-{number}"} for number in range(DEVICES)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices}
    return {"metadata": {"name": node}, "spec": spec}


def _class() -> Raw:
    expression = "device.driver == 'gpu.example.com'"
    return {
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def _template() -> Raw:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    return {"metadata": {"name": "gpu", "namespace": "default"}, "spec": spec}


def _pod(name: str) -> Raw:
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    spec = {"containers": [container], "resourceClaims": claims}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


if __name__ == "__main__":
    sys.exit(main())
