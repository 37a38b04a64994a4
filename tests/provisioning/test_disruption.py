"""Nodes that are not needed: removed within budgets, consolidated, and never against a gang."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.controllers.scenes import phase
from tests.provisioning.worlds import (
    deploy,
    events,
    instance_type,
    names,
    play,
    pod,
    pool,
    requirement,
    template,
)

from dryrack.client.endpoints import DEPLOYMENTS, NODE_CLAIMS, NODE_POOLS, NODES, PODS, TEMPLATES
from dryrack.controllers.provisioning.disruption_budgets import Reason, allowance
from dryrack.kinds.provisioning import Budget

if TYPE_CHECKING:
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import VirtualClock


async def scale(client: Client, name: str, replicas: int) -> None:
    await client.patch(DEPLOYMENTS, name, {"spec": {"replicas": replicas}}, namespace="default")


def test_a_budget_holds_nodes_back_and_the_event_names_it() -> None:
    """The node stays until the window of the budget ends, and is then removed."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        budget = {"nodes": "0", "schedule": "@daily", "duration": "12h", "reasons": ["Empty"]}
        await client.create(NODE_POOLS, pool(disruption=_disruption(budget)))
        await client.create(PODS, pod("guest", cpu="1"))
        # The clock stands at eight in the morning, UTC.
        await clock.advance(5)
        await client.delete(PODS, "guest", namespace="default")
        await clock.advance(300)
        assert len(await names(client, NODES)) == 1
        (event,) = await events(client, "DisruptionBlocked")
        assert event["message"] == (
            "NodePool default does not allow to remove the node (Empty): budget (nodes: 0; "
            "schedule: @daily; duration: 12h; reasons: Empty) until 2027-01-15T12:00:00Z"
        )
        await clock.advance(4 * 3600 + 60)
        assert not await names(client, NODES)

    play(scene)


def test_pods_move_together_and_the_empty_node_goes() -> None:
    """Three Pods fit on two of three nodes, so one node is removed and all Pods run."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(NODE_POOLS, pool("small", instance_type("c-4x-amd64-linux")))
        for name in ("one", "two", "three"):
            await client.create(DEPLOYMENTS, deploy(name, 2, cpu="1500m"))
        await clock.advance(10)
        assert len(await names(client, NODES)) == 3
        for name in ("one", "two", "three"):
            await scale(client, name, 1)
        await clock.advance(240)
        pods = (await client.list(PODS)).items
        assert [phase(each) for each in pods] == ["Running"] * 3
        assert len(await names(client, NODES)) == 2

    play(scene)


def test_a_cheaper_node_replaces_a_large_one() -> None:
    """The Pod that remains runs on the smallest type."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(NODE_POOLS, pool())
        await client.create(DEPLOYMENTS, deploy("web", 20, cpu="1"))
        await clock.advance(10)
        await scale(client, "web", 1)
        await clock.advance(300)
        (claim,) = (await client.list(NODE_CLAIMS)).items
        assert claim["metadata"]["labels"]["node.kubernetes.io/instance-type"].startswith("c-1x")
        (only,) = (await client.list(PODS)).items
        assert phase(only) == "Running"

    play(scene)


def test_a_gang_is_not_broken() -> None:
    """Nodes whose Pods belong to one gang stay, and an event on each node states the reason."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(NODE_POOLS, pool("small", instance_type("c-4x-amd64-linux")))
        labels = {
            "pod-group.scheduling.sigs.k8s.io/name": "ring",
            "pod-group.scheduling.sigs.k8s.io/min-available": "2",
        }
        # Two members fit on one node; a neighbour keeps them apart, and leaves.
        await client.create(DEPLOYMENTS, deploy("ring", 2, labels=labels, cpu="3"))
        await clock.advance(20)
        assert [phase(each) for each in (await client.list(PODS)).items] == ["Running"] * 2
        before = await names(client, NODES)
        assert len(before) == 2
        await client.patch(
            NODE_POOLS,
            "small",
            {"spec": {"template": {"metadata": {"labels": {"new": "label"}}}}},
        )
        await clock.advance(300)
        assert await names(client, NODES) == before
        messages = {each["message"] for each in await events(client, "Unconsolidatable")}
        assert len(messages) == 2
        assert all("is in a gang with 1 pods on other nodes" in each for each in messages)

    play(scene)


def test_a_changed_template_replaces_the_nodes() -> None:
    """The new node has the new label, and the Pod runs on it."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(NODE_POOLS, pool("small", instance_type("c-4x-amd64-linux")))
        await client.create(DEPLOYMENTS, deploy("web", 1, cpu="3"))
        await clock.advance(10)
        (before,) = await names(client, NODES)
        patch = {"spec": {"template": {"metadata": {"labels": {"new": "label"}}}}}
        await client.patch(NODE_POOLS, "small", patch)
        await clock.advance(120)
        (after,) = (await client.list(NODES)).items
        assert after["metadata"]["name"] != before
        assert after["metadata"]["labels"]["new"] == "label"
        (only,) = (await client.list(PODS)).items
        assert phase(only) == "Running"

    play(scene)


