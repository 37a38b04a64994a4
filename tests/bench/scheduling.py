"""
The cost of a pod for the scheduler, by the size of the cluster.

    python -m tests.bench.scheduling [--nodes N ...] [--pods N]

Each node has eight devices that all differ, each pod a claim for one. First the decision alone,
then a scheduler on an embedded plane, from the first pod to the last binding, with all that the
API server does for each. Times are what the process used of the processor.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from dryrack.allocation import LiveAllocator
from dryrack.client.endpoints import CLAIMS, CLASSES, NODES, PODS, SLICES
from dryrack.cluster.embedded import embedded
from dryrack.cluster.ports import SystemChance
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import DeviceClass, ResourceClaim, ResourceSlice
from dryrack.placement import Cluster, Fleet, Occupant, Placed, place

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw
    from dryrack.store import Event, Store


FLEETS = (1_000, 5_000, 10_000)
PODS_MAX = 10_000
DEVICES = 8
_EXPRESSION = (
    "device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].memory > 1"
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scheduling")
    parser.add_argument("--nodes", type=int, nargs="+", default=FLEETS)
    parser.add_argument("--pods", type=int, default=PODS_MAX)
    given = parser.parse_args()
    table = Table(title="Scheduling, per pod", title_justify="left", box=None)
    for heading in ("nodes", "pods", "decided", "for a tenth of the nodes", "bound, in process"):
        table.add_column(heading, justify="right")
    for nodes in given.nodes:
        pods = min(given.pods, DEVICES * nodes // 10)
        alone = decided(nodes, pods)
        choosy = decided(nodes, pods, zone="zone-3")
        bound = asyncio.run(scheduled(nodes, pods))
        cells = (f"{each * 1e6:.0f} µs" for each in (alone, choosy, bound))
        table.add_row(str(nodes), str(pods), *cells)
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    return 0


def decided(nodes: int, pods: int, *, zone: str = "") -> float:
    """Processor seconds per pod, from its claim to the devices it is given."""
    # What the part before has left is not collected at the cost of this one.
    gc.collect()
    fleet = Fleet()
    allocator = LiveAllocator(chance=SystemChance())
    allocator.put_class(decode(_class(), DeviceClass))
    for number in range(nodes):
        fleet.put(decode(_node(number), Node))
        allocator.put_slice(decode(_slice(number), ResourceSlice))
    cluster = Cluster(fleet, allocator)
    seconds = 0.0
    for number in range(pods):
        pod = decode(_pod(number, zone), Pod)
        claim = decode(_claim(number), ResourceClaim)
        began = time.process_time()
        placed = place(pod, (claim,), (), cluster)
        assert isinstance(placed, Placed), placed
        fleet.add_pod(number, placed.node, Occupant.of(pod, amounts=placed.amounts))
        allocator.set_allocation(claim.metadata.name, placed.allocations[0])
        seconds += time.process_time() - began
    return seconds / pods


async def scheduled(nodes: int, pods: int) -> float:
    """Processor seconds per pod on a plane."""
    every = (
        "kubelet",
        "taint-eviction",
        "nodes",
        "garbage-collector",
        "claims",
        "daemonsets",
        "slices",
    )
    async with embedded(without=every) as cluster:
        client = cluster.client
        await client.create(CLASSES, _class())
        for number in range(nodes):
            made = await client.create(NODES, _node(number))
            status = {**made, "status": _node(number)["status"]}
            await client.update(NODES, status, subresource="status")
            await client.create(SLICES, _slice(number))
        # As `dryrack up` does when it is up: else the collector goes through the whole fleet.
        gc.collect()
        gc.freeze()
        bound = _Bound(cluster.plane.store, pods)
        began = time.process_time()
        for number in range(pods):
            await client.create(CLAIMS, _claim(number))
            await client.create(PODS, _pod(number, ""))
        await bound.all.wait()
        used = time.process_time() - began
        gc.unfreeze()
        return used / pods


class _Bound:
    """Counts pods that have got their node; asking for all of them would cost more than they."""

    def __init__(self, store: Store, count: int) -> None:
        self.all = asyncio.Event()
        self._left = count
        store.subscribe("pods", self._changed)

    def _changed(self, event: Event) -> None:
        before = event.previous.object["spec"] if event.previous else {}
        if event.stored.object["spec"].get("nodeName") and not before.get("nodeName"):
            self._left -= 1
            if not self._left:
                self.all.set()


def _class() -> Raw:
    return {
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": _EXPRESSION}}]},
    }


def _node(number: int) -> Raw:
    labels = {"zone": f"zone-{number % 10}"}
    allocatable = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    metadata = {"name": f"node-{number:05}", "labels": labels}
    return {"metadata": metadata, "status": {"allocatable": allocatable, "capacity": allocatable}}


def _slice(number: int) -> Raw:
    name = f"node-{number:05}"
    devices = [
        {
            "name": f"gpu-{index}",
            "attributes": {"uuid": {"string": f"gpu-{number}-{index}"}, "memory": {"int": 80}},
        }
        for index in range(DEVICES)
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": name, "pool": pool, "devices": devices}
    return {"metadata": {"name": name}, "spec": spec}


def _claim(number: int) -> Raw:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    return {"metadata": {"name": f"claim-{number}", "namespace": "default"}, "spec": spec}


def _pod(number: int, zone: str) -> Raw:
    resources = {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}
    spec: Raw = {
        "containers": [{"name": "c", "image": "i", "resources": resources}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": f"claim-{number}"}],
    }
    if zone:
        spec["nodeSelector"] = {"zone": zone}
    return {"metadata": {"name": f"pod-{number}", "namespace": "default"}, "spec": spec}


if __name__ == "__main__":
    sys.exit(main())
