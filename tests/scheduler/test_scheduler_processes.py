"""
Schedulers as processes on a real API server: killed without warning, taken over, and side by side.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter, defaultdict
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from tests.publisher.real_publisher import until
from tests.realcluster.controlplane import Options
from tests.scheduler.real_scheduler import grant, start_scheduler

from dryrack.client.client import Client
from dryrack.client.endpoints import CLAIMS, CLASSES, LEASES, NODES, PODS, SLICES, TEMPLATES
from dryrack.client.https import connected
from dryrack.client.kubeconfig import load
from dryrack.cluster.ports import SystemClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
    from pathlib import Path

    from tests.realcluster.cluster import Cluster
    from tests.realcluster.fixtures import StartCluster

    from dryrack.kinds.raw import Raw

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


GROUP = "pod-group.scheduling.kubenexus.io"
NODE_COUNT = 3
DEVICES = 10
GANG_SIZE = 3
# One more than there are devices for.
GANGS = NODE_COUNT * DEVICES // GANG_SIZE + 1
DEATHS = 8
SECONDS_MAX = 120.0
# It has started, and there is nothing left to write.
SILENCE_SECONDS_MAX = 5.0


async def create_objects(client: Client) -> None:
    """Nodes with devices, a class, and a template for one of them."""
    allocatable = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    await client.create(CLASSES, {"metadata": {"name": "gpu.example.com"}})
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]
    template = {"spec": {"devices": {"requests": requests}}}
    metadata = {"name": "one", "namespace": "default"}
    await client.create(TEMPLATES, {"metadata": metadata, "spec": template})
    for name in (f"node-{number}" for number in range(NODE_COUNT)):
        status = {"allocatable": allocatable, "capacity": allocatable}
        await client.create(NODES, {"metadata": {"name": name}, "status": status})
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"gpu-{number}"} for number in range(DEVICES)]
        spec = {"driver": "gpu.example.com", "nodeName": name, "pool": pool, "devices": devices}
        await client.create(SLICES, {"metadata": {"name": name}, "spec": spec})


def pod(name: str, scheduler: str, labels: Raw | None = None) -> Raw:
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    spec = {
        "schedulerName": scheduler,
        "containers": [container],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
    }
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": spec,
    }


def gang(name: str, scheduler: str) -> list[Raw]:
    labels = {f"{GROUP}/name": name, f"{GROUP}/min-available": str(GANG_SIZE)}
    return [pod(f"{name}-{number}", scheduler, labels) for number in range(GANG_SIZE)]


@dataclass(slots=True)
class Watcher:
    """Sees all pods and claims as they change; `wrong` is what must never be."""

    pods: dict[str, Raw] = field(default_factory=dict)
    claims: dict[str, Raw] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    async def watch(self, client: Client) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(client, PODS, self.pods))
            group.create_task(self._follow(client, CLAIMS, self.claims))

    async def _follow(self, client: Client, endpoint: Any, objects: dict[str, Raw]) -> None:
        async with client.watch(endpoint, revision="0") as events:
            async for event in events:
                if event.type == "BOOKMARK":
                    continue
                name = event.object["metadata"]["name"]
                objects.pop(name, None)
                if event.type != "DELETED":
                    objects[name] = event.object
                self._check()
                self.moved.set()

    def _check(self) -> None:
        """Two schedulers may write the same for a moment, but no pod is bound with it."""
        users = {uid for each in self.pods.values() if (uid := _uid_on_node(each))}
        used = self.allocated_devices(
            [each for each in self.claims.values() if _users(each) & users]
        )
        twice = [device for device, count in used.items() if count > 1]
        if twice:
            self.wrong.append(f"used twice: {', '.join(sorted(twice))}")

    def allocated_devices(self, claims: Iterable[Raw] | None = None) -> Counter[str]:
        """Return the number of claims of each device."""
        return Counter(
            f"{result['pool']}/{result['device']}"
            for claim in (self.claims.values() if claims is None else claims)
            for result in _results(claim)
        )

    def bound(self) -> dict[str, int]:
        """Return the number of members with a node, by gang."""
        found: dict[str, int] = defaultdict(int)
        for each in self.pods.values():
            name = each["metadata"]["labels"][f"{GROUP}/name"]
            found[name] += bool(each["spec"].get("nodeName"))
        return found

    def leaks(self) -> list[str]:
        """Claims that have devices, and no pod on a node that uses them."""
        on_nodes = {uid for each in self.pods.values() if (uid := _uid_on_node(each))}
        return [
            name
            for name, claim in self.claims.items()
            if _results(claim) and not _users(claim) & on_nodes
        ]


def _uid_on_node(pod: Raw) -> str:
    return str(pod["metadata"]["uid"]) if pod["spec"].get("nodeName") else ""


def _users(claim: Raw) -> set[str]:
    return {user["uid"] for user in claim.get("status", {}).get("reservedFor", ())}


def _results(claim: Raw) -> list[Raw]:
    allocation = claim.get("status", {}).get("allocation") or {}
    return list(allocation.get("devices", {}).get("results", ()))


def played(kubeconfig: Path, story: Callable[[Client, Watcher], Awaitable[None]]) -> None:
    """Run a story on a cluster that is watched."""

    async def run() -> None:
        watcher = Watcher()
        async with (
            connected(load([kubeconfig], SystemClock())) as transport,
            asyncio.timeout(SECONDS_MAX * 2),
        ):
            client = Client(transport)
            await create_objects(client)
            watching = asyncio.create_task(watcher.watch(client))
            await story(client, watcher)
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        assert watcher.wrong == []

    asyncio.run(run())


def test_no_death_leaves_half_a_gang_or_a_device_that_nobody_uses(
    start_cluster: StartCluster,
) -> None:
    """Killed between any two writes, the next one finishes or undoes what was begun."""
    cluster = start_cluster(Options(with_scheduler=False))
    limited = grant(cluster)

    async def story(client: Client, watcher: Watcher) -> None:
        chance = random.Random(13)
        names = [f"gang-{number}" for number in range(GANGS)]
        for number, name in enumerate(names):
            for each in gang(name, "dryrack"):
                await client.create(PODS, each)
            if number >= GANGS - DEATHS:
                await _short_life(limited, watcher, writes=chance.randrange(1, 12))
        async with scheduler(limited), asyncio.timeout(SECONDS_MAX):
            while sorted(watcher.bound().values()) != [0] + [GANG_SIZE] * (GANGS - 1):
                watcher.moved.clear()
                await watcher.moved.wait()
        assert watcher.leaks() == []
        assert len(watcher.allocated_devices()) == NODE_COUNT * DEVICES

    played(cluster.plane.kubeconfig, story)


async def _short_life(kubeconfig: Path, watcher: Watcher, *, writes: int) -> None:
    """A scheduler that is killed after so many of its writes were seen."""
    async with scheduler(kubeconfig):
        with suppress(TimeoutError):
            for _ in range(writes):
                watcher.moved.clear()
                await asyncio.wait_for(watcher.moved.wait(), SILENCE_SECONDS_MAX)


@asynccontextmanager
async def scheduler(kubeconfig: Path) -> AsyncIterator[None]:
    """One that dies with the block, without warning."""
    addresses = ("--metrics-address", "0", "--health-address", "0", "--no-leader-elect")
    command = (sys.executable, "-m", "dryrack", "schedule", "--kubeconfig", str(kubeconfig))
    nowhere = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command, *addresses, stdout=nowhere, stderr=nowhere
    )
    try:
        yield
    finally:
        process.kill()
        await process.wait()


def test_the_second_scheduler_goes_on_when_the_first_is_killed(start_cluster: StartCluster) -> None:
    """Only one schedules at a time; a lease that is not renewed goes to the other."""
    cluster = start_cluster(Options(with_scheduler=False))
    first = start_scheduler(cluster, name="first")
    until(lambda: _holder(cluster) != "")
    leader = _holder(cluster)
    start_scheduler(cluster, name="second")

    async def story(client: Client, watcher: Watcher) -> None:
        for each in gang("early", "dryrack"):
            await client.create(PODS, each)
        await _bound(watcher, "early")
        assert _holder(cluster) == leader
        cluster.processes.kill(first)
        for each in gang("late", "dryrack"):
            await client.create(PODS, each)
        await _bound(watcher, "late")
        assert _holder(cluster) not in ("", leader)

    played(cluster.plane.kubeconfig, story)


def test_schedulers_of_two_names_work_side_by_side(start_cluster: StartCluster) -> None:
    """Each has its own lease and its own pods; no device goes to both."""
    cluster = start_cluster(Options())
    start_scheduler(cluster, "--name", "red", name="red")
    start_scheduler(cluster, "--name", "blue", name="blue")

    async def story(client: Client, watcher: Watcher) -> None:
        gangs = {f"{colour}-{number}": colour for number in range(5) for colour in ("red", "blue")}
        for name, colour in gangs.items():
            for each in gang(name, colour):
                await client.create(PODS, each)
        for name in gangs:
            await _bound(watcher, name)
        leases = (await client.list(LEASES)).items
        names = {each["metadata"]["name"] for each in leases}
        assert {"red-scheduler", "blue-scheduler"} <= names
        assert len(watcher.allocated_devices()) == NODE_COUNT * DEVICES

    played(cluster.plane.kubeconfig, story)


async def _bound(watcher: Watcher, name: str) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while watcher.bound().get(name, 0) < GANG_SIZE:
            watcher.moved.clear()
            await watcher.moved.wait()


def _holder(cluster: Cluster) -> str:
    path = "jsonpath={.spec.holderIdentity}"
    asked = ("lease", "dryrack-scheduler", "-n", "kube-system", "-o", path)
    return cluster.plane.kubectl("get", *asked).stdout
