"""The life of a NodeClaim that a person creates: launched, registered, ready, drained, gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.controllers.scenes import POD_SPEC, is_true
from tests.provisioning import worlds
from tests.provisioning.worlds import claim, instance_type, play

from dryrack.client.client import Selection
from dryrack.client.endpoints import (
    EVENTS,
    NODE_CLAIMS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SLICES,
)

if TYPE_CHECKING:
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import VirtualClock


def test_a_claim_becomes_a_node_with_its_devices() -> None:
    """The NodeClaim is Ready, and the node has the labels and the devices of its type."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(NODE_CLAIMS, claim("one", instance_type("g5.12xlarge")))
        await clock.advance(3)
        found = await client.get(NODE_CLAIMS, "one")
        for kind in ("Launched", "Registered", "Initialized", "Ready"):
            assert is_true(found, kind), (kind, found["status"])
        assert found["status"]["providerID"] == "dryrack://one"
        assert found["status"]["nodeName"] == "one"
        node = await client.get(NODES, "one")
        assert node["spec"]["providerID"] == "dryrack://one"
        assert "taints" not in node["spec"]
        labels = node["metadata"]["labels"]
        assert labels["node.kubernetes.io/instance-type"] == "g5.12xlarge"
        assert labels["karpenter.sh/registered"] == labels["karpenter.sh/initialized"] == "true"
        assert labels["nvidia.com/gpu.product"] == "NVIDIA-A10G"
        (own,) = (await client.list(SLICES)).items
        assert len(own["spec"]["devices"]) == 4

    play(scene)


def test_the_node_of_a_deleted_claim_is_drained_first() -> None:
    """A PodDisruptionBudget keeps the Pod and the node; without the budget, both are removed."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(NODE_CLAIMS, claim("one", instance_type("c-4x-amd64-linux")))
        await clock.advance(3)
        metadata = {"name": "guest", "namespace": "default", "labels": {"app": "guest"}}
        await client.create(PODS, {"metadata": metadata, "spec": POD_SPEC})
        budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "guest"}}}
        await client.create(
            POD_DISRUPTION_BUDGETS,
            {"metadata": {"name": "guest", "namespace": "default"}, "spec": budget},
        )
        await clock.advance(3)
        assert (await client.get(PODS, "guest", "default"))["spec"]["nodeName"] == "one"
        await client.delete(NODE_CLAIMS, "one")
        await clock.advance(90)
        node = await client.get(NODES, "one")
        assert {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"} in node["spec"]["taints"]
        assert is_true(node, "Ready")
        pod = await client.get(PODS, "guest", "default")
        assert "deletionTimestamp" not in pod["metadata"]
        await client.delete(POD_DISRUPTION_BUDGETS, "guest", namespace="default")
        await clock.advance(60)
        assert not (await client.list(PODS)).items
        assert not (await client.list(NODES)).items
        assert not (await client.list(NODE_CLAIMS)).items
        assert not (await client.list(SLICES)).items

    play(scene)


def test_a_deleted_node_takes_its_claim_with_it() -> None:
    """The NodeClaim of a deleted node is deleted."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(NODE_CLAIMS, claim("one", instance_type("c-4x-amd64-linux")))
        await clock.advance(3)
        await client.delete(NODES, "one")
        await clock.advance(3)
        assert not (await client.list(NODES)).items
        assert not (await client.list(NODE_CLAIMS)).items

    play(scene)


def test_startup_taints_delay_the_claim_and_not_more() -> None:
    """The NodeClaim is not initialized until its startup taints are removed."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        taint = {"key": "example.com/agent", "effect": "NoExecute"}
        made = claim("one", instance_type("c-4x-amd64-linux"), startupTaints=[taint])
        await client.create(NODE_CLAIMS, made)
        await clock.advance(3)
        found = await client.get(NODE_CLAIMS, "one")
        assert is_true(found, "Registered")
        assert not is_true(found, "Initialized")
        waiting = next(e for e in found["status"]["conditions"] if e["type"] == "Initialized")
        assert waiting["reason"] == "StartupTaintsExist"
        await client.patch(NODES, "one", {"spec": {"taints": None}})
        await clock.advance(3)
        assert is_true(await client.get(NODE_CLAIMS, "one"), "Ready")

    play(scene)


def test_a_claim_that_no_type_meets_is_deleted_with_a_reason() -> None:
    """An event of the type InsufficientCapacityError states why."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(NODE_CLAIMS, claim("one", instance_type("huge")))
        await clock.advance(3)
        assert not (await client.list(NODE_CLAIMS)).items
        assert not (await client.list(NODES)).items
        selection = Selection(fields="reason=InsufficientCapacityError")
        (event,) = (await client.list(EVENTS, selection)).items
        assert event["message"] == "no instance type meets the requirements"

    play(scene)


def test_a_claim_expires() -> None:
    """The node exists until `expireAfter`, and is then removed with its NodeClaim."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        made = claim("one", instance_type("c-4x-amd64-linux"), expireAfter="10m")
        await client.create(NODE_CLAIMS, made)
        await clock.advance(590)
        assert await worlds.names(client, NODES) == ["one"]
        await clock.advance(30)
        assert not await worlds.names(client, NODES)
        assert not await worlds.names(client, NODE_CLAIMS)

    play(scene)


def test_a_node_without_a_claim_is_removed() -> None:
    """A person takes the finalizer of a NodeClaim away: the node does not stay."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(NODE_CLAIMS, claim("one", instance_type("c-4x-amd64-linux")))
        await clock.advance(3)
        patch = {"metadata": {"finalizers": None}}
        await client.delete(NODE_CLAIMS, "one", propagation="Orphan")
        await client.patch(NODE_CLAIMS, "one", patch)
        await clock.advance(30)
        assert not await worlds.names(client, NODES)

    play(scene)
