"""Extended resources that device classes stand for: the scheduler makes the claim itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.scheduler.builders import (
    GPU,
    FailingTransport,
    claims,
    extended_resource_pod,
    two_devices,
)
from tests.scheduler.gang_scenes import PREFIX
from tests.scheduler.messages import refusal_in

from dryrack.client.endpoints import CLAIMS, NODES, PODS, QUOTAS
from dryrack.kinds.expansion.pod_claims import DELETE_PROTECTION

if TYPE_CHECKING:
    from tests.stage import Stage

    from dryrack.kinds.raw import Raw

pytestmark = pytest.mark.stage(only=())


# Of one pod: its claim, the allocation, the pod's status, the binding, the event.
WRITES = 5


@pytest.mark.parametrize("resource", [GPU, "deviceclass.resource.kubernetes.io/gpu"])
async def test_a_claim_is_made_for_a_pod_and_told_to_it(resource: str, stage: Stage) -> None:
    """It looks as kube-scheduler's: owner, annotation, finalizer, reservation, mappings."""
    await two_devices(stage)
    await stage.client.create(PODS, extended_resource_pod("p", 2, resource))
    async with stage.scheduler():
        pod = await stage.client.get(PODS, "p", "default")
        [claim] = await claims(stage)
        metadata = claim["metadata"]
        status = claim["status"]

        assert await stage.node_of("p") == "n"
        assert metadata["generateName"] == "p-extended-resources-"
        assert metadata["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
        assert metadata["finalizers"] == [DELETE_PROTECTION]
        [owner] = metadata["ownerReferences"]
        assert owner == {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": pod["metadata"]["uid"],
            "controller": True,
        }
        [request] = claim["spec"]["devices"]["requests"]
        assert request["name"] == "container-0-request-0"
        assert request["exactly"]["count"] == 2
        assert len(status["allocation"]["devices"]["results"]) == 2
        assert [each["name"] for each in status["reservedFor"]] == ["p"]
        assert pod["status"]["extendedResourceClaimStatus"] == {
            "resourceClaimName": metadata["name"],
            "requestMappings": [
                {
                    "containerName": "c",
                    "resourceName": resource,
                    "requestName": "container-0-request-0",
                }
            ],
        }


async def test_a_pod_waits_until_devices_are_free(stage: Stage) -> None:
    """Its condition says what it lacks; it gets a claim only when another pod is deleted."""
    await two_devices(stage)
    for name in ("first", "second"):
        await stage.client.create(PODS, extended_resource_pod(name, 2))
    async with stage.scheduler():
        assert await stage.node_of("second") == ""
        assert (await stage.refusal("second")).startswith(
            "0/1 nodes are available: 1 cannot allocate all claims."
        )
        assert len(await claims(stage)) == 1

        await stage.client.delete(PODS, "first", namespace="default", grace_seconds=0)
        [claim] = await claims(stage)
        bare = {**claim, "metadata": {**claim["metadata"], "finalizers": []}}
        await stage.client.update(CLAIMS, bare)
        await stage.client.delete(CLAIMS, claim["metadata"]["name"], namespace="default")
        await stage.advance(30)

        assert await stage.node_of("second") == "n"


async def test_a_node_with_some_of_its_own_gives_those(stage: Stage) -> None:
    """No claim is made where a device plugin has what is asked for."""
    await two_devices(stage)
    node = await stage.client.get(NODES, "n")
    allocatable = {**node["status"]["allocatable"], GPU: "1"}
    await stage.client.update(
        NODES, {**node, "status": {"allocatable": allocatable}}, subresource="status"
    )
    for name in ("first", "second"):
        await stage.client.create(PODS, extended_resource_pod(name))
    async with stage.scheduler():
        assert await stage.node_of("first") == "n"
        assert await claims(stage) == []
        refusal = f"0/1 nodes are available: 1 Insufficient {GPU}"
        assert refusal_in(await stage.refusal("second")) == refusal


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(WRITES))
async def test_a_write_that_fails_once_leaves_one_claim(
    stage: Stage, number: int, *, after: bool
) -> None:
    """In each case the pod is finally bound with the claim in its status."""
    await two_devices(stage)
    await stage.client.create(PODS, extended_resource_pod("p", 2))
    failing = FailingTransport(stage.transport, frozenset({number}), after=after)
    async with stage.scheduler(failing):
        await stage.advance(30)
        pod = await stage.client.get(PODS, "p", "default")
        [claim] = await claims(stage)
        told = pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"]

        assert pod["spec"]["nodeName"] == "n"
        assert told == claim["metadata"]["name"]
        assert len(claim["status"]["allocation"]["devices"]["results"]) == 2


