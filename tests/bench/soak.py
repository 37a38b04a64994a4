"""
A soak: many short pods with claims through one plane, and what is left of them.

    python -m tests.bench.soak [--pods N]

Pods come in batches, each with a claim from a template, on a whole embedded cluster in virtual
time. Half of a batch are pods of a Job, which is deleted when it is complete; the others are
deleted when they run. When pods and claims are gone the next batch comes, a minute after the
last. What a cluster keeps for a while, as watch logs and Events, is at its bound after the first
tenth: with fewer pods than usual these bounds are lower. Caches of the process fill up with the
first thousands. Memory after each tenth is printed; if the last is much above the fifth, the exit
code is 1.
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

from dryrack.apiserver.verbs.event_expiry import EVENT_SECONDS
from dryrack.base.limits import WATCH_LOG_EVENTS_MAX
from dryrack.client.endpoints import CLASSES, JOBS, NODES, PODS, SLICES, TEMPLATES
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.cluster.initial_objects import virtual_node
from dryrack.store import Key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from dryrack.kinds.raw import Raw


PODS_MAX = 100_000
TENTHS = 10
# Two nodes have a device for each pod of a batch.
BATCH = 64
DEVICES = 32
BATCH_SECONDS = 60.0
# Caches with a bound of their own may still fill up; a thing that is kept of each pod is more.
GROWTH_MAX = 0.03
# A batch takes some seconds of the clock; one that takes more than this is stuck.
PATIENCE_SECONDS = 600.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.soak")
    parser.add_argument("--pods", type=int, default=PODS_MAX, metavar="N", help="how many")
    wanted = parser.parse_args()
    grown = run_virtual(_soaked(max(1, wanted.pods // BATCH // TENTHS)))
    sys.stdout.write(f"grown by {grown:.1%} since the half (at most {GROWTH_MAX:.0%})\n")
    return 0 if grown <= GROWTH_MAX else 1


async def _soaked(batches: int) -> float:
    """By how much the memory has grown from the half to the last."""
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
    return sizes[-1] / sizes[TENTHS // 2 - 1] - 1


@dataclass(slots=True)
class Soak:
    """A cluster with capacity for a batch of pods."""

    cluster: EmbeddedCluster
    clock: VirtualClock
    _made: int = field(default=0)

    async def batch(self, size: int = BATCH) -> None:
        """Pods come, run, and go with their claims; a minute passes."""
        client = self.cluster.client
        began = self.clock.now()
        job = f"job-{self._made}"
        half = size // 2
        names = [f"pod-{self._made + number}" for number in range(half)]
        self._made += size
        await client.create(JOBS, _job(job, half))
        for name in names:
            await client.create(PODS, _named(name) | {"spec": _pod_spec()})
        await self._until(lambda: self._running(names) == half, "pods run")
        await self._until(lambda: self._is_complete(job), "the Job is complete")
        await client.delete(JOBS, job, namespace="default", propagation="Background")
        for name in names:
            await client.delete(PODS, name, namespace="default", grace_seconds=1)
        await self._until(lambda: not self._left(), "pods and claims are gone")
        await self.clock.advance(max(0.0, began + BATCH_SECONDS - self.clock.now()))

    def _running(self, names: Sequence[str]) -> int:
        found = (self._status("pods", name) for name in names)
        return sum(status.get("phase") == "Running" for status in found)

    def _is_complete(self, job: str) -> bool:
        conditions = self._status("jobs.batch", job).get("conditions") or ()
        return any(each["type"] == "Complete" for each in conditions)

    def _status(self, resource: str, name: str) -> Raw:
        stored = self.cluster.plane.store.get(Key(resource, "default", name))
        return stored.object.get("status") or {} if stored is not None else {}

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
    async with embedded(ControlPlaneOptions(clock=clock, **bounds)) as cluster:
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
    return _named("gpu") | {"spec": {"spec": {"devices": {"requests": [request]}}}}


def _job(name: str, pods: int) -> Raw:
    template = {"spec": _pod_spec() | {"restartPolicy": "Never"}}
    return _named(name) | {"spec": {"completions": pods, "parallelism": pods, "template": template}}


def _pod_spec() -> Raw:
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    return {"containers": [container], "resourceClaims": claims}


def _named(name: str) -> Raw:
    return {"metadata": {"name": name, "namespace": "default"}}


if __name__ == "__main__":
    sys.exit(main())
