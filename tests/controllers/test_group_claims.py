"""A claim of a PodGroup is made once for all its pods, and freed when the group is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.replay import CountingChance
from tests.controllers.scenes import pod_with_claim, template_in
from tests.controllers.worlds import World

from dryrack.apiserver import runtime_config
from dryrack.client.endpoints import CLAIMS, POD_GROUPS, PODS, TEMPLATES
from dryrack.client.informer import Name, name_of
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.controllers.claims import creation, release
from dryrack.controllers.objects import owners_of, status_of, uid_of
from dryrack.controllers.writes import Report, Update
from dryrack.kinds.releases import Release

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

GROUP = Name("default", "gang")
ENTRY = {"name": "gpu", "resourceClaimTemplateName": "gpu"}


def world_with(*pods: str, entry: Raw = ENTRY) -> World:
    """A template, a group that has the entry, and pods of the group that use the template."""
    world = World()
    world.create(TEMPLATES, template_in("default"))
    metadata = {"name": GROUP.name, "namespace": GROUP.namespace}
    world.create(POD_GROUPS, {"metadata": metadata, "spec": {"resourceClaims": [entry]}})
    for name in pods:
        pod = pod_with_claim(Name("default", name))
        pod["spec"]["schedulingGroup"] = {"podGroupName": GROUP.name}
        world.create(PODS, pod)
    return world


def group_of(world: World) -> Raw:
    group = world.get(POD_GROUPS, GROUP)
    assert group is not None
    return group


def for_group(world: World) -> Any:
    templates = {name_of(each): each for each in world.all(TEMPLATES)}
    return creation.plan_group(group_of(world), world.all(CLAIMS), templates)


def for_pod(world: World, name: str) -> Any:
    claims = {name_of(each): each for each in world.all(CLAIMS)}
    templates = {name_of(each): each for each in world.all(TEMPLATES)}
    pod = world.get(PODS, Name("default", name))
    assert pod is not None
    return creation.plan(pod, claims, templates, group_of(world))


@given(st.lists(st.integers(0, 2), max_size=6))
def test_all_pods_of_a_group_have_the_claim_of_the_group(crashes: list[int]) -> None:
    """One claim is created and all have its name, however often the controller restarts."""
    world = world_with("a", "b")
    for up_to in [*crashes, None, None]:
        for plan in (for_pod(world, "a"), for_group(world), for_pod(world, "b")):
            world.carry_out(plan.writes, up_to=up_to)
    world.carry_out(for_pod(world, "a").writes)
    (claim,) = world.all(CLAIMS)
    told = [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}]

    assert claim["metadata"]["generateName"] == "gang-gpu-"
    assert [each["kind"] for each in owners_of(claim)] == ["PodGroup"]
    for owner in (group_of(world), *world.all(PODS)):
        assert status_of(owner)["resourceClaimStatuses"] == told
    assert for_group(world).writes == for_pod(world, "a").writes == ()


def test_a_pod_with_another_source_has_a_claim_of_its_own() -> None:
    """An entry with another source than the entry of the group has a claim of its own."""
    world = world_with("a", entry={"name": "gpu", "resourceClaimName": "by-hand"})
    world.carry_out(for_group(world).writes)
    world.carry_out(for_pod(world, "a").writes)
    (claim,) = world.all(CLAIMS)

    assert [each["kind"] for each in owners_of(claim)] == ["Pod"]


def test_a_group_without_its_template_is_told() -> None:
    """As a pod is, in an event about the group."""
    world = world_with(entry=ENTRY | {"resourceClaimTemplateName": "none"})
    (write,) = for_group(world).writes

    assert isinstance(write, Report)
    assert write.reason == "FailedResourceClaimCreation"
    assert write.regarding["kind"] == "PodGroup"
    assert write.message.startswith('PodGroupResourceClaim gpu: resource claim template "none"')


def test_a_pod_that_was_bound_by_hand_reserves_the_claim_for_its_group() -> None:
    """Once: the next pod of the group finds it reserved."""
    world = world_with("a", "b")
    for _ in range(2):
        for plan in (for_group(world), for_pod(world, "a"), for_pod(world, "b")):
            world.carry_out(plan.writes)
    (claim,) = world.all(CLAIMS)
    world.put(CLAIMS, claim | {"status": {"allocation": {"devices": {}}}})
    for pod in world.all(PODS):
        world.put(PODS, pod | {"spec": pod["spec"] | {"nodeName": "n"}})
    world.carry_out(for_pod(world, "a").writes)
    (claim,) = world.all(CLAIMS)

    assert status_of(claim)["reservedFor"] == [
        {
            "apiGroup": "scheduling.k8s.io",
            "resource": "podgroups",
            "name": "gang",
            "uid": uid_of(group_of(world)),
        }
    ]
    assert for_pod(world, "b").writes == ()


def test_a_claim_is_free_when_its_group_is_gone() -> None:
    """A reservation for a group ends with the group, if groups are served."""
    group = group_of(world_with())
    consumer = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "gang"}
    claim = {
        "metadata": {
            "name": "c",
            "namespace": "default",
            "finalizers": ["resource.kubernetes.io/delete-protection"],
        },
        "status": {
            "allocation": {"devices": {}},
            "reservedFor": [consumer | {"uid": uid_of(group)}],
        },
    }

    assert release.plan(claim, lambda name: None, lambda name: group).writes == ()
    assert release.plan(claim, lambda name: None, None).writes == ()
    freed, _ = release.plan(claim, lambda name: None, lambda name: None).writes
    assert isinstance(freed, Update)
    assert "allocation" not in status_of(freed.object)


async def test_a_group_that_is_gone_frees_claims_that_its_status_does_not_name() -> None:
    """The status is written after the claim, and that write can fail."""
    clock = VirtualClock()
    served = runtime_config.parse("scheduling.k8s.io/v1alpha2=true", Release.V1_36)
    options = ControlPlaneOptions(
        clock=clock, chance=CountingChance(), runtime_config=served, release=Release.V1_36
    )
    async with embedded(options) as cluster:
        client = cluster.client
        policy = {"schedulingPolicy": {"gang": {"minCount": 1}}}
        metadata = {"name": GROUP.name, "namespace": GROUP.namespace}
        group = await client.create(POD_GROUPS, {"metadata": metadata, "spec": policy})
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
        claim = await client.create(
            CLAIMS,
            {
                "metadata": {"name": "c", "namespace": "default"},
                "spec": {"devices": {"requests": [request]}},
            },
        )
        claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
        claim = await client.update(CLAIMS, claim)
        device = {"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "d"}
        consumer = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups"}
        consumer |= {"name": GROUP.name, "uid": uid_of(group)}
        claim["status"] = {
            "allocation": {"devices": {"results": [device]}},
            "reservedFor": [consumer],
        }
        await client.update(CLAIMS, claim, subresource="status")
        await clock.advance(10)
        assert status_of(await client.get(CLAIMS, "c", "default"))["reservedFor"]

        await client.delete(POD_GROUPS, GROUP.name, namespace=GROUP.namespace)
        await clock.advance(10)
        assert "allocation" not in status_of(await client.get(CLAIMS, "c", "default"))
