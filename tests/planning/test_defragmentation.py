"""Pods whose move frees whole nodes: every move holds, and what cannot move stays."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from tests.planning.workloads import CLASS, DRIVER

from dryrack.cluster import SeededChance
from dryrack.kinds.core import Node, Pod, PodResourceClaim
from dryrack.kinds.decode import decode
from dryrack.kinds.quota_usage.admission_kinds import PodDisruptionBudget
from dryrack.kinds.releases import DEFAULT_RELEASE
from dryrack.kinds.resource import (
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceSlice,
)
from dryrack.placement import World
from dryrack.planning import Defragmentation, defragment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.meta import KubernetesObject

GANG = "pod-group.scheduling.sigs.k8s.io"
OWNED = {"kind": "ReplicaSet", "name": "set", "uid": "1", "apiVersion": "apps/v1"}


def node(name: str, devices: int = 4, cpu: int = 8, **spec: Any) -> list[KubernetesObject]:
    size = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name}
    metadata = {"name": name, "labels": labels}
    status = {"allocatable": size, "capacity": size}
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    slice_spec = {
        "driver": DRIVER,
        "pool": pool,
        "nodeName": name,
        "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
    }
    return [
        decode({"metadata": metadata, "spec": spec, "status": status}, Node),
        decode({"metadata": {"name": f"{name}-gpus"}, "spec": slice_spec}, ResourceSlice),
    ]


def pod(
    name: str, on: str, devices: Sequence[int], *, gang: str = "", **metadata: Any
) -> list[KubernetesObject]:
    """Return a pod that runs, and its claim with these devices of its node."""
    labels = {"app": name}
    if gang:
        labels |= {f"{GANG}/name": gang, f"{GANG}/min-available": "2"}
    metadata = {"ownerReferences": [{**OWNED, "controller": True}], "labels": labels} | metadata
    spec = {
        "nodeName": on,
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}],
    }
    exactly = {
        "deviceClassName": DRIVER,
        "count": len(devices),
        "allocationMode": "ExactCount",
    }
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": on, "device": f"gpu-{number}"}
        for number in devices
    ]
    status = {
        "allocation": {"devices": {"results": results}},
        "reservedFor": [{"resource": "pods", "name": name, "uid": name}],
    }
    named = {"name": name, "namespace": "team", "uid": name}
    claim_spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    claim_metadata = {"name": f"{name}-gpu", "namespace": "team"}
    return [
        decode({"metadata": {**named, **metadata}, "spec": spec}, Pod),
        decode({"metadata": claim_metadata, "spec": claim_spec, "status": status}, ResourceClaim),
    ]


def defragmented(*objects: Sequence[KubernetesObject]) -> Defragmentation:
    world = World.of([CLASS, *(each for group in objects for each in group)])
    return defragment(world, DRIVER, release=DEFAULT_RELEASE, chance=SeededChance())


def moves(found: Defragmentation) -> list[tuple[str, str, str]]:
    return [(each.pod, each.source, each.target) for each in found.moves]


def test_the_node_with_the_fewest_pods_is_freed() -> None:
    """Its pod fits beside the others; the counts of free devices show the result."""
    found = defragmented(
        node("a"), node("b"), pod("one", "a", [0]), pod("two", "b", [0]), pod("three", "b", [1])
    )

    assert found.freed == ("a",)
    assert moves(found) == [("team/one", "a", "b")]
    assert found.is_reached_freely
    assert found.is_complete
    [before], [after] = found.before, found.after
    assert dict(before.nodes) == {(3, 4): 1, (2, 4): 1}
    assert dict(after.nodes) == {(4, 4): 1, (1, 4): 1}


def test_a_whole_node_takes_no_pods() -> None:
    """A move to it would free one node and use another."""
    found = defragmented(
        node("a"), node("b"), node("c"), pod("one", "a", [0]), pod("two", "b", [0])
    )

    assert found.whole == ("c",)
    assert len(found.freed) == 1
    assert "c" not in [target for _, _, target in moves(found)]
    # Left to itself, the scheduler may put the pod on the node that is whole.
    assert not found.is_reached_freely


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        (
            {"ownerReferences": [{**OWNED, "kind": "DaemonSet", "controller": True}]},
            "it belongs to its node, as the pods of DaemonSets do",
        ),
        ({"ownerReferences": []}, "it has no controller, so no pod would replace it"),
        (
            {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
            "it has the annotation karpenter.sh/do-not-disrupt",
        ),
        ({"deletionTimestamp": "2027-01-15T08:00:00Z"}, "it is being deleted"),
    ],
)
def test_a_pod_that_cannot_be_moved_is_named_with_the_reason(
    metadata: dict[str, Any], why: str
) -> None:
    """Its node stays as it is."""
    found = defragmented(
        node("a"), node("b"), pod("one", "a", [0], **metadata), pod("two", "b", [0], **metadata)
    )

    assert found.freed == ()
    assert [(each.name, each.node, each.why) for each in found.fixed] == [
        ("team/one", "a", why),
        ("team/two", "b", why),
    ]


def test_a_disruption_budget_keeps_its_pods() -> None:
    """Unless it allows an eviction."""

    def with_budget(allowed: int) -> Defragmentation:
        document = {
            "metadata": {"name": "keep", "namespace": "team"},
            "spec": {"selector": {"matchLabels": {"app": "one"}}},
            "status": {"disruptionsAllowed": allowed},
        }
        budget = decode(document, PodDisruptionBudget)
        pods = (pod("one", "a", [0]), pod("two", "b", [0, 1, 2]), pod("three", "b", [3]))
        return defragmented(node("a"), node("b", 5), *pods, [budget])

    assert with_budget(1).freed == ("a",)
    kept = with_budget(0)
    assert kept.freed == ()
    assert [each.why for each in kept.fixed] == [
        "PodDisruptionBudget keep does not allow to evict it"
    ]


def test_a_gang_moves_as_a_whole_or_not_at_all() -> None:
    """All members move with the one on the node; one that cannot be moved keeps the others."""
    nodes = (node("a"), node("b"), node("c"))
    gang = (
        pod("member-1", "a", [0], gang="train"),
        pod("member-2", "b", [0], gang="train"),
    )
    found = defragmented(*nodes, *gang, pod("big", "c", [0, 1]))
    assert len(found.freed) == 2
    assert {each.pod for each in found.moves} >= {"team/member-1", "team/member-2"}
    assert {each.gang for each in found.moves if "member" in each.pod} == {"team/train"}

    alone = pod("member-2", "b", [0], gang="train", ownerReferences=[])
    kept = defragmented(*nodes, gang[0], alone, pod("big", "c", [0, 1, 2, 3]))
    assert kept.moves == ()
    assert {each.name for each in kept.fixed} == {"team/member-1", "team/member-2"}


def test_a_shared_claim_and_a_claim_without_pods_keep_a_node() -> None:
    """Both are named."""

    def reserved_for(claim: KubernetesObject, *pods: str) -> ResourceClaim:
        assert isinstance(claim, ResourceClaim)
        users = [ResourceClaimConsumerReference(resource="pods", name=e, uid=e) for e in pods]
        return replace(claim, status=replace(claim.status, reserved_for=tuple(users)))

    first, claim = pod("one", "a", [0])
    second, _ = pod("two", "a", [0])
    assert isinstance(second, Pod)
    entry = PodResourceClaim(name="gpu", resource_claim_name="one-gpu")
    second = replace(second, spec=replace(second.spec, resource_claims=(entry,)))
    _, orphan = pod("orphan", "b", [0])
    objects = [first, second, reserved_for(claim, "one", "two"), reserved_for(orphan)]
    found = defragmented(node("a"), node("b"), node("c", 1), objects)

    assert found.freed == ()
    assert {(each.name, each.why) for each in found.fixed} == {
        ("team/one", "it shares a claim with pod team/two"),
        ("team/two", "it shares a claim with pod team/one"),
        ("team/orphan-gpu", "the claim is allocated, and no pod uses it"),
    }


def test_a_cordoned_node_is_not_freed() -> None:
    """Its devices would not be free afterwards."""
    found = defragmented(
        node("a", unschedulable=True), node("b"), pod("one", "a", [0]), pod("two", "b", [0])
    )
    assert found.freed == ()


@pytest.mark.parametrize("seed", range(40))
def test_random_clusters_keep_every_pod_and_every_device_once(seed: int) -> None:
    """The moves fit, the freed nodes are empty, and the decider counts the same free devices."""
    chance = Random(seed)
    names = [f"n{number}" for number in range(chance.randint(2, 8))]
    objects: list[Sequence[KubernetesObject]] = [node(name) for name in names]
    sizes: dict[str, int] = {}
    held: dict[str, tuple[str, tuple[int, ...]]] = {}
    for name in names:
        free = list(range(4))
        chance.shuffle(free)
        while free and chance.random() < 0.6:
            size = min(len(free), chance.choice((1, 1, 2, 3)))
            taken = tuple(free.pop() for _ in range(size))
            own = f"pod-{len(sizes)}"
            gang = f"g{chance.randint(0, 1)}" if chance.random() < 0.3 else ""
            more: dict[str, Any] = {"ownerReferences": []} if chance.random() < 0.1 else {}
            objects.append(pod(own, name, taken, gang=gang, **more))
            sizes[own], held[own] = size, (name, taken)
    found = defragmented(*objects)

    place = {own: where for own, (where, _) in held.items()}
    for each in found.moves:
        assert place[each.pod.removeprefix("team/")] == each.source
        place[each.pod.removeprefix("team/")] = each.target
    assert len({each.pod for each in found.moves}) == len(found.moves)
    used = {name: sum(sizes[own] for own in place if place[own] == name) for name in names}
    assert all(number <= 4 for number in used.values())
    assert {name for name, number in used.items() if not number} == {*found.whole, *found.freed}
    affected = {node for each in found.moves for node in (each.source, each.target)}
    if not affected:
        assert found.after == ()
        return
    [after] = found.after
    expected: dict[tuple[int, int], int] = {}
    for number in (used[name] for name in affected):
        expected[4 - number, 4] = expected.get((4 - number, 4), 0) + 1
    assert dict(after.nodes) == expected


def test_a_perfect_packing_of_single_devices_is_found() -> None:
    """With pods of one device, the number of whole nodes is the greatest that exists."""
    for seed in range(20):
        chance = Random(seed)
        names = [f"n{number}" for number in range(6)]
        objects: list[Sequence[KubernetesObject]] = [node(name) for name in names]
        count = 0
        for name in names:
            for device in range(chance.randint(0, 4)):
                objects.append(pod(f"pod-{count}", name, [device]))
                count += 1
        found = defragmented(*objects)
        assert len(found.whole) + len(found.freed) == 6 - -(-count // 4)
