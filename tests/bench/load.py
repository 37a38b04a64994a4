"""Work that is given to an API server, whichever it is, and how long it takes."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.client.client import Client
from dryrack.client.endpoints import CONFIG_MAPS, NODES, PODS, SLICES
from dryrack.client.https import connected
from dryrack.client.kubeconfig import load
from dryrack.cluster.ports import SystemClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw


CONNECTIONS = 64
WATCHERS = 50


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers of objects."""

    creates: int = 10_000
    gets: int = 5_000
    events: int = 300
    nodes: int = 5_000
    slices: int = 5_000
    pods: int = 25_000


@asynccontextmanager
async def talking_to(kubeconfig: Path) -> AsyncIterator[Client]:
    async with connected(load([kubeconfig], SystemClock())) as transport:
        yield Client(transport, agent="bench")


async def timed(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


async def at_once(count: int, one: Callable[[int], Awaitable[object]]) -> None:
    """Does something for each number, over as many connections at once as there are."""

    async def some(start: int) -> None:
        for number in range(start, count, CONNECTIONS):
            await one(number)

    async with asyncio.TaskGroup() as group:
        for start in range(min(CONNECTIONS, count)):
            group.create_task(some(start))


async def create_slices(client: Client, count: int, prefix: str) -> None:
    await at_once(count, lambda n: client.create(SLICES, device_slice(f"{prefix}-{n}")))


async def get_slices(client: Client, count: int, prefix: str, there: int) -> None:
    await at_once(count, lambda n: client.get(SLICES, f"{prefix}-{n % there}"))


async def list_slices(client: Client) -> None:
    await client.list(SLICES)


async def fan_out(client: Client, events: int) -> None:
    """Every one of many watchers sees every change."""
    listing = await client.list(CONFIG_MAPS)

    async def watcher() -> None:
        seen = 0
        async with client.watch(CONFIG_MAPS, revision=listing.revision) as stream:
            async for _ in stream:
                seen += 1
                if seen == events:
                    return

    async with asyncio.TaskGroup() as group:
        for _ in range(WATCHERS):
            group.create_task(watcher())
        await at_once(events, lambda n: client.create(CONFIG_MAPS, _config_map(n)))


async def populate(client: Client, sizes: Sizes) -> None:
    """A cluster of some size, all at rest."""
    for endpoint, count, make in (
        (NODES, sizes.nodes, _node),
        (SLICES, sizes.slices, lambda n: device_slice(f"populated-{n}")),
        (PODS, sizes.pods, _pod),
    ):
        await _create_all(client, endpoint, (make(number) for number in range(count)))


async def _create_all(client: Client, endpoint: Endpoint, objects: Iterable[Raw]) -> None:
    rest = list(objects)
    await at_once(len(rest), lambda n: client.create(endpoint, rest[n]))


def device_slice(name: str) -> Raw:
    """About 2 kB: four GPUs as a vendor describes them."""
    attributes = {
        "type": {"string": "gpu"},
        "productName": {"string": "NVIDIA H100 80GB HBM3"},
        "architecture": {"string": "Hopper"},
        "cudaComputeCapability": {"version": "9.0.0"},
    }
    capacity = {"memory": {"value": "81559Mi"}}
    devices = [
        {"name": f"gpu-{index}", "attributes": attributes, "capacity": capacity}
        for index in range(4)
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": name, "pool": pool, "devices": devices}
    return {"metadata": {"name": name}, "spec": spec}


def _config_map(number: int) -> Raw:
    return {"metadata": {"name": f"fan-{number}", "namespace": "default"}, "data": {"a": "b"}}


def _node(number: int) -> Raw:
    return {"metadata": {"name": f"populated-{number}"}}


def _pod(number: int) -> Raw:
    # A gate keeps it from every scheduler.
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "schedulingGates": [{"name": "example.com/rest"}],
    }
    return {"metadata": {"name": f"populated-{number}", "namespace": "default"}, "spec": spec}


def kwok_node(name: str) -> Raw:
    """A node of the instance type that the devices are for."""
    metadata = {
        "name": name,
        "labels": {"node.kubernetes.io/instance-type": "bench"},
        "annotations": {"kwok.x-k8s.io/node": "fake"},
    }
    return {"metadata": metadata}


def memory(pid: int) -> float:
    """Resident memory of a process, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(each for each in status.splitlines() if each.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024.0
