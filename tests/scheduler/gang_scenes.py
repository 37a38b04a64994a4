"""
Gangs on an embedded plane in virtual time, and what must be true of them at rest.

A scene has nodes with devices and all controllers; the scheduler is the scene's own, so that it
can be stopped, started, doubled, or cut off from the plane at any write.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.apiserver.replay import CountingChance
from tests.controllers import scenes

from dryrack.apiserver.runtime_config import RuntimeConfig
from dryrack.client.client import Client, Selection
from dryrack.client.endpoints import CLAIMS, EVENTS, NODES, PODS, TEMPLATES, Endpoint
from dryrack.client.errors import TransportError
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.scenario.checkers import check
from dryrack.scenario.invariants.violations import Invariant
from dryrack.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from dryrack.client.transport import Request, Response, Transport
    from dryrack.cluster.embedded import EmbeddedCluster

Raw = dict[str, Any]

NAMESPACE = "default"
PREFIX = "pod-group.scheduling.kubenexus.io"
PRIORITY_CLASSES = Endpoint(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", is_namespaced=False
)
# By then everything that waits for a moment has had it.
A_WHILE = 30.0


def member(name: str, gang: str, minimum: int, **spec: Any) -> Raw:
    """A pod of a gang, with one device by a template."""
    labels = {f"{PREFIX}/name": gang, f"{PREFIX}/min-available": str(minimum)}
    return lone(name, **spec) | {
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels}
    }


def lone(name: str, **spec: Any) -> Raw:
    """A pod with one device by a template."""
    container = {**scenes.POD_SPEC["containers"][0], "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    base = {"containers": [container], "resourceClaims": claims}
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": base | spec}


def claimless(name: str, gang: str, minimum: int, cpu: str = "1") -> Raw:
    """A pod of a gang that wants processors and no devices."""
    container = {**scenes.POD_SPEC["containers"][0], "resources": {"requests": {"cpu": cpu}}}
    pod = member(name, gang, minimum)
    return pod | {"spec": {"containers": [container]}}


@dataclass(slots=True)
class Faulty:
    """A way to the plane that fails at one write, or is dead from one write on."""

    inner: Transport
    fails_at: int = -1
    dies_at: int = -1
    # Whether the write takes effect before it fails.
    after: bool = False
    # What is done just before a write, by its number.
    before: Callable[[int, Request], Awaitable[None]] | None = None
    writes: list[str] = field(default_factory=list)

    async def send(self, request: Request) -> Response:
        number = len(self.writes)
        if 0 <= self.dies_at < number:
            raise TransportError("dead")
        if request.method == "GET":
            return await self.inner.send(request)
        self.writes.append(f"{request.method} {request.path}")
        if self.before is not None:
            await self.before(number, request)
        is_hit = number in (self.fails_at, self.dies_at)
        if is_hit and not self.after:
            raise TransportError("the connection was lost before the request was sent")
        response = await self.inner.send(request)
        if is_hit:
            raise TransportError("the connection was lost before the answer came")
        return response


@dataclass(slots=True)
class Scene:
    """A plane, its clock, and the schedulers that run."""

    cluster: EmbeddedCluster
    clock: VirtualClock
    running: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def client(self) -> Client:
        return self.cluster.client

    def start(self, transport: Transport | None = None) -> asyncio.Task[None]:
        """Another scheduler."""
        client = Client(transport or self.cluster.transport, agent="scheduler")
        scheduler = Scheduler(client, clock=self.clock, chance=CountingChance())
        self.running.append(asyncio.create_task(scheduler.run(), name="scheduler"))
        return self.running[-1]

    async def stop(self) -> None:
        for task in self.running:
            task.cancel()
        await asyncio.gather(*self.running, return_exceptions=True)
        self.running.clear()

    async def rest(self, seconds: float = A_WHILE) -> None:
        await self.clock.advance(seconds)

    async def create(self, *pods: Raw) -> None:
        for pod in pods:
            await self.client.create(PODS, pod)

    async def make_priority(
        self, name: str, value: int, *, preemption_policy: str = "PreemptLowerPriority"
    ) -> None:
        made = {"metadata": {"name": name}, "value": value, "preemptionPolicy": preemption_policy}
        await self.client.create(PRIORITY_CLASSES, made)

    async def remove(self, name: str) -> None:
        """Deletes a pod at once."""
        await self.client.delete(PODS, name, namespace=NAMESPACE, grace_seconds=0)

    async def pods(self) -> dict[str, Raw]:
        listing = await self.client.list(PODS)
        return {each["metadata"]["name"]: each for each in listing.items}

    async def bound(self) -> list[str]:
        """Pods that are on a node and not about to leave it."""
        pods = await self.pods()
        return [
            name
            for name, pod in pods.items()
            if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
        ]

    async def told(self, name: str) -> str:
        """What the pod is told for a refusal."""
        conditions = (await self.pods())[name].get("status", {}).get("conditions", [])
        refusals = [each for each in conditions if each["type"] == "PodScheduled"]
        return str(refusals[0].get("message", "")) if refusals else ""

    async def events(self, reason: str) -> list[tuple[str, str]]:
        listing = await self.client.list(EVENTS, Selection(namespace=NAMESPACE))
        found = [each for each in listing.items if each["reason"] == reason]
        return sorted((each["involvedObject"]["name"], each["message"]) for each in found)

    async def held(self) -> list[str]:
        """Every device that a claim has, once for each claim."""
        claims = (await self.client.list(CLAIMS)).items
        return [
            f"{result['pool']}/{result['device']}"
            for claim in claims
            for result in claim.get("status", {})
            .get("allocation", {})
            .get("devices", {})
            .get("results", [])
        ]

    async def check(self, minimums: dict[str, int]) -> None:
        """The invariants at rest; of gangs those that are named, for others may have been whole."""
        kinds = (PODS, NODES, CLAIMS)
        objects = [
            (kind.resource, each) for kind in kinds for each in (await self.client.list(kind)).items
        ]
        # Slices are these scenes' own, and nobody takes them away with a node.
        violations = check(objects, at_rest=True)
        gangs = [f"pod group {NAMESPACE}/{name}" for name in minimums]
        found = [
            str(each)
            for each in violations
            if each.invariant is not Invariant.WHOLE_GANGS or each.subject in gangs
        ]
        assert not found, "\n".join(found)


@asynccontextmanager
async def scene(
    *, nodes: int = 2, devices: int = 2, serving: RuntimeConfig | None = None
) -> AsyncIterator[Scene]:
    """Nodes with devices, a class and a template, all controllers, and no scheduler."""
    clock = VirtualClock()
    options = ControlPlaneOptions(
        clock=clock, chance=CountingChance(), runtime_config=serving or RuntimeConfig()
    )
    async with embedded(options, without=("scheduler",)) as cluster:
        await scenes.make_class(cluster.client)
        await cluster.client.create(TEMPLATES, scenes.template_in(NAMESPACE))
        for number in range(nodes):
            await scenes.make_node(cluster.client, f"node-{number}", devices=devices)
        made = Scene(cluster, clock)
        try:
            yield made
        finally:
            await made.stop()


def play(story: Callable[[Scene], Awaitable[None]], **kwargs: Any) -> None:
    """Tells a story to a scene."""

    async def run() -> None:
        async with scene(**kwargs) as made:
            await story(made)

    run_virtual(run())
