"""The condition and the event of a pod contain the same text as `dryrack explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.scheduler.messages import refusal_in

from dryrack.client.endpoints import CLAIMS, CLASSES, NODES, PODS, SLICES
from dryrack.cluster import DECISION_KINDS, SeededChance, read_snapshot
from dryrack.placement import Settings, World, explain_pod, what_if, with_only_pending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.stage import Stage

    from dryrack.kinds.raw import Raw

pytestmark = pytest.mark.stage(only=())

NOBODYS = {"limits": {"example.com/nothing": "1"}, "requests": {"example.com/nothing": "1"}}
LABELS = "pod-group.scheduling.kubenexus.io"


def pod(name: str, *, claim: str = "", gang: str = "", cpu: str = "1", **spec: Any) -> Raw:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimName": claim}]} if claim else {}
    labels = {f"{LABELS}/name": gang, f"{LABELS}/min-available": "2"} if gang else {}
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"metadata": metadata, "spec": {"containers": [container], **claims, **spec}}


def claim(name: str, count: int, device_class: str = "gpu") -> Raw:
    exactly = {"deviceClassName": device_class, "count": count}
    requests = [{"name": "gpu", "exactly": exactly}]
    metadata = {"name": name, "namespace": "default"}
    return {"metadata": metadata, "spec": {"devices": {"requests": requests}}}


def leaving(name: str) -> Raw:
    """A claim that is being deleted, and has a finalizer."""
    made = claim(name, 1)
    made["metadata"]["finalizers"] = ["example.com/holds"]
    return made


async def create_objects(stage: Stage) -> None:
    """Two nodes with two devices each; one of them is taken."""
    await stage.client.create(CLASSES, {"metadata": {"name": "gpu"}, "spec": {}})
    for name in ("a", "b"):
        status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
        await stage.client.create(NODES, {"metadata": {"name": name}, "status": status})
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": "gpu-0"}, {"name": "gpu-1"}]
        spec = {"driver": "gpu.example.com", "nodeName": name, "pool": pool, "devices": devices}
        await stage.client.create(SLICES, {"metadata": {"name": name}, "spec": spec})
    await stage.client.create(CLAIMS, claim("first", 1))
    await stage.client.create(PODS, pod("first", claim="first"))


async def world_of(stage: Stage) -> World:
    return World.of((await read_snapshot(stage.client, DECISION_KINDS)).objects)


@pytest.mark.parametrize(
    ("claims", "waiting"),
    [
        ([claim("three", 3)], pod("p", claim="three")),
        ([], pod("p", cpu="5")),
        ([], pod("p", nodeSelector={"disk": "fast"})),
        ([claim("odd", 1, "no-such-class")], pod("p", claim="odd")),
        ([claim("three", 3)], pod("p", claim="three", nodeSelector={"disk": "fast"})),
        ([], pod("p", containers=[{"name": "c", "image": "i", "resources": NOBODYS}])),
    ],
    ids=[
        "devices",
        "cpu",
        "selector",
        "no class",
        "selector and devices",
        "resource",
    ],
)
async def test_condition_event_and_explanation_say_the_same(
    claims: Sequence[Raw], waiting: Raw, stage: Stage
) -> None:
    """One decider has one voice."""
    await create_objects(stage)
    for each in claims:
        await stage.client.create(CLAIMS, each)
    async with stage.scheduler():
        await stage.client.create(PODS, waiting)
        await stage.advance(5)
        told = await stage.refusal("p")
        events = await stage.events("p", "FailedScheduling")
    world = with_only_pending(await world_of(stage), {"default/p"})
    explained = explain_pod(world, "default/p", Settings(chance=SeededChance()))

    assert told
    assert events == [told]
    assert refusal_in(told) == explained.message.rstrip(".")


async def test_a_selector_that_fails_on_one_node_ends_every_attempt(stage: Stage) -> None:
    """Two nodes fit, the selector fails on the third: the pod waits, in files as in a cluster."""
    await create_objects(stage)
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    await stage.client.create(NODES, {"metadata": {"name": "c"}, "status": status})
    pool = {"name": "c", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "odd.example.com", "nodeName": "c", "pool": pool}
    devices = {"devices": [{"name": "odd-0"}]}
    await stage.client.create(SLICES, {"metadata": {"name": "c"}, "spec": spec | devices})
    wanted = claim("guarded", 1)
    test = 'device.driver == "gpu.example.com" || device.attributes["odd.example.com"].x == 1'
    exactly = wanted["spec"]["devices"]["requests"][0]["exactly"]
    exactly["selectors"] = [{"cel": {"expression": test}}]
    await stage.client.create(CLAIMS, wanted)
    async with stage.scheduler():
        await stage.client.create(PODS, pod("p", claim="guarded"))
        await stage.advance(5)
        told = await stage.refusal("p")
        world = with_only_pending(await world_of(stage), {"default/p"})
        settings = Settings(chance=SeededChance())
        explained = explain_pod(world, "default/p", settings)
        refused = {each.claim for each in what_if(world, settings).refused}
        await stage.client.delete(SLICES, "c")
        await stage.advance(60)
        bound = await stage.client.get(PODS, "p", "default")

    assert "CEL runtime error: no such key: x" in told
    assert "odd.example.com/c/odd-0" in told
    assert refusal_in(told) == explained.message.rstrip(".")
    assert refused == {"default/guarded"}
    assert bound["spec"].get("nodeName") in ("a", "b")


@pytest.mark.parametrize("exists", [False, True])
async def test_a_pod_that_does_not_enter_the_queue_gets_no_condition(
    exists: bool, stage: Stage
) -> None:
    """As by kube-scheduler's PreEnqueue; the explanation names the claim."""
    await create_objects(stage)
    if exists:
        await stage.client.create(CLAIMS, leaving("gone"))
        await stage.client.delete(CLAIMS, "gone", namespace="default")
    async with stage.scheduler():
        await stage.client.create(PODS, pod("p", claim="gone"))
        await stage.advance(5)
        assert await stage.condition("p") == {}
        assert await stage.events("p", "FailedScheduling") == []
    world = with_only_pending(await world_of(stage), {"default/p"})
    explained = explain_pod(world, "default/p", Settings(chance=SeededChance()))

    problem = "is being deleted" if exists else "not found; create it"
    assert explained.message == f'resourceclaim "gone" {problem}'


