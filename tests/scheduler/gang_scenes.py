"""
Gangs in virtual time, and what must be true of them at rest.

The stage has nodes with devices and all controllers. Tests start the schedulers, so that they can
stop, start, or double them, or cut them off from the API server at any write.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.controllers import scenes
from tests.stage import Stage

from dryrack.client.client import Client, Selection
from dryrack.client.endpoints import CLAIMS, EVENTS, NODES, PODS, TEMPLATES, Endpoint
from dryrack.client.errors import TransportError
from dryrack.cluster import SeededChance
from dryrack.scenario.checkers import check
from dryrack.scenario.invariants.violations import Invariant
from dryrack.scheduler import Scheduler, SchedulerSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.client.transport import Request, Response, Transport
    from dryrack.kinds.raw import Raw


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


class GangStage(Stage):
    """Nodes with devices, a class and a template, all controllers, and schedulers of the test."""

    def __init__(self, *, nodes: int = 2, devices: int = 2, **options: Any) -> None:
        async def prepare(stage: Stage) -> None:
            await scenes.make_class(stage.client)
            await stage.create(TEMPLATES, scenes.template_in(NAMESPACE))
            for number in range(nodes):
                await scenes.make_node(stage.client, f"node-{number}", devices=devices)

        super().__init__(without=("scheduler",), prepare=prepare, **options)
        self._schedulers: list[asyncio.Task[object]] = []

    def start(self, transport: Transport | None = None) -> asyncio.Task[object]:
        """Start another scheduler."""
        client = Client(transport or self.transport, agent="scheduler")
        settings = SchedulerSettings.of(release=self._options.release)
        scheduler = Scheduler(client, clock=self.clock, chance=SeededChance(), settings=settings)
        self._schedulers.append(self.run_beside(scheduler.run()))
        return self._schedulers[-1]

    async def stop(self) -> None:
        """Stop all schedulers."""
        for task in self._schedulers:
            task.cancel()
        await asyncio.gather(*self._schedulers, return_exceptions=True)
        self._schedulers.clear()

    async def rest(self, seconds: float = A_WHILE) -> None:
        await self.advance(seconds)

    async def create_pods(self, *pods: Raw) -> None:
        await self.create(PODS, *pods)

    async def make_priority(
        self, name: str, value: int, *, preemption_policy: str = "PreemptLowerPriority"
    ) -> None:
        made = {"metadata": {"name": name}, "value": value, "preemptionPolicy": preemption_policy}
        await self.client.create(PRIORITY_CLASSES, made)

    async def remove(self, name: str) -> None:
        """Delete a pod at once."""
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

    async def events_of_pods(self, reason: str) -> list[tuple[str, str]]:
        """Return the names of the pods that have events with this reason, and the messages."""
        listing = await self.client.list(EVENTS, Selection(namespace=NAMESPACE))
        events = [each for each in listing.items if each["reason"] == reason]
        return sorted((each["involvedObject"]["name"], each["message"]) for each in events)

    async def allocated_devices(self) -> list[str]:
        """Return every device that a claim has, once for each claim."""
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
        # The test creates the slices itself, so that they are not deleted with a node.
        violations = check(objects, at_rest=True)
        gangs = [f"pod group {NAMESPACE}/{name}" for name in minimums]
        found = [
            str(each)
            for each in violations
            if each.invariant is not Invariant.WHOLE_GANGS or each.subject in gangs
        ]
        assert not found, "\n".join(found)
