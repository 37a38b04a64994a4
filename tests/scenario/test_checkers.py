"""Invariants, each by a world in which it holds and by planted ones in which it does not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from dryrack.scenario.checkers import Checkers, check
from dryrack.scenario.invariants.violations import Invariant

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

PODS = "pods"
NODES = "nodes"
CLAIMS = "resourceclaims.resource.k8s.io"
SLICES = "resourceslices.resource.k8s.io"
GROUPS = "podgroups.scheduling.x-k8s.io"
PREFIX = "pod-group.scheduling.kubenexus.io"
PROTECTION = "resource.kubernetes.io/delete-protection"


def meta(name: str, **more: Any) -> Raw:
    return {"name": name, "namespace": "default", "uid": f"uid-{name}", **more}


def pod(name: str, node: str = "n1", phase: str = "Running", **metadata: Any) -> tuple[str, Raw]:
    spec = {"nodeName": node} if node else {}
    return PODS, {"metadata": meta(name, **metadata), "spec": spec, "status": {"phase": phase}}


def member(name: str, node: str = "n1", minimum: int = 2, **metadata: Any) -> tuple[str, Raw]:
    labels = {f"{PREFIX}/name": "gang", f"{PREFIX}/min-available": str(minimum)}
    return pod(name, node, labels=labels, **metadata)


def result(device: str, **more: Any) -> Raw:
    return {"request": "r", "driver": "d", "pool": "n1", "device": device, **more}


def claim(
    name: str, *results: Raw, users: tuple[str, ...] = (), **metadata: Any
) -> tuple[str, Raw]:
    reserved = [{"resource": "pods", "name": each, "uid": f"uid-{each}"} for each in users]
    status: Raw = {"allocation": {"devices": {"results": list(results)}}} if results else {}
    status |= {"reservedFor": reserved} if reserved else {}
    return CLAIMS, {"metadata": meta(name, **metadata), "spec": {}, "status": status}


def piece(
    name: str, *, devices: tuple[Raw, ...] = (), counters: Raw | None = None, **pool: Any
) -> tuple[str, Raw]:
    described = {"name": "n1", "generation": 1, "resourceSliceCount": 1, **pool}
    spec = {"driver": "d", "pool": described, "nodeName": "n1", "devices": list(devices)}
    if counters:
        spec["sharedCounters"] = [{"name": "set", "counters": counters}]
    return SLICES, {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec}


def node(name: str = "n1") -> tuple[str, Raw]:
    return NODES, {"metadata": {"name": name, "uid": f"uid-{name}"}}


def drawing(name: str, amount: str) -> Raw:
    draw = {"counterSet": "set", "counters": {"memory": {"value": amount}}}
    return {"name": name, "consumesCounters": [draw]}


SHARED = {"name": "s", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "10Gi"}}}
COUNTED = piece(
    "a",
    devices=(drawing("half-1", "5Gi"), drawing("half-2", "5Gi"), drawing("whole", "10Gi")),
    counters={"memory": {"value": "10Gi"}},
)


def share(number: int, amount: str) -> Raw:
    return result("s", shareID=f"share-{number}", consumedCapacity={"memory": amount})


SOUND: dict[str, list[tuple[str, Raw]]] = {
    "one device each": [
        *(node(), pod("p"), pod("q"), piece("a")),
        *(claim("c", result("g0"), users=("p",)), claim("e", result("g1"), users=("q",))),
    ],
    "who only looks takes nothing": [
        *(node(), pod("p"), pod("q"), claim("c", result("g0"), users=("p",))),
        claim("e", result("g0", adminAccess=True), users=("q",)),
    ],
    "two halves": [
        *(node(), COUNTED, pod("p"), pod("q"), claim("c", result("half-1"), users=("p",))),
        claim("e", result("half-2"), users=("q",)),
    ],
    "shares that fit": [
        *(node(), piece("a", devices=(SHARED,)), pod("p")),
        claim("c", share(1, "4Gi"), share(2, "6Gi"), users=("p",)),
    ],
    "a gang that waits": [node(), member("a", ""), member("b", "")],
    "a gang that runs": [node(), member("a"), member("b"), member("late", "")],
    "a finalizer before there is something to protect": [claim("c", finalizers=[PROTECTION])],
    "a claim that is deleted while a pod has it": [
        *(node(), pod("p")),
        claim("c", result("g0"), users=("p",), deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
    "a pool in two slices": [
        *(node(), piece("a", resourceSliceCount=2), piece("b", resourceSliceCount=2)),
    ],
}

PLANTED: dict[str, tuple[Invariant, str, list[tuple[str, Raw]]]] = {
    "a device twice": (
        Invariant.ONE_HOLDER,
        "device d/n1/g0: is allocated to claims default/c, default/e",
        [
            *(node(), pod("p"), pod("q"), claim("c", result("g0"), users=("p",))),
            claim("e", result("g0"), users=("q",)),
        ],
    ),
    "a device twice in one claim": (
        Invariant.ONE_HOLDER,
        "device d/n1/g0: is allocated to claims default/c",
        [node(), pod("p"), claim("c", result("g0"), result("g0"), users=("p",))],
    ),
    "a share beside the whole": (
        Invariant.ONE_HOLDER,
        "device d/n1/s: is allocated to claims default/c, default/e",
        [
            *(node(), pod("p"), claim("c", share(1, "1Gi"), users=("p",))),
            claim("e", result("s"), users=("p",)),
        ],
    ),
    "counters": (
        Invariant.COUNTERS,
        "pool d/n1, counter set/memory: claims default/c, default/e use more than the counter has",
        [
            *(node(), COUNTED, pod("p"), pod("q"), claim("c", result("half-1"), users=("p",))),
            claim("e", result("whole"), users=("q",)),
        ],
    ),
    "capacity": (
        Invariant.CAPACITY,
        "device d/n1/s: claims default/c use more memory than the device has",
        [
            *(node(), piece("a", devices=(SHARED,)), pod("p")),
            claim("c", share(1, "5Gi"), share(2, "6Gi"), users=("p",)),
        ],
    ),
    "an allocation of nobody": (
        Invariant.NO_LEAK,
        "claim default/c: is allocated, but not reserved for any pod",
        [node(), claim("c", result("g0"))],
    ),
    "a reservation for a pod that is gone": (
        Invariant.NO_LEAK,
        "claim default/c: is reserved for pod p, which no longer exists",
        [node(), claim("c", result("g0"), users=("p",))],
    ),
    "a reservation for a pod that has ended": (
        Invariant.NO_LEAK,
        "claim default/c: is reserved for pod p, which has ended",
        [node(), pod("p", phase="Succeeded"), claim("c", result("g0"), users=("p",))],
    ),
    "a reservation for a pod that is nowhere": (
        Invariant.NO_LEAK,
        "claim default/c: is reserved for pod p, which is not bound to a node",
        [pod("p", node=""), claim("c", result("g0"), users=("p",))],
    ),
    "a claim of a pod that is gone": (
        Invariant.NO_LEAK,
        "claim default/c: was created for pod p, which no longer exists",
        [claim("c", ownerReferences=[{"kind": "Pod", "name": "p", "uid": "uid-p"}])],
    ),
    "a claim that does not go": (
        Invariant.NO_LEAK,
        f"claim default/c: has a deletionTimestamp, but still exists; finalizers: {PROTECTION}",
        [claim("c", finalizers=[PROTECTION], deletionTimestamp="2026-01-01T00:00:00Z")],
    ),
    "a pod that does not go": (
        Invariant.NO_LEAK,
        "pod default/p: has a deletionTimestamp, but still exists",
        [node(), pod("p", deletionTimestamp="2026-01-01T00:00:00Z")],
    ),
    "a pod on a node that is gone": (
        Invariant.NO_LEAK,
        "pod default/p: is bound to node n1, which no longer exists",
        [pod("p")],
    ),
    "a slice of a node that is gone": (
        Invariant.NO_LEAK,
        "slice a: belongs to node n1, which no longer exists",
        [piece("a")],
    ),
    "a pod that does not start": (
        Invariant.NO_STARVATION,
        "pod default/p: is bound to node n1, but does not start",
        [node(), pod("p", phase="Pending"), claim("c", result("g0"), users=("p",))],
    ),
    "half a gang": (
        Invariant.WHOLE_GANGS,
        "pod group default/gang: 1 of 2 are bound, 1 wait",
        [node(), member("a"), member("b", "")],
    ),
    "half a pool": (
        Invariant.COMPLETE_POOLS,
        "pool d/n1: generation 1 has 1 slices of 2",
        [node(), piece("a", resourceSliceCount=2)],
    ),
    "slices that disagree": (
        Invariant.COMPLETE_POOLS,
        "pool d/n1: generation 1 has 2 slices of 2 and 3",
        [node(), piece("a", resourceSliceCount=2), piece("b", resourceSliceCount=3)],
    ),
    "a slice of an older generation": (
        Invariant.COMPLETE_POOLS,
        "pool d/n1: 1 slices are of an older generation",
        [node(), piece("a"), piece("b", generation=2)],
    ),
}


@pytest.mark.parametrize("world", SOUND)
def test_a_sound_world_has_no_violation(world: str) -> None:
    """Neither while things go on nor at rest."""
    assert check(SOUND[world], at_rest=True) == ()


@pytest.mark.parametrize("world", PLANTED)
def test_a_planted_violation_is_found(world: str) -> None:
    """That one, in these words, and no other."""
    invariant, message, objects = PLANTED[world]
    assert [str(each) for each in check(objects, at_rest=True)] == [f"{invariant}: {message}"]


def test_what_is_under_way_is_no_violation() -> None:
    """Leaks, gangs and pools are judged at rest alone; devices at every write."""
    always = (Invariant.ONE_HOLDER, Invariant.COUNTERS, Invariant.CAPACITY)
    for invariant, _, objects in PLANTED.values():
        found = {each.invariant for each in check(objects, at_rest=False)}
        assert found == ({invariant} if invariant in always else set())


def test_a_device_may_change_hands() -> None:
    """One has it after the other, also under the same name; and the moment it does not is told."""
    checkers = Checkers()
    _, first = claim("c", result("g0"), users=("p",))
    _, freed = claim("c")
    _, second = claim("e", result("g0"), users=("q",))
    assert checkers.see(CLAIMS, None, first) == ()
    assert checkers.see(CLAIMS, first, freed) == ()
    assert checkers.see(CLAIMS, None, second) == ()
    [told] = checkers.see(CLAIMS, freed, first)
    assert told.invariant is Invariant.ONE_HOLDER
    assert checkers.see(CLAIMS, second, None) == ()


def test_a_gang_that_was_whole_may_lose_members() -> None:
    """Half of one that never ran is a violation; its last member takes its past along."""
    checkers = Checkers()
    checkers.see(*node_write())
    members = [member(name)[1] for name in "ab"]
    for each in members:
        checkers.see(PODS, None, each)
    checkers.see(PODS, members[0], None)
    assert checkers.at_rest() == ()
    checkers.see(PODS, members[1], None)
    checkers.see(PODS, None, members[0])
    assert [each.invariant for each in checkers.at_rest()] == [Invariant.WHOLE_GANGS]


def test_a_device_that_comes_back_may_keep_a_pod_waiting() -> None:
    """Its card was given away while it was lost; without that, who does not start waits in vain."""
    held = claim("c", result("half-1"), users=("p",))
    taken = claim("e", result("whole"), users=("q",))
    checkers = Checkers()
    for resource, obj in (node(), pod("p"), pod("q", phase="Pending"), held, taken):
        checkers.see(resource, None, obj)
    assert [each.invariant for each in checkers.at_rest()] == [Invariant.NO_STARVATION]
    checkers.see(SLICES, None, COUNTED[1])
    assert checkers.at_rest() == ()
    # Who is given something else of the pool has no part in it; who draws on it, too, has.
    checkers.see(SLICES, None, piece("b", devices=({"name": "whole-2"},))[1])
    assert checkers.see(CLAIMS, None, claim("f", result("whole-2"), users=("p",))[1]) == ()
    [told] = checkers.see(CLAIMS, None, claim("g", result("half-2"), users=("p",))[1])
    assert told.invariant is Invariant.COUNTERS


def test_a_scheduler_may_be_late_for_a_device_that_comes_back() -> None:
    """It decides while the device is lost, and writes when it is there again."""
    checkers = Checkers()
    lost = piece("a", devices=(drawing("whole", "10Gi"),), counters={"memory": {"value": "10Gi"}})
    checkers.see(SLICES, None, COUNTED[1])
    assert checkers.see(CLAIMS, None, claim("c", result("half-1"), users=("p",))[1]) == ()
    checkers.see(SLICES, COUNTED[1], lost[1])
    checkers.see(SLICES, lost[1], COUNTED[1])
    assert checkers.see(CLAIMS, None, claim("e", result("whole"), users=("q",))[1]) == ()


def test_a_gang_may_go_as_a_whole() -> None:
    """Its members are all being deleted before the first of them is gone."""
    checkers = Checkers()
    checkers.see(*node_write())
    members = [member(name)[1] for name in "ab"]
    leaving = [member(name, deletionTimestamp="2027-01-15T08:00:00Z")[1] for name in "ab"]
    for old, new in zip(members, leaving, strict=True):
        checkers.see(PODS, None, old)
        checkers.see(PODS, old, new)
    for each in leaving:
        checkers.see(PODS, each, None)
    assert checkers.at_rest() == ()


def test_the_minimum_may_be_that_of_a_pod_group() -> None:
    """Of scheduler-plugins, as of Kubernetes itself."""
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": meta("gang"),
        "spec": {"minMember": 2},
    }
    labels = {"scheduling.x-k8s.io/pod-group": "gang"}
    objects = [node(), (GROUPS, group), pod("a", labels=labels), pod("b", "", labels=labels)]
    [found] = check(objects, at_rest=True)
    assert found.invariant is Invariant.WHOLE_GANGS


def node_write() -> tuple[str, None, Raw]:
    resource, obj = node()
    return resource, None, obj


def test_a_write_costs_what_it_changes() -> None:
    """Beside 8,000 devices of 1,000 pools a claim is judged in less than 100 microseconds."""
    checkers = Checkers()
    for number in range(1000):
        _, each = piece(f"s{number}", devices=tuple({"name": f"g{k}"} for k in range(8)))
        each["spec"]["pool"]["name"] = f"n{number}"
        checkers.see(SLICES, None, each)
        for k in range(7):
            _, held = claim(f"c{number}-{k}", result(f"g{k}", pool=f"n{number}"), users=("p",))
            checkers.see(CLAIMS, None, held)
    _, given = claim("new", result("g7", pool="n500"), users=("p",))
    _, freed = claim("new")
    began = time.thread_time()
    for _ in range(100):
        checkers.see(CLAIMS, None, given)
        checkers.see(CLAIMS, given, freed)
    assert (time.thread_time() - began) / 200 < 0.0001
