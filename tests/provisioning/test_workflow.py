"""From an unschedulable pod to a node with the right devices, and back to nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.controllers.scenes import phase
from tests.provisioning.worlds import (
    events,
    instance_type,
    names,
    play,
    pod,
    pool,
    template,
)

from dryrack.client.endpoints import (
    CLAIMS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PODS,
    SLICES,
    TEMPLATES,
)

if TYPE_CHECKING:
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import VirtualClock


def test_a_pod_with_a_claim_gets_a_node_with_devices() -> None:
    """The Pod runs on a node of the cheapest type that has the four devices."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(NODE_POOLS, pool())
        await client.create(TEMPLATES, template(4))
        await client.create(PODS, pod("train", gpus=4))
        await clock.advance(8)
        found = await client.get(PODS, "train", "default")
        assert phase(found) == "Running", found["status"]
        (claim,) = (await client.list(NODE_CLAIMS)).items
        assert found["spec"]["nodeName"] == claim["metadata"]["name"]
        # It is the cheapest type with four devices.
        assert claim["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "g5.12xlarge"
        drivers = claim["metadata"]["annotations"]["karpenter.sh/requested-dra-drivers"]
        assert drivers == "gpu.nvidia.com"

    play(scene)


def test_nothing_is_created_without_a_pool_and_the_pod_says_so() -> None:
    """An event names the command that shows the pools; with a pool, the Pod runs."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(PODS, pod("lonely", cpu="1"))
        await clock.advance(8)
        assert not await names(client, NODES)
        (event,) = await events(client, "FailedScheduling")
        assert event["message"] == (
            "no node is created for the pod: no NodePool is ready; see: kubectl get nodepools"
        )
        await client.create(NODE_POOLS, pool())
        await clock.advance(8)
        assert phase(await client.get(PODS, "lonely", "default")) == "Running"

    play(scene)


def test_an_empty_node_is_removed_and_nothing_is_left() -> None:
    """Seed 003 to its end: Pending, provisioned, slices, Running, and removed."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(NODE_POOLS, pool())
        await client.create(TEMPLATES, template(1))
        await client.create(PODS, pod("train", gpus=1))
        await clock.advance(8)
        assert phase(await client.get(PODS, "train", "default")) == "Running"
        assert await names(client, SLICES)
        await client.delete(PODS, "train", namespace="default")
        await clock.advance(60)
        for endpoint in (PODS, CLAIMS, SLICES, NODES, NODE_CLAIMS):
            assert not await names(client, endpoint), endpoint.plural
        status = (await client.get(NODE_POOLS, "default"))["status"]
        assert status["resources"] == {"nodes": "0"}

    play(scene)


def test_pods_of_ten_kinds_share_nodes() -> None:
    """Eight Pods with two GPUs each fill two nodes of eight GPUs."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(NODE_POOLS, pool("gpus", instance_type("p4d.24xlarge")))
        await client.create(TEMPLATES, template(2))
        for number in range(8):
            await client.create(PODS, pod(f"train-{number}", gpus=2))
        await clock.advance(10)
        found = (await client.list(PODS)).items
        assert {phase(each) for each in found} == {"Running"}
        assert len(await names(client, NODES)) == 2

    play(scene)