async def test_a_gang_is_told_the_same(stage: Stage) -> None:
    """All its members, and who asks for it."""
    await create_objects(stage)
    for name in ("one", "two"):
        await stage.client.create(CLAIMS, claim(name, 2))
    async with stage.scheduler():
        for name in ("one", "two"):
            await stage.client.create(PODS, pod(name, claim=name, gang="pair"))
        await stage.advance(10)
        told = {await stage.refusal(name) for name in ("one", "two")}
    world = with_only_pending(await world_of(stage), {"default/one", "default/two"})
    outcome = what_if(world, Settings(chance=SeededChance()))

    assert told == {gang.message for gang in outcome.gangs}
    assert told != {""}


async def test_what_is_kept_for_a_gang_is_seen_by_who_asks_about_another_pod(stage: Stage) -> None:
    """Only one pod of two fits, on the node with two devices; that is kept from the third."""
    await create_objects(stage)
    for name in ("one", "two", "late"):
        await stage.client.create(CLAIMS, claim(name, 2))
    seed = {"schedulerName": "kubenexus-scheduler"}
    async with stage.scheduler():
        for name in ("one", "two"):
            await stage.client.create(PODS, pod(name, claim=name, gang="pair", **seed))
        await stage.advance(10)
        await stage.client.create(PODS, pod("late", claim="late", **seed))
        await stage.advance(5)
        told = await stage.refusal("late")
        pods = [await stage.client.get(PODS, name, "default") for name in ("one", "two")]
    world = with_only_pending(await world_of(stage), {"default/late"})
    explained = explain_pod(world, "default/late", Settings(chance=SeededChance()))

    assert [each["status"].get("nominatedNodeName") for each in pods] == ["b", None]
    refusal = "0/2 nodes are available: 2 cannot allocate all claims."
    # Each names the node that it asked first.
    assert told.startswith(refusal)
    assert explained.message.startswith(refusal)
