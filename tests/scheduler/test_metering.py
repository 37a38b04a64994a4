"""The metrics of a scheduler count its attempts, with the names of kube-scheduler."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.apiserver.replay import CountingChance
from tests.scheduler.waiting import is_so_at_last

from dryrack.base.metrics import Registry
from dryrack.client.endpoints import NODES, PODS, Endpoint
from dryrack.client.informer import Name
from dryrack.client.timekeeping import VirtualClock, settle
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.cluster.ports import SystemClock
from dryrack.scheduler import Scheduler
from dryrack.scheduler.metering import Result, SchedulingMeter

if TYPE_CHECKING:
    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw


POD = Name("default", "pod")
PRIORITIES = Endpoint(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", is_namespaced=False
)
NODE = {"metadata": {"name": "node"}, "status": {"allocatable": {"cpu": "2", "pods": "110"}}}


def pod(name: str, cpu: str, **more: Any) -> Raw:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "schedulerName": "dryrack", **more}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def numbers(registry: Registry) -> dict[str, float]:
    lines = [line for line in registry.render().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_attempts_are_counted_by_result_and_those_who_wait_by_queue() -> None:
    """One pod is bound, one does not fit, and one has a gate."""

    async def run() -> dict[str, float]:
        registry = Registry()
        async with embedded(ControlPlaneOptions(chance=CountingChance()), engines=()) as cluster:
            client = cluster.client
            await client.create(NODES, NODE)
            await client.create(PODS, pod("fits", "1"))
            await client.create(PODS, pod("large", "64"))
            await client.create(PODS, pod("gated", "1", schedulingGates=[{"name": "a/b"}]))
            chance = CountingChance()
            scheduler = Scheduler(client, clock=SystemClock(), chance=chance, metrics=registry)
            task = asyncio.create_task(scheduler.run(), name="scheduler")
            try:
                assert await is_so_at_last(cluster, lambda: _is_decided(client))
                await settle(500)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        return numbers(registry)

    found = asyncio.run(run())
    attempts = 'scheduler_schedule_attempts_total{result="%s",profile="dryrack"}'

    assert found[attempts % "scheduled"] == 1
    assert found[attempts % "unschedulable"] >= 1
    assert found["scheduler_pod_scheduling_attempts_count"] == 1
    assert found['scheduler_pending_pods{queue="gated"}'] == 1
    assert found['scheduler_pending_pods{queue="unschedulable"}'] == 1
    assert found['scheduler_pending_pods{queue="active"}'] == 0


async def _is_decided(client: Client) -> bool:
    fits = await client.get(PODS, "fits", "default")
    large = await client.get(PODS, "large", "default")
    return bool(fits["spec"].get("nodeName") and large["status"].get("conditions"))


def test_the_time_of_an_attempt_and_of_the_whole_way_differ() -> None:
    """A pod waits 2 s, is tried for 0.1 s in vain, waits, and is bound by the second attempt."""

    async def run() -> dict[str, float]:
        clock = VirtualClock()
        registry = Registry()
        meter = SchedulingMeter(clock, registry)
        meter.add(POD, "dryrack")
        await clock.advance(2)
        meter.start_attempt(POD)
        await clock.advance(0.1)
        meter.finish_attempt(POD, Result.UNSCHEDULABLE)
        await clock.advance(2)
        meter.start_attempt(POD)
        await clock.advance(0.1)
        # The watch shows that it is bound before the answer to the binding arrives.
        meter.remove(POD)
        meter.finish_attempt(POD, Result.SCHEDULED)
        return numbers(registry)

    found = asyncio.run(run())
    labels = '{result="%s",profile="dryrack"}'
    attempt = "scheduler_scheduling_attempt_duration_seconds_sum"

    assert round(found[attempt + labels % "unschedulable"], 3) == 0.1
    assert round(found[attempt + labels % "scheduled"], 3) == 0.1
    assert found["scheduler_pod_scheduling_attempts_sum"] == 2
    whole = found['scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="2"}']
    assert round(whole, 3) == 4.2


def test_an_attempt_of_which_nothing_came_is_none() -> None:
    """A pod that steps aside for a long search, or is deleted meanwhile, was not decided."""
    registry = Registry()
    meter = SchedulingMeter(VirtualClock(), registry)
    meter.add(POD, "dryrack")
    meter.start_attempt(POD)
    meter.end_attempt(POD)
    meter.start_attempt(POD)
    meter.remove(POD)
    meter.end_attempt(POD)
    meter.finish_attempt(POD, Result.SCHEDULED)

    assert "scheduler_schedule_attempts_total{" not in registry.render()


def test_gangs_are_counted_as_such() -> None:
    """One gang is bound, and one is too large; the metrics contain the number of its pods."""

    async def run() -> dict[str, float]:
        registry = Registry()
        async with embedded(ControlPlaneOptions(chance=CountingChance()), engines=()) as cluster:
            client = cluster.client
            await client.create(NODES, NODE)
            for name, cpu in (("small", "500m"), ("large", "2")):
                for number in range(2):
                    await client.create(PODS, member(f"{name}-{number}", name, cpu))
            chance = CountingChance()
            scheduler = Scheduler(client, clock=SystemClock(), chance=chance, metrics=registry)
            task = asyncio.create_task(scheduler.run(), name="scheduler")
            try:
                assert await is_so_at_last(cluster, lambda: _are_decided(client))
                # Events are written after the last binding, and then it is counted.
                await settle(500)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        return numbers(registry)

    found = asyncio.run(run())
    attempts = 'scheduler_podgroup_schedule_attempts_total{result="%s",profile="dryrack"}'

    assert found[attempts % "scheduled"] == 1
    assert found[attempts % "unschedulable"] >= 1
    assert found["kubenexus_pod_group_size_sum"] == 2
    assert found["kubenexus_gang_completion_latency_seconds_count"] == 1
    assert found["kubenexus_waiting_gangs"] == 1
    assert found['scheduler_pending_pods{queue="unschedulable"}'] == 2


def member(name: str, gang: str, cpu: str) -> Raw:
    prefix = "pod-group.scheduling.kubenexus.io"
    made = pod(name, cpu)
    made["metadata"]["labels"] = {f"{prefix}/name": gang, f"{prefix}/min-available": "2"}
    return made


async def _are_decided(client: Client) -> bool:
    pods = [await client.get(PODS, name, "default") for name in ("small-0", "small-1")]
    large = await client.get(PODS, "large-0", "default")
    return all(each["spec"].get("nodeName") for each in pods) and bool(
        large["status"].get("conditions")
    )


def test_victims_are_counted() -> None:
    """One pod makes way for one of higher priority."""

    async def run() -> dict[str, float]:
        registry = Registry()
        async with embedded(ControlPlaneOptions(chance=CountingChance()), engines=()) as cluster:
            client = cluster.client
            await client.create(NODES, NODE)
            await client.create(PRIORITIES, {"metadata": {"name": "high"}, "value": 1000})
            await client.create(PODS, {**pod("low", "2"), "spec": bound_spec()})
            await client.create(PODS, pod("high", "2", priorityClassName="high"))
            chance = CountingChance()
            scheduler = Scheduler(client, clock=SystemClock(), chance=chance, metrics=registry)
            task = asyncio.create_task(scheduler.run(), name="scheduler")

            async def has_to_go() -> bool:
                low = await client.get(PODS, "low", "default")
                return "deletionTimestamp" in low["metadata"]

            try:
                assert await is_so_at_last(cluster, has_to_go)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        return numbers(registry)

    found = asyncio.run(run())

    assert found["scheduler_preemption_attempts_total"] == 1
    assert found["scheduler_preemption_victims_sum"] == 1


def bound_spec() -> Raw:
    return {**pod("low", "2")["spec"], "nodeName": "node"}
