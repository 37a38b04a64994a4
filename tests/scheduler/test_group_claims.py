"""A claim of a PodGroup: one for all its pods, reserved for the group, free when the group is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.scheduler.gang_scenes import NAMESPACE, Faulty, lone, play
from tests.scheduler.test_pod_groups import NATIVE, native_group, native_member

from dryrack.client.endpoints import CLAIMS, NODES, POD_GROUPS, PODS

if TYPE_CHECKING:
    from tests.scheduler.gang_scenes import Scene

Raw = dict[str, Any]

ENTRY = {"name": "gpu", "resourceClaimTemplateName": "gpu"}


def sharing_group(minimum: int) -> Raw:
    group = native_group("group", minimum)
    return group | {"spec": {**group["spec"], "resourceClaims": [ENTRY]}}


async def claims(scene: Scene) -> list[Raw]:
    return list((await scene.client.list(CLAIMS)).items)


async def users(scene: Scene) -> list[tuple[str, str]]:
    [claim] = await claims(scene)
    return [(it["resource"], it["name"]) for it in claim["status"].get("reservedFor", ())]


def test_the_pods_of_a_group_share_its_claim() -> None:
    """It has one device, reserved for the group once, and later pods use it too."""

    async def story(scene: Scene) -> None:
        scene.start()
        group = await scene.client.create(POD_GROUPS, sharing_group(3))
        await scene.create(*(native_member(f"p{n}", "group") for n in range(3)))
        await scene.rest()

        assert await scene.bound() == ["p0", "p1", "p2"]
        assert len(await scene.held()) == 1
        assert await users(scene) == [("podgroups", "group")]
        [claim] = await claims(scene)
        [user] = claim["status"]["reservedFor"]
        assert user == {
            "apiGroup": "scheduling.k8s.io",
            "resource": "podgroups",
            "name": "group",
            "uid": group["metadata"]["uid"],
        }
        await scene.create(native_member("late", "group"))
        await scene.rest()
        assert "late" in await scene.bound()
        assert await claims(scene) == [claim]

        for name in ("p0", "p1", "p2", "late"):
            await scene.client.delete(PODS, name, namespace=NAMESPACE, grace_seconds=0)
        await scene.client.delete(POD_GROUPS, "group", namespace=NAMESPACE)
        await scene.rest()
        assert await claims(scene) == []

    play(story, serving=NATIVE)


def test_a_group_that_does_not_fit_holds_nothing() -> None:
    """The devices are in use; when they are free the group gets its claim."""

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.create(*(lone(f"lone-{n}") for n in range(2)))
        await scene.rest()
        await scene.client.create(POD_GROUPS, sharing_group(2))
        await scene.create(*(native_member(f"p{n}", "group") for n in range(2)))
        await scene.rest()
        assert await scene.bound() == ["lone-0", "lone-1"]
        assert len(await scene.held()) == 2
        await scene.client.delete(PODS, "lone-0", namespace=NAMESPACE, grace_seconds=0)
        await scene.rest()
        assert await scene.bound() == ["lone-1", "p0", "p1"]

    play(story, nodes=1, devices=2, serving=NATIVE)


def test_what_is_reserved_for_a_group_that_cannot_run_is_let_go() -> None:
    """A scheduler died after it had reserved the claim, and the node takes no pods any more."""

    async def story(scene: Scene) -> None:
        await scene.client.create(POD_GROUPS, sharing_group(2))
        await scene.create(*(native_member(f"p{n}", "group") for n in range(2)))
        await scene.rest()
        # The lease of plans, the finalizer, the allocation; the first binding is lost, and all
        # after it.
        scene.start(Faulty(scene.cluster.transport, dies_at=3))
        await scene.rest()
        await scene.stop()
        assert await users(scene) == [("podgroups", "group")]
        assert await scene.bound() == []
        for name in ("node-0", "node-1"):
            await cordon(scene, name, unschedulable=True)
        scene.start()
        await scene.rest()
        assert await scene.held() == []
        assert await users(scene) == []
        for name in ("node-0", "node-1"):
            await cordon(scene, name, unschedulable=False)
        await scene.rest()
        assert await scene.bound() == ["p0", "p1"]

    play(story, serving=NATIVE)


async def cordon(scene: Scene, name: str, *, unschedulable: bool) -> None:
    node = await scene.client.get(NODES, name)
    spec = {**node["spec"], "unschedulable": unschedulable}
    await scene.client.update(NODES, {**node, "spec": spec})