async def test_a_pod_that_cannot_be_bound_leaves_no_claim(stage: Stage) -> None:
    """The claim that was created for it is deleted each time."""
    await two_devices(stage)
    await stage.client.create(PODS, extended_resource_pod("p", 2))
    failing = FailingTransport(stage.transport, path_end="/binding")
    async with stage.scheduler(failing):
        await stage.advance(30)

    assert sum(each.endswith("/binding") for each in failing.writes) > 1
    assert await claims(stage) == []


@pytest.mark.parametrize("writes", range(1, 4))
async def test_what_a_scheduler_left_half_done_is_finished_with_the_same_claim(
    writes: int, stage: Stage
) -> None:
    """One that died after any of its writes has its claim found by the next one."""
    await two_devices(stage)
    await stage.client.create(PODS, extended_resource_pod("p", 2))
    dead = FailingTransport(stage.transport, frozenset(range(writes, 1000)))
    async with stage.scheduler(dead):
        pass
    [left] = await claims(stage)
    async with stage.scheduler():
        [claim] = await claims(stage)

        assert claim["metadata"]["uid"] == left["metadata"]["uid"]
        assert await stage.node_of("p") == "n"
        assert len(claim["status"]["allocation"]["devices"]["results"]) == 2


def of_gang(name: str) -> Raw:
    """A pod of a gang of two that asks for a device by an extended resource."""
    pod = extended_resource_pod(name)
    labels = {f"{PREFIX}/name": "gang", f"{PREFIX}/min-available": "2"}
    return pod | {"metadata": {**pod["metadata"], "labels": labels}}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(2 * (WRITES - 1)))
async def test_a_gang_gets_its_claims_or_none(stage: Stage, number: int, *, after: bool) -> None:
    """Whichever write fails, both pods are bound in the end, each with one claim."""
    await two_devices(stage)
    for name in ("a", "b"):
        await stage.client.create(PODS, of_gang(name))
    failing = FailingTransport(stage.transport, frozenset({number}), after=after)
    async with stage.scheduler(failing):
        await stage.advance(60)
        found = await claims(stage)

        assert [await stage.node_of(name) for name in ("a", "b")] == ["n", "n"]
        assert sorted(each["status"]["reservedFor"][0]["name"] for each in found) == ["a", "b"]
        devices = [it["status"]["allocation"]["devices"]["results"] for it in found]
        assert sorted(each["device"] for [each] in devices) == ["d0", "d1"]


async def test_pods_with_long_names_alike_have_a_device_each(stage: Stage) -> None:
    """Names of claims are cut, and a claim with such a name may exist already."""
    names = [f"{'p' * 60}-{ending}" for ending in ("a", "b")]

    await two_devices(stage)
    metadata = {"name": f"{names[0]}-extended-resources", "namespace": "default"}
    await stage.client.create(CLAIMS, {"metadata": metadata, "spec": {}})
    for name in names:
        await stage.client.create(PODS, extended_resource_pod(name))
    async with stage.scheduler():
        assert [await stage.node_of(name) for name in names] == ["n", "n"]
        statuses = [each["status"] for each in await claims(stage)]
        allocated = [each["allocation"] for each in statuses if each.get("allocation")]
        results = [each["devices"]["results"] for each in allocated]
        assert sorted(each["device"] for [each] in results) == ["d0", "d1"]


async def test_a_pod_is_told_that_its_claim_is_refused(stage: Stage) -> None:
    """A quota leaves no claim to the namespace; when it does, the pod is bound."""
    quota = {
        "metadata": {"name": "none", "namespace": "default"},
        "spec": {"hard": {"count/resourceclaims.resource.k8s.io": "0"}},
        "status": {
            part: {"count/resourceclaims.resource.k8s.io": "0"} for part in ("hard", "used")
        },
    }

    await two_devices(stage)
    made = await stage.client.create(QUOTAS, quota)
    await stage.client.update(
        QUOTAS, {**made, **quota, "metadata": made["metadata"]}, subresource="status"
    )
    await stage.client.create(PODS, extended_resource_pod("p"))
    async with stage.scheduler():
        await stage.advance(60)
        words = (
            'running PreBind plugin "DynamicResources": create claim for extended resources: '
            "resourceclaims.resource.k8s.io "
        )
        [told] = await stage.events("p", "FailedScheduling")
        assert (await stage.condition("p"))["reason"] == "SchedulerError"
        assert told.startswith(f'{words}"p-extended-resources-" is forbidden: exceeded quota')
        assert await claims(stage) == []

        await stage.client.delete(QUOTAS, "none", namespace="default")
        await stage.advance(60)
        assert await stage.node_of("p") == "n"
