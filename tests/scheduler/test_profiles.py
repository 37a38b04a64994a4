"""The scheduler does not run plugins that a profile disables."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.replay import CountingChance
from tests.scheduler.waiting import is_so_at_last

from dryrack.client.endpoints import NODES, PODS, Endpoint
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.cluster.ports import SystemClock
from dryrack.placement import IN_TREE, profile_of, read_configuration
from dryrack.placement.framework import NodeScorer, Plugin, Profile
from dryrack.scheduler import Scheduler, SchedulerSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.stage import Stage

    from dryrack.kinds.raw import Raw
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import PodConstraints

pytestmark = pytest.mark.stage(only=())


HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
GROUP = "pod-group.scheduling.kubenexus.io"
PRIORITIES = Endpoint(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", is_namespaced=False
)
NODE = {
    "metadata": {"name": "node", "labels": {"zone": "a"}},
    "status": {"allocatable": {"cpu": "2", "pods": "110"}},
}


def settings(plugins: str) -> SchedulerSettings:
    text = f"{HEAD}profiles:\n- plugins: {plugins}\n"
    reading = read_configuration(text, "scheduler.yaml", IN_TREE)
    assert reading.configuration is not None, reading.problems
    profile = profile_of(reading.configuration.profiles[0], "dryrack", IN_TREE)
    return SchedulerSettings(profiles={"dryrack": profile})


def pod(name: str, cpu: str = "1", labels: Raw | None = None, **more: Any) -> Raw:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "schedulerName": "dryrack", **more}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": spec,
    }


async def decided(plugins: str, pods: Sequence[Raw]) -> dict[str, str]:
    """The node of each pod, or why it has none; each is decided before the next comes."""
    async with embedded(ControlPlaneOptions(chance=CountingChance()), engines=()) as cluster:
        client = cluster.client
        await client.create(NODES, NODE)
        await client.create(PRIORITIES, {"metadata": {"name": "high"}, "value": 1000})
        clock = SystemClock()
        chance = CountingChance()
        scheduler = Scheduler(client, clock=clock, chance=chance, settings=settings(plugins))
        task = asyncio.create_task(scheduler.run(), name="scheduler")
        told: dict[str, str] = {}
        try:
            for each in pods:
                name = each["metadata"]["name"]
                await client.create(PODS, each)

                async def is_decided(name: str = name) -> bool:
                    current = await client.get(PODS, name, "default")
                    conditions = current["status"].get("conditions", ())
                    messages = [each.get("message", "") for each in conditions]
                    told[name] = current["spec"].get("nodeName") or "".join(messages)
                    return bool(told[name])

                assert await is_so_at_last(cluster, is_decided)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return told


def test_a_gang_by_labels_is_none_without_coscheduling() -> None:
    """Its first pod does not wait for the others."""
    labels = {f"{GROUP}/name": "gang", f"{GROUP}/min-available": "3"}
    alone = [pod("first", labels=labels)]

    assert asyncio.run(decided("{multiPoint: {disabled: [{name: Coscheduling}]}}", alone)) == {
        "first": "node"
    }


def test_nobody_is_preempted_without_preemption() -> None:
    """The pod of higher priority waits, and its condition contains the reason."""
    pods = [pod("low", "2"), pod("high", "2", priorityClassName="high")]
    told = asyncio.run(decided("{postFilter: {disabled: [{name: '*'}]}}", pods))

    assert told["low"] == "node"
    assert "Insufficient cpu" in told["high"]


@pytest.mark.parametrize(
    ("plugins", "is_placed"),
    [("{}", False), ("{filter: {disabled: [{name: NodeAffinity}]}}", True)],
)
def test_a_filter_that_is_off_is_not_asked(plugins: str, *, is_placed: bool) -> None:
    """A pod goes to a node that it does not select."""
    told = asyncio.run(decided(plugins, [pod("choosy", nodeSelector={"zone": "b"})]))

    assert (told["choosy"] == "node") is is_placed


def _fails(constraints: PodConstraints, fleet: Fleet, args: Args) -> NodeScorer:
    def score(node: NodeState) -> int:
        raise ValueError("no occupants")

    return NodeScorer(score)


@pytest.mark.parametrize("gang", [False, True])
async def test_a_plugin_that_raises_is_an_error_of_the_scheduler(gang: bool, stage: Stage) -> None:
    """As by kube-scheduler the reason is SchedulerError: the pod is not to blame."""
    plugin = Plugin("Broken", score=_fails)
    broken = SchedulerSettings(profiles={"dryrack": Profile(scores=((plugin, 1),))})
    labels = {f"{GROUP}/name": "gang", f"{GROUP}/min-available": "1"} if gang else {}

    await stage.client.create(NODES, NODE)
    await stage.client.create(PODS, pod("p", labels=labels))
    async with stage.scheduler(settings=broken):
        await stage.advance(10)
        condition = await stage.condition("p")
    assert condition["reason"] == "SchedulerError"
    assert "plugin Broken: ValueError: no occupants" in condition["message"]
