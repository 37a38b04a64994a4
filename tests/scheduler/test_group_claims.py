"""A claim of a PodGroup: one for all its pods, reserved for the group, free when the group is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.scheduler.builders import EACH_NATIVE, Native, native_group, native_member
from tests.scheduler.gang_scenes import NAMESPACE, Faulty, GangStage, lone

from dryrack.client.endpoints import CLAIMS, NODES, PODS

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

pytestmark = pytest.mark.stage(kind=GangStage)


ENTRY = {"name": "gpu", "resourceClaimTemplateName": "gpu"}


def sharing_group(minimum: int) -> Raw:
    group = native_group("group", minimum)
    return group | {"spec": {**group["spec"], "resourceClaims": [ENTRY]}}


async def claims(stage: GangStage) -> list[Raw]:
    return list((await stage.client.list(CLAIMS)).items)


async def users(stage: GangStage) -> list[tuple[str, str]]:
    [claim] = await claims(stage)
    return [(it["resource"], it["name"]) for it in claim["status"].get("reservedFor", ())]


@EACH_NATIVE
async def test_the_pods_of_a_group_share_its_claim(stage: GangStage, native: Native) -> None:
    """It has one device, reserved for the group once, and later pods use it too."""
    stage.start()
    group = await stage.client.create(native.endpoint, sharing_group(3))
    await stage.create_pods(*(native_member(f"p{n}", "group") for n in range(3)))
    await stage.rest()

    assert await stage.bound() == ["p0", "p1", "p2"]
    assert len(await stage.allocated_devices()) == 1
    assert await users(stage) == [("podgroups", "group")]
    [claim] = await claims(stage)
    [user] = claim["status"]["reservedFor"]
    assert user == {
        "apiGroup": "scheduling.k8s.io",
        "resource": "podgroups",
        "name": "group",
        "uid": group["metadata"]["uid"],
    }
    await stage.create_pods(native_member("late", "group"))
    await stage.rest()
    assert "late" in await stage.bound()
    assert await claims(stage) == [claim]

    for name in ("p0", "p1", "p2", "late"):
        await stage.client.delete(PODS, name, namespace=NAMESPACE, grace_seconds=0)
    await stage.client.delete(native.endpoint, "group", namespace=NAMESPACE)
    await stage.rest()
    assert await claims(stage) == []


@EACH_NATIVE
@pytest.mark.stage(nodes=1, devices=2)
async def test_a_group_that_does_not_fit_holds_nothing(stage: GangStage, native: Native) -> None:
    """The devices are in use; when they are free the group gets its claim."""
    stage.start()
    await stage.create_pods(*(lone(f"lone-{n}") for n in range(2)))
    await stage.rest()
    await stage.client.create(native.endpoint, sharing_group(2))
    await stage.create_pods(*(native_member(f"p{n}", "group") for n in range(2)))
    await stage.rest()
    assert await stage.bound() == ["lone-0", "lone-1"]
    assert len(await stage.allocated_devices()) == 2
    await stage.client.delete(PODS, "lone-0", namespace=NAMESPACE, grace_seconds=0)
    await stage.rest()
    assert await stage.bound() == ["lone-1", "p0", "p1"]


@EACH_NATIVE
async def test_what_is_reserved_for_a_group_that_cannot_run_is_let_go(
    stage: GangStage, native: Native
) -> None:
    """A scheduler died after it had reserved the claim, and the node takes no pods any more."""
    await stage.client.create(native.endpoint, sharing_group(2))
    await stage.create_pods(*(native_member(f"p{n}", "group") for n in range(2)))
    await stage.rest()
    # The lease of plans, the finalizer, the allocation; the first binding is lost, and all
    # after it.
    stage.start(Faulty(stage.transport, dies_at=3))
    await stage.rest()
    await stage.stop()
    assert await users(stage) == [("podgroups", "group")]
    assert await stage.bound() == []
    for name in ("node-0", "node-1"):
        await cordon(stage, name, unschedulable=True)
    stage.start()
    await stage.rest()
    assert await stage.allocated_devices() == []
    assert await users(stage) == []
    for name in ("node-0", "node-1"):
        await cordon(stage, name, unschedulable=False)
    await stage.rest()
    assert await stage.bound() == ["p0", "p1"]


async def cordon(stage: GangStage, name: str, *, unschedulable: bool) -> None:
    node = await stage.client.get(NODES, name)
    spec = {**node["spec"], "unschedulable": unschedulable}
    await stage.client.update(NODES, {**node, "spec": spec})
