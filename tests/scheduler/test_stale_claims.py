"""Stale allocations are released; those that another pod uses stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.scheduler.builders import (
    FailingTransport,
    RecordingTransport,
    claims,
    create_objects,
    extended_resource_pod,
    second_node,
    two_devices,
    user_of,
)
from tests.scheduler.gang_scenes import PREFIX
from tests.scheduler.messages import no_victims_text

from dryrack.client.endpoints import CLAIMS, NODES, PODS

if TYPE_CHECKING:
    from tests.stage import Stage

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw

pytestmark = pytest.mark.stage(only=())


async def cordon(client: Client, name: str) -> None:
    node = await client.get(NODES, name)
    await client.update(NODES, {**node, "spec": {**node["spec"], "unschedulable": True}})


async def allocated_on_first(stage: Stage, *, users: list[Raw]) -> None:
    """A claim that has a device of the first node, which takes no more pods."""
    await create_objects(stage.client, 0)
    await second_node(stage.client)
    await cordon(stage.client, "n")
    requests = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
    metadata = {
        "name": "shared",
        "namespace": "default",
        "finalizers": ["resource.kubernetes.io/delete-protection"],
    }
    claim = await stage.client.create(
        CLAIMS, {"metadata": metadata, "spec": {"devices": {"requests": requests}}}
    )
    result = {"request": "r", "driver": "x.example.com", "pool": "n", "device": "d0"}
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n"]}]
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
    }
    status = {"allocation": allocation, "reservedFor": users}
    await stage.client.update(CLAIMS, {**claim, "status": status}, subresource="status")


async def pool_of(stage: Stage) -> str:
    claim = await stage.client.get(CLAIMS, "shared", "default")
    [result] = claim["status"]["allocation"]["devices"]["results"]
    return str(result["pool"])


async def test_an_allocation_that_nobody_uses_makes_way(stage: Stage) -> None:
    """Its node takes no pods; it is allocated anew where its pod can be."""
    await allocated_on_first(stage, users=[])
    await stage.client.create(PODS, user_of("shared", "p"))
    async with stage.scheduler():
        assert await stage.node_of("p") == "m"
        assert await pool_of(stage) == "m"


async def test_an_allocation_that_nobody_uses_makes_way_for_a_gang(stage: Stage) -> None:
    """As for a pod by itself."""
    await allocated_on_first(stage, users=[])
    for name in ("a", "b"):
        pod = user_of("shared", name)
        labels = {f"{PREFIX}/name": "gang", f"{PREFIX}/min-available": "2"}
        pod["metadata"]["labels"] = labels
        await stage.client.create(PODS, pod)
    async with stage.scheduler():
        await stage.advance(10)
        assert [await stage.node_of(name) for name in ("a", "b")] == ["m", "m"]
        assert await pool_of(stage) == "m"


async def test_an_allocation_that_another_pod_uses_stays(stage: Stage) -> None:
    """The pod waits, and gets the reason that the claim is allocated for another node."""
    user = {"resource": "pods", "name": "other", "uid": "1"}
    await allocated_on_first(stage, users=[user])
    await stage.client.create(PODS, user_of("shared", "p"))
    async with stage.scheduler():
        assert await stage.node_of("p") == ""
        assert await pool_of(stage) == "n"
        assert await stage.refusal("p") == (
            "0/2 nodes are available: 1 node(s) were unschedulable, "
            f"1 resourceclaim not available on the node. {no_victims_text(helpful=2, claims=True)}"
        )


async def test_an_allocation_on_a_node_that_is_full_for_now_stays(stage: Stage) -> None:
    """No other node would do for the pod: only nodes that the claim keeps away count."""
    await allocated_on_first(stage, users=[])
    pod = user_of("shared", "p")
    pod["spec"]["nodeSelector"] = {"disk": "fast"}
    await stage.client.create(PODS, pod)
    async with stage.scheduler():
        assert await stage.node_of("p") == ""
        assert await pool_of(stage) == "n"


async def test_a_claim_that_is_deleted_is_given_back_by_a_pod_that_waits_for_it_to_go(
    stage: Stage,
) -> None:
    """A scheduler died between the reservation and the binding, and each waits for the other."""
    made = await stage.client.create(PODS, user_of("shared", "p"))
    user = {"resource": "pods", "name": "p", "uid": made["metadata"]["uid"]}
    await allocated_on_first(stage, users=[user])
    await stage.client.delete(CLAIMS, "shared", namespace="default")
    async with stage.scheduler():
        await stage.advance(10)
        claim = await stage.client.get(CLAIMS, "shared", "default")
        assert not claim["status"].keys() & {"allocation", "reservedFor"}
        assert await stage.condition("p") == {}


async def test_a_claim_that_was_made_for_another_node_is_deleted(stage: Stage) -> None:
    """A scheduler died before the binding, and the node was cordoned meanwhile."""
    await two_devices(stage)
    await stage.client.create(PODS, extended_resource_pod("p", 2))
    dead = FailingTransport(stage.transport, frozenset(range(2, 1000)))
    async with stage.scheduler(dead):
        pass
    [left] = await claims(stage)
    assert left["status"]["allocation"]
    await second_node(stage.client)
    await cordon(stage.client, "n")
    async with stage.scheduler():
        [claim] = await claims(stage)

        assert await stage.node_of("p") == "m"
        assert claim["metadata"]["uid"] != left["metadata"]["uid"]


async def test_a_pod_waits_while_its_claim_is_being_allocated_for_another(stage: Stage) -> None:
    """Both are bound, and no write is made in vain."""
    await create_objects(stage.client, 0)
    requests = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
    metadata = {"name": "shared", "namespace": "default"}
    await stage.client.create(
        CLAIMS, {"metadata": metadata, "spec": {"devices": {"requests": requests}}}
    )
    for name in ("a", "b"):
        await stage.client.create(PODS, user_of("shared", name))
    noting = RecordingTransport(stage.transport)
    async with stage.scheduler(noting):
        assert await stage.node_of("a") == await stage.node_of("b") == "n"
    of_claim = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/shared"
    writes = [each for each in noting.requests if of_claim in each]
    assert writes == [
        f"PUT {of_claim}",
        f"PUT {of_claim}/status",
        f"PUT {of_claim}/status",
    ]
