"""
Every write of the scheduler can fail, and nothing leaks.

The scheduler runs on an embedded plane through a transport that fails one chosen write, before
or after it took effect. Whatever fails, in the end every pod is bound with its device, and no
device is held by nobody.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.replay import CountingChance
from tests.scheduler.builders import (
    DEVICES,
    FailingTransport,
    all_bound,
    allocated_devices,
    create_objects,
)
from tests.scheduler.waiting import is_so_at_last

from dryrack.client.client import Client
from dryrack.client.endpoints import CLAIMS, PODS
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.cluster.ports import SystemClock
from dryrack.kinds.expansion.pod_claims import DELETE_PROTECTION
from dryrack.scheduler import Scheduler

if TYPE_CHECKING:
    from dryrack.client.transport import Request, Response, Transport
    from dryrack.kinds.raw import Raw


# The writes of one pod with one claim: finalizer, allocation, binding, event.
WRITES = 4


@dataclass(slots=True)
class Overtaking:
    """Another client writes to the claim of a pod just before its first status is written."""

    inner: Transport
    other: Client
    status: Raw
    has_begun: bool = False

    async def send(self, request: Request) -> Response:
        if request.path.endswith("/resourceclaims/p0/status") and not self.has_begun:
            self.has_begun = True
            claim = await self.other.get(CLAIMS, "p0", "default")
            pod = await self.other.get(PODS, "p0", "default")
            user = {"resource": "pods", "name": "p0", "uid": pod["metadata"]["uid"]}
            status = self.status | {"reservedFor": [user]}
            await self.other.update(CLAIMS, claim | {"status": status}, subresource="status")
        return await self.inner.send(request)


async def scheduled(transport: Transport, cluster: EmbeddedCluster, goal: Any) -> bool:
    """Runs a scheduler on the transport until the goal is reached."""
    client = Client(transport, agent="scheduler")
    scheduler = Scheduler(client, clock=SystemClock(), chance=CountingChance())
    task = asyncio.create_task(scheduler.run(), name="scheduler")
    try:
        return await is_so_at_last(cluster, lambda: goal(cluster.client))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(2 * WRITES))
def test_a_write_that_fails_once_is_made_good(number: int, *, after: bool) -> None:
    """Whichever write of two pods fails, both are bound in the end, each with its own device."""

    async def run() -> tuple[bool, list[str]]:
        options = ControlPlaneOptions(chance=CountingChance())
        async with embedded(options, engines=()) as cluster:
            await create_objects(cluster.client, DEVICES)
            failing = FailingTransport(cluster.transport, frozenset({number}), after=after)
            done = await scheduled(failing, cluster, all_bound)
            return done, await allocated_devices(cluster.client)

    done, devices = asyncio.run(run())

    assert done
    assert sorted(devices) == ["d0", "d1"]


def test_a_binding_that_always_fails_leaves_nothing_behind() -> None:
    """No device stays with a claim whose pod was never bound, and no pod in its reservations."""

    async def run() -> tuple[int, list[Raw]]:
        async with embedded(ControlPlaneOptions(chance=CountingChance()), engines=()) as cluster:
            await create_objects(cluster.client, 1)
            failing = FailingTransport(cluster.transport, path_end="/binding")

            async def tried(client: Client) -> bool:
                attempts = sum(write.endswith("/binding") for write in failing.writes)
                claims = (await client.list(CLAIMS)).items
                return attempts >= 2 and not any(c["status"].get("allocation") for c in claims)

            await scheduled(failing, cluster, tried)
            return len(failing.writes), list((await cluster.client.list(CLAIMS)).items)

    writes, claims = asyncio.run(run())

    assert writes > WRITES
    assert [claim["status"] for claim in claims] == [{}]


def test_more_pods_than_devices_wait_and_say_why() -> None:
    """The pod that does not fit gets the reason, and takes nothing from the others."""

    async def run() -> tuple[list[str], list[str]]:
        async with embedded(ControlPlaneOptions(chance=CountingChance()), engines=()) as cluster:
            await create_objects(cluster.client, DEVICES)
            extra = FailingTransport(cluster.transport)
            await scheduled(extra, cluster, all_bound)
            metadata = {"name": "late", "namespace": "default"}
            requests = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
            claim = {"metadata": metadata, "spec": {"devices": {"requests": requests}}}
            await cluster.client.create(CLAIMS, claim)
            container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "r"}]}}
            claims = [{"name": "r", "resourceClaimName": "late"}]
            spec = {"containers": [container], "resourceClaims": claims}
            await cluster.client.create(PODS, {"metadata": metadata, "spec": spec})

            async def told(client: Client) -> bool:
                return bool((await client.get(PODS, "late", "default"))["status"].get("conditions"))

            await scheduled(extra, cluster, told)
            late = await cluster.client.get(PODS, "late", "default")
            words = [each["message"] for each in late["status"]["conditions"]]
            protected = (await cluster.client.get(CLAIMS, "late", "default"))["metadata"]
            return words, protected.get("finalizers", [])

    words, finalizers = asyncio.run(run())

    assert words[0].startswith("0/1 nodes are available: 1 cannot allocate all claims.")
    assert "in use" in words[0] or "needs 1 device" in words[0]
    assert DELETE_PROTECTION not in finalizers


def test_what_another_scheduler_has_written_stays() -> None:
    """A claim that another one allocated for the pod meanwhile is used, and not taken from it."""
    result = {"request": "r", "driver": "x.example.com", "pool": "n", "device": "d1"}
    status = {"allocation": {"devices": {"results": [result]}}}

    async def run() -> tuple[bool, list[Raw]]:
        async with embedded(ControlPlaneOptions(chance=CountingChance()), engines=()) as cluster:
            await create_objects(cluster.client, 1)
            taken: list[Raw] = []
            cluster.plane.store.subscribe(
                CLAIMS.resource, lambda event: taken.append(event.stored.object.get("status", {}))
            )
            overtaking = Overtaking(cluster.transport, cluster.client, status)
            done = await scheduled(overtaking, cluster, all_bound)
            return done, taken

    done, statuses = asyncio.run(run())

    assert done
    first = statuses.index(next(each for each in statuses if each))
    devices = [
        each.get("allocation", {}).get("devices", {}).get("results", [{}])[0].get("device")
        for each in statuses[first:]
    ]
    assert set(devices) == {"d1"}