def test_an_annotation_protects_a_pod_for_a_time() -> None:
    """The node of a Pod with do-not-disrupt 10m is replaced when the Pod is ten minutes old."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(NODE_POOLS, pool("small", instance_type("c-4x-amd64-linux")))
        made = deploy("web", 1, cpu="3")
        annotations = {"karpenter.sh/do-not-disrupt": "10m"}
        made["spec"]["template"]["metadata"]["annotations"] = annotations
        await client.create(DEPLOYMENTS, made)
        await clock.advance(10)
        before = await names(client, NODES)
        patch = {"spec": {"template": {"metadata": {"labels": {"new": "label"}}}}}
        await client.patch(NODE_POOLS, "small", patch)
        await clock.advance(540)
        assert await names(client, NODES) == before
        await clock.advance(120)
        assert await names(client, NODES) != before

    play(scene)


@pytest.mark.parametrize("ignores", [False, True])
def test_both_settings_of_ignore_dra_requests(ignores: bool) -> None:
    """A Pod with a claim gets a node, or stays pending with an event that names the option."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(NODE_POOLS, pool())
        await client.create(TEMPLATES, template(1))
        await client.create(PODS, pod("train", gpus=1))
        await clock.advance(10)
        found = phase(await client.get(PODS, "train", "default"))
        assert found == ("Pending" if ignores else "Running")
        reports = await events(client, "FailedScheduling")
        assert [each["message"] for each in reports] == (
            [
                (
                    "the pod has ResourceClaims, which the provisioner ignores; to get nodes for "
                    "them, start it without --ignore-dra-requests"
                )
            ]
            if ignores
            else []
        )

    play(scene, ignores_claims=ignores)


def test_limits_and_weights() -> None:
    """The heavy pool serves what its limit allows, the light one the rest, and no pool the last."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        small = instance_type("c-4x-amd64-linux")
        await client.create(NODE_POOLS, pool("heavy", small, weight=10, limits={"cpu": "8"}))
        await client.create(NODE_POOLS, pool("light", small, limits={"nodes": "1"}))
        for number in range(4):
            await client.create(PODS, pod(f"big-{number}", cpu="3"))
        await clock.advance(10)
        nodes = (await client.list(NODES)).items
        pools = sorted(each["metadata"]["labels"]["karpenter.sh/nodepool"] for each in nodes)
        assert pools == ["heavy", "heavy", "light"]
        (event,) = await events(client, "FailedScheduling")
        assert event["message"] == (
            "no node is created for the pod: NodePool heavy: the nodes for it would exceed the "
            "limits of the plan; NodePool light: the nodes for it would exceed the limits of the "
            "plan"
        )

    play(scene)


def _disruption(*budgets: Any) -> Any:
    return {"consolidateAfter": "0s", "budgets": list(budgets)}


def test_the_strictest_active_budget_counts() -> None:
    """Only budgets for the reason count, within their window, and less the nodes that leave."""
    noon = 1_800_014_400.0
    budgets = (
        Budget(nodes="50%"),
        Budget(nodes="2", reasons=("Empty",)),
        Budget(nodes="0", schedule="0 3 * * *", duration="1h"),
    )
    assert allowance(budgets, Reason.EMPTY, nodes=10, leaving=1, now=noon).nodes == 1
    assert allowance(budgets, Reason.DRIFTED, nodes=9, leaving=0, now=noon).nodes == 5
    night = noon - 9 * 3600 + 600
    found = allowance(budgets, Reason.EMPTY, nodes=10, leaving=0, now=night)
    assert (found.nodes, found.until) == (0, noon - 8 * 3600)


def test_a_pool_with_too_few_values_creates_no_node() -> None:
    """The event names the label, the number of allowed values, and minValues."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        types = ("c-1x-amd64-linux", "c-2x-amd64-linux")
        wanted = {**instance_type(*types), "minValues": 2}
        cpus = requirement("karpenter.kwok.sh/instance-cpu", "Gt", "1")
        await client.create(NODE_POOLS, pool("flexible", wanted, cpus))
        await client.create(PODS, pod("guest", cpu="1"))
        await clock.advance(10)
        assert not await names(client, NODES)
        (event,) = await events(client, "FailedScheduling")
        assert event["message"] == (
            "no node is created for the pod: NodePool flexible: its requirements allow 1 value of "
            "node.kubernetes.io/instance-type, and minValues is 2"
        )

    play(scene)
