"""Builders of objects, and clusters with a scheduler, for the tests of the scheduler."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.replay import CountingChance
from tests.scheduler.gang_scenes import NAMESPACE, lone
from tests.scheduler.waiting import is_so_at_last

from dryrack.apiserver.runtime_config import RuntimeConfig
from dryrack.client.client import Client, Selection
from dryrack.client.endpoints import (
    CLAIMS,
    CLASSES,
    EVENTS,
    NODES,
    POD_GROUPS,
    POD_GROUPS_V1BETA1,
    PODS,
    SLICES,
)
from dryrack.client.errors import TransportError
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.cluster.ports import SystemClock
from dryrack.kinds.releases import Release
from dryrack.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from tests.stage import Stage

    from dryrack.client.endpoints import Endpoint
    from dryrack.client.transport import Request, Response, Transport
    from dryrack.kinds.raw import Raw

DEVICES = 2
CONTAINER: Raw = {"name": "c", "image": "i"}


@dataclass(slots=True)
class FailingTransport:
    """Fails writes with these numbers, or to a path, before or after they take effect."""

    inner: Transport
    numbers: frozenset[int] = frozenset()
    path_end: str = "/none"
    after: bool = False
    writes: list[str] = field(default_factory=list)

    async def send(self, request: Request) -> Response:
        if request.method == "GET":
            return await self.inner.send(request)
        self.writes.append(f"{request.method} {request.path}")
        fails = len(self.writes) - 1 in self.numbers or request.path.endswith(self.path_end)
        if fails and not self.after:
            raise TransportError("the connection was lost before the request was sent")
        response = await self.inner.send(request)
        if fails:
            raise TransportError("the connection was lost before the answer came")
        return response


async def create_objects(client: Client, pods: int) -> None:
    """Create a node with devices, a class, and pods that each have a claim for one device."""
    allocatable = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    await client.create(NODES, {"metadata": {"name": "n"}})
    node = await client.get(NODES, "n")
    await client.update(
        NODES, {**node, "status": {"allocatable": allocatable}}, subresource="status"
    )
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"d{number}"} for number in range(DEVICES)]
    spec = {"driver": "x.example.com", "nodeName": "n", "pool": pool, "devices": devices}
    await client.create(SLICES, {"metadata": {"name": "s"}, "spec": spec})
    await client.create(CLASSES, {"metadata": {"name": "c"}})
    for number in range(pods):
        metadata = {"name": f"p{number}", "namespace": "default"}
        requests = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
        claim = {"metadata": metadata, "spec": {"devices": {"requests": requests}}}
        await client.create(CLAIMS, claim)
        container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "r"}]}}
        claims = [{"name": "r", "resourceClaimName": metadata["name"]}]
        pod_spec = {"containers": [container], "resourceClaims": claims}
        await client.create(PODS, {"metadata": metadata, "spec": pod_spec})


async def all_bound(client: Client) -> bool:
    pods = (await client.list(PODS)).items
    return all(pod["spec"].get("nodeName") for pod in pods)


async def allocated_devices(client: Client) -> list[str]:
    """Return the devices of all claims, one entry for each claim that has the device."""
    claims = (await client.list(CLAIMS)).items
    return [
        result["device"]
        for claim in claims
        for result in claim["status"].get("allocation", {}).get("devices", {}).get("results", [])
    ]


@dataclass(slots=True)
class RecordingTransport:
    """Records every request."""

    inner: Transport
    requests: list[str] = field(default_factory=list)

    async def send(self, request: Request) -> Response:
        self.requests.append(f"{request.method} {request.path}")
        return await self.inner.send(request)


def with_scheduler(
    story: Callable[[EmbeddedCluster, RecordingTransport], Awaitable[None]],
    serving: RuntimeConfig | None = None,
) -> None:
    """Run a story on a cluster with a scheduler."""

    async def run() -> None:
        options = ControlPlaneOptions(
            chance=CountingChance(), runtime_config=serving or RuntimeConfig()
        )
        async with embedded(options, engines=()) as cluster:
            noting = RecordingTransport(cluster.transport)
            client = Client(noting, agent="scheduler")
            scheduler = Scheduler(client, clock=SystemClock(), chance=CountingChance())
            task = asyncio.create_task(scheduler.run(), name="scheduler")
            try:
                await story(cluster, noting)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


async def eventually(cluster: EmbeddedCluster, look: Callable[[], Awaitable[bool]]) -> None:
    assert await is_so_at_last(cluster, look), "it never came to that"


def user_of(claim: str, name: str) -> Raw:
    """Return a pod that uses a claim."""
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "r"}]}}
    claims = [{"name": "r", "resourceClaimName": claim}]
    spec = {"containers": [container], "resourceClaims": claims}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def pod(name: str, **spec: Any) -> Raw:
    metadata = {"name": name, "namespace": "default", "labels": {"app": "x"}}
    return {"metadata": metadata, "spec": {"containers": [CONTAINER], **spec}}


async def events_of(client: Client, name: str, reason: str) -> list[str]:
    events = (await client.list(EVENTS, Selection(namespace="default"))).items
    mine = [each for each in events if each["involvedObject"]["name"] == name]
    return sorted(each["message"] for each in mine if each["reason"] == reason)


async def wait_for_events(
    cluster: EmbeddedCluster, name: str, reason: str, messages: list[str]
) -> None:
    async def told() -> bool:
        return await events_of(cluster.client, name, reason) == messages

    await eventually(cluster, told)


async def is_bound(client: Client, name: str) -> bool:
    return bool((await client.get(PODS, name, "default"))["spec"].get("nodeName"))


GPU = "example.com/gpu"


def extended_resource_pod(name: str, amount: int = 1, resource: str = GPU) -> Raw:
    """Return a pod that requests devices by an extended resource."""
    amounts = {resource: str(amount)}
    resources = {"requests": amounts, "limits": amounts}
    container = {"name": "c", "image": "i", "resources": resources}
    metadata = {"name": name, "namespace": "default"}
    return {"metadata": metadata, "spec": {"containers": [container]}}


async def two_devices(stage: Stage) -> None:
    """Create a node with two devices, and a class with the extended resource."""
    await create_objects(stage.client, 0)
    spec = {"extendedResourceName": GPU}
    await stage.client.create(CLASSES, {"metadata": {"name": "gpu"}, "spec": spec})


async def claims(stage: Stage) -> list[Raw]:
    return list((await stage.client.list(CLAIMS)).items)


async def second_node(client: Client) -> None:
    """Create another node, "m", with the same devices as the first."""
    allocatable = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    node = await client.create(NODES, {"metadata": {"name": "m"}})
    await client.update(
        NODES, {**node, "status": {"allocatable": allocatable}}, subresource="status"
    )
    pool = {"name": "m", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"d{number}"} for number in range(2)]
    spec = {"driver": "x.example.com", "nodeName": "m", "pool": pool, "devices": devices}
    await client.create(SLICES, {"metadata": {"name": "m"}, "spec": spec})


@dataclass(frozen=True, slots=True, kw_only=True)
class Native:
    """The PodGroups of a release."""

    release: Release
    endpoint: Endpoint
    condition: str
    # The disruption mode of a group whose pods only go together.
    whole: Raw | str
    gates: Mapping[str, bool]

    @property
    def mark(self) -> pytest.MarkDecorator:
        """The options of a stage that serves them."""
        versions = RuntimeConfig({self.endpoint.api_version: True})
        return pytest.mark.stage(
            release=self.release, runtime_config=versions, feature_gates=self.gates
        )


NATIVES = (
    Native(
        release=Release.V1_36,
        endpoint=POD_GROUPS,
        condition="PodGroupScheduled",
        whole="PodGroup",
        gates={"GenericWorkload": True, "DRAWorkloadResourceClaims": True},
    ),
    Native(
        release=Release.V1_37,
        endpoint=POD_GROUPS_V1BETA1,
        condition="PodGroupInitiallyScheduled",
        whole={"all": {}},
        gates={"GenericWorkload": True, "DRAWorkloadResourceClaims": True},
    ),
)
EACH_NATIVE = pytest.mark.parametrize(
    "native", [pytest.param(each, marks=each.mark, id=each.release.value) for each in NATIVES]
)


def native_group(name: str, minimum: int) -> Raw:
    policy = {"gang": {"minCount": minimum}}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"schedulingPolicy": policy},
    }


def native_member(name: str, group: str) -> Raw:
    return lone(name, schedulingGroup={"podGroupName": group})


async def node(client: Client, name: str) -> None:
    made = await client.create(NODES, {"metadata": {"name": name}})
    allocatable = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    status = {**made, "status": {"allocatable": allocatable, "capacity": allocatable}}
    await client.update(NODES, status, subresource="status")


async def find_message(client: Client, name: str) -> str:
    conditions = (await client.get(PODS, name, "default"))["status"].get("conditions", [])
    return str(conditions[0]["message"]) if conditions else ""
