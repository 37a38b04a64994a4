"""DeviceTaintRules of Kubernetes 1.37, which serves them only in resource.k8s.io/v1."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from tests.client.planes import CountedChance, refusal
from tests.scheduler.builders import all_bound, allocated_devices, create_objects, eventually

from dryrack.apiserver.runtime_config import RuntimeConfig
from dryrack.client.client import EVERYTHING, Client
from dryrack.client.endpoints import PODS, TAINT_RULES
from dryrack.client.timekeeping import VirtualClock, settle
from dryrack.client.transport import Request, Response
from dryrack.cluster import follow_snapshots, read_snapshot
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.cluster.ports import SystemClock
from dryrack.dashboard.live import Live
from dryrack.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.client.transport import Transport
    from dryrack.kinds.raw import Raw

GROUP = "/apis/resource.k8s.io"
RULE: Raw = {
    "metadata": {"name": "drain"},
    "spec": {
        "deviceSelector": {"device": "d1"},
        "taint": {"key": "drain", "effect": "NoSchedule"},
    },
}


@dataclass(frozen=True, slots=True)
class OnlyV1:
    """The way to a server with DeviceTaintRules in v1beta2, as if it were 1.37."""

    inner: Transport

    async def send(self, request: Request) -> Response:
        if request.path.startswith(f"{GROUP}/v1beta2"):
            return refusal(404, "NotFound")
        rules = f"{GROUP}/v1/devicetaintrules"
        if request.path.startswith(rules):
            path = request.path.replace("/v1/", "/v1beta2/")
            sent = (request.query, request.headers, request.body, request.user)
            return await self.inner.send(Request(request.method, path, *sent))
        response = await self.inner.send(request)
        if request.path != f"{GROUP}/v1" or response.status != 200:
            return response
        assert isinstance(response.body, bytes)
        document = msgspec.json.decode(response.body)
        verbs = ["create", "delete", "get", "list", "patch", "update", "watch"]
        served = {"name": "devicetaintrules", "namespaced": False, "kind": "DeviceTaintRule"}
        document["resources"].append({**served, "verbs": verbs})
        return Response(response.status, response.headers, msgspec.json.encode(document))


def on_cluster(story: Callable[[EmbeddedCluster, Client], Awaitable[None]]) -> None:
    """Run a story with a client of a cluster that serves the rules only in v1."""

    async def run() -> None:
        serving = RuntimeConfig({"resource.k8s.io/v1beta2": True})
        options = ControlPlaneOptions(chance=CountedChance(), runtime_config=serving)
        async with embedded(options, engines=()) as cluster:
            await story(cluster, Client(OnlyV1(cluster.transport)))

    asyncio.run(run())


def test_the_scheduler_reads_them() -> None:
    """A rule keeps a Pod from a device until the rule is deleted."""

    async def story(cluster: EmbeddedCluster, client: Client) -> None:
        scheduler = Scheduler(client, clock=SystemClock(), chance=CountedChance())
        async with asyncio.TaskGroup() as group:
            task = group.create_task(scheduler.run())
            await cluster.client.create(TAINT_RULES, RULE)
            await create_objects(cluster.client, 2)

            async def one_is_refused() -> bool:
                pods = (await cluster.client.list(PODS)).items
                return any(each["status"].get("conditions") for each in pods)

            await eventually(cluster, one_is_refused)
            assert await allocated_devices(cluster.client) == ["d0"]
            await cluster.client.delete(TAINT_RULES, "drain")
            await eventually(cluster, lambda: all_bound(cluster.client))
            task.cancel()

    on_cluster(story)


def test_snapshots_contain_them() -> None:
    """`explain`, `devices` and `record` read a snapshot; --watch follows one."""

    async def story(cluster: EmbeddedCluster, client: Client) -> None:
        await cluster.client.create(TAINT_RULES, RULE)
        found = (await read_snapshot(client, (TAINT_RULES,))).objects
        assert [each.metadata.name for each in found] == ["drain"]
        shown: list[int] = []
        followed = asyncio.Event()

        def note(objects: object) -> None:
            assert isinstance(objects, list)
            shown.append(len(objects))
            followed.set()

        task = asyncio.create_task(follow_snapshots(client, (TAINT_RULES,), EVERYTHING, note))
        await followed.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert shown == [1]

    on_cluster(story)


def test_the_dashboard_watches_them() -> None:
    """They are among the kinds of the page."""

    async def story(cluster: EmbeddedCluster, client: Client) -> None:
        await cluster.client.create(TAINT_RULES, RULE)
        live = Live(client, clock=VirtualClock(), chance=CountedChance())
        async with asyncio.TaskGroup() as group:
            task = group.create_task(live.run())
            await live.look()
            await settle(50)
            assert [each["metadata"]["name"] for each in live.objects(TAINT_RULES)] == ["drain"]
            task.cancel()

    on_cluster(story)
