"""A trace on the embedded control plane, in virtual time."""

from __future__ import annotations

import asyncio
from functools import partialmethod
from typing import TYPE_CHECKING
from unittest.mock import patch

from tests.simulation.traces import start_of
from tests.stage import Stage

from dryrack.client.endpoints import (
    CLAIMS,
    CLASSES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    SLICES,
    TEMPLATES,
)
from dryrack.client.timekeeping import sleep
from dryrack.cluster import EngineOptions
from dryrack.controllers.claims.release import ClaimRelease
from dryrack.kinds.decode import decode, to_builtins
from dryrack.kinds.resource import ResourceClaim
from dryrack.scheduler import Scheduler, SchedulerSettings
from dryrack.simulation.workload import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.traces import Starts

    from dryrack.kinds.raw import Raw
    from dryrack.scheduler.queue import Unit
    from dryrack.simulation import FleetSpec, Trace
    from dryrack.simulation.workload import Job

    See = Callable[[ClaimRelease, Raw | None, Raw | None], None]

ENGINES = ("claims", "garbage-collector", "kubelet", "scheduler")
GONE_SECONDS = 0.0005
DECISION_SECONDS = 0.001
RELEASE_SECONDS = 0.004
_GROUP = "pod-group.scheduling.sigs.k8s.io"


class PlaneRun:
    """Creates the pods of a trace, and records where they start."""

    def __init__(self, stage: Stage, trace: Trace, spec: FleetSpec) -> None:
        self._stage = stage
        self._trace = trace
        self._spec = spec
        self.starts: Starts = {}
        self._began = 0.0
        self._bound: set[str] = set()
        self._ended: set[str] = set()
        # The numbers of jobs and workers.
        self._preempted: list[tuple[int, int]] = []
        self._workers = {
            job.pod(worker): (number, worker)
            for number, job in enumerate(trace.jobs)
            for worker in range(job.workers)
        }

    async def run(self, last: float) -> Starts:
        """Let the jobs arrive; return the starts of each pod after so many seconds."""
        await self._fill()
        self._stage.run_beside(self._follow_pods())
        await self._stage.advance(30 - self._stage.now() % 1)
        began = self._began = self._stage.now()
        for job in self._trace.jobs:
            await self._pass_until(began + job.arrival)
            for worker in range(job.workers):
                await self._stage.create(PODS, pod_of(job, worker))
        await self._pass_until(began + last)
        return self.starts

    async def _pass_until(self, time: float) -> None:
        left = time - self._stage.now()
        if left > 0:
            await self._stage.advance(left)

    async def _fill(self) -> None:
        stage, spec = self._stage, self._spec
        await stage.create(CLASSES, *map(to_builtins, spec.classes))
        for priority in sorted({job.priority for job in self._trace.jobs}):
            name = {"metadata": {"name": f"priority-{priority}"}, "value": priority}
            await stage.create(PRIORITY_CLASSES, name)
        for node in spec.nodes:
            raw = to_builtins(node)
            raw["metadata"]["annotations"] = {"dryrack.dev/node": "virtual"}
            await stage.create(NODES, raw)
        await stage.create(SLICES, *map(to_builtins, spec.slices))
        for shape in {job.shape: None for job in self._trace.jobs}:
            for claim in shape.claims:
                template = {
                    "metadata": {"name": shape.name},
                    "spec": {"spec": to_builtins(claim.spec)},
                }
                await stage.create(
                    TEMPLATES,
                    {**template, "metadata": {"name": shape.name, "namespace": NAMESPACE}},
                )

    async def _follow_pods(self) -> None:
        async with self._stage.client.watch(PODS, revision="0") as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED", "DELETED"):
                    await self._see(event.type, event.object)

    async def _see(self, kind: str, pod: Raw) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        node = pod["spec"].get("nodeName")
        if node and uid not in self._bound:
            self._bound.add(uid)
            statuses = pod.get("status", {}).get("resourceClaimStatuses", ())
            claims = [
                await self._stage.client.get(CLAIMS, each["resourceClaimName"], NAMESPACE)
                for each in statuses
            ]
            allocations = [decode(each, ResourceClaim).status.allocation for each in claims]
            assert None not in allocations, f"{name} is bound without its devices"
            self.starts.setdefault(name, []).append(
                start_of(
                    self._stage.now() - self._began, node, [each for each in allocations if each]
                )
            )
        if pod.get("status", {}).get("phase") == "Succeeded":
            self._ended.add(uid)
        if kind == "DELETED" and uid not in self._ended:
            if not self._preempted:
                self._stage.run_beside(self._create_again())
            self._preempted.append(self._workers[name])

    async def _create_again(self) -> None:
        """Create preempted pods again when all of them are gone, in the order of the trace."""
        await sleep(self._stage.clock, GONE_SECONDS)
        preempted, self._preempted = sorted(self._preempted), []
        for number, worker in preempted:
            await self._stage.create(PODS, pod_of(self._trace.jobs[number], worker))


def pod_of(job: Job, worker: int) -> Raw:
    """Return a pod that ends after its duration."""
    annotations = {"dryrack.dev/stop-seconds": "0"}
    if job.duration is not None:
        annotations["dryrack.dev/run-seconds"] = str(job.duration)
    labels = {}
    if job.gang:
        labels = {f"{_GROUP}/name": job.name, f"{_GROUP}/min-available": str(job.gang)}
    spec = {
        **to_builtins(job.shape.pod.spec),
        "restartPolicy": "Never",
        "priorityClassName": f"priority-{job.priority}",
    }
    if job.shape.claims:
        claim = {"name": "devices", "resourceClaimTemplateName": job.shape.name}
        spec["resourceClaims"] = [claim]
    name = job.pod(worker)
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def on_plane(trace: Trace, spec: FleetSpec, last: float) -> Starts:
    """Return the starts of each pod on the embedded control plane."""
    # A back-off would delay gangs, and a simulation has none.
    settings = SchedulerSettings(backoff_seconds=(0.0, 0.0))
    engines = EngineOptions(only=ENGINES, scheduling=settings)
    with (
        patch.object(ClaimRelease, "_on_claim", partialmethod(_see_later, _on_claim)),
        patch.object(ClaimRelease, "_on_pod", partialmethod(_see_later, _on_pod)),
        patch.object(Scheduler, "_attempt", _attempt_later),
    ):
        async with Stage(engines=engines) as stage:
            return await PlaneRun(stage, trace, spec).run(last)


_on_claim = ClaimRelease._on_claim
_on_pod = ClaimRelease._on_pod
_attempt = Scheduler._attempt
_tasks: set[asyncio.Task[None]] = set()


def _see_later(controller: ClaimRelease, see_now: See, old: Raw | None, new: Raw | None) -> None:
    """
    Let the controller see a moment later that a pod has ended, and release its claims.

    Requests take no time here, so that the scheduler could not decide before that.
    """

    async def see() -> None:
        await sleep(controller._clock, RELEASE_SECONDS)
        see_now(controller, old, new)

    task = asyncio.create_task(see())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def _attempt_later(scheduler: Scheduler, unit: Unit) -> None:
    """Let the scheduler see all that happens at one time before it decides."""
    await sleep(scheduler._clock, DECISION_SECONDS)
    await _attempt(scheduler, unit)
