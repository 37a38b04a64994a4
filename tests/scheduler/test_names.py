"""A scheduler schedules only pods with its names, beside other schedulers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.apiserver.replay import CountingChance
from tests.scheduler.waiting import is_so_at_last

from dryrack.client.endpoints import EVENTS, NODES, PODS
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.cluster.ports import SystemClock
from dryrack.scheduler import NAMES, Scheduler, SchedulerSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.raw import Raw


NODE = {"metadata": {"name": "node"}, "status": {"allocatable": {"cpu": "8", "pods": "110"}}}


def pod(name: str, scheduler: str) -> Raw:
    container = {"name": "c", "image": "i"}
    spec = {"containers": [container], "schedulerName": scheduler}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def bound_by(names: Sequence[str], pods: Sequence[Raw]) -> dict[str, str]:
    """Which pods get a node, by whom, of those that a scheduler of these names is given."""
    async with embedded(ControlPlaneOptions(chance=CountingChance()), engines=()) as cluster:
        client = cluster.client
        await client.create(NODES, NODE)
        for each in pods:
            await client.create(PODS, each)
        clock = SystemClock()
        chance = CountingChance()
        settings = SchedulerSettings.of(names)
        scheduler = Scheduler(client, clock=clock, chance=chance, settings=settings)
        task = asyncio.create_task(scheduler.run(), name="scheduler")
        ours = sum(each["spec"]["schedulerName"] in names for each in pods)

        async def is_done() -> bool:
            return len((await client.list(EVENTS)).items) >= ours

        try:
            assert await is_so_at_last(cluster, is_done)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        told = {
            each["involvedObject"]["name"]: each["reportingComponent"]
            for each in (await client.list(EVENTS)).items
        }
        bound = [each for each in (await client.list(PODS)).items if each["spec"].get("nodeName")]
        return {each["metadata"]["name"]: told[each["metadata"]["name"]] for each in bound}


def test_a_scheduler_takes_the_pods_that_name_it_and_tells_them_so() -> None:
    """Pods of other schedulers stay as they are; an event says which name was meant."""
    pods = [pod("a", "mine"), pod("b", "other"), pod("c", "default-scheduler"), pod("d", "yours")]

    found = asyncio.run(bound_by(("mine", "yours"), pods))

    assert found == {"a": "mine", "d": "yours"}


def test_a_whole_cluster_schedules_under_three_names() -> None:
    """Pods written for the original's scheduler need no change on an embedded plane."""
    names = ("default-scheduler", "dryrack", "kubenexus-scheduler")
    pods = [pod(f"pod-{number}", name) for number, name in enumerate(names)]

    found = asyncio.run(bound_by(NAMES, pods))

    assert sorted(found.values()) == sorted(names)
