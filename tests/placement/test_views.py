"""Views of devices, claims and gangs show what clients of the API compute."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import DeviceTaintRule, ResourceClaim, ResourceSlice
from dryrack.kinds.scheduling import PodGroup
from dryrack.placement import DeviceView, claims_of, devices_of, gangs_of, summary_of

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

LABELS = "pod-group.scheduling.sigs.k8s.io"


def slice_of(
    node: str, devices: list[Raw], *, generation: int = 1, count: int = 1, **spec: Any
) -> ResourceSlice:
    pool = {"name": node, "generation": generation, "resourceSliceCount": count}
    own = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices}
    return decode({"metadata": {"name": node}, "spec": {**own, **spec}}, ResourceSlice)


def claim(name: str, *devices: str, pods: tuple[str, ...] = (), **result: Any) -> ResourceClaim:
    """One that has devices, as "pool/device"."""
    results = []
    for each in devices:
        pool, _, device = each.partition("/")
        place = {"driver": "gpu.example.com", "pool": pool, "device": device}
        results.append({"request": "gpu", **place, **result})
    status: Raw = {"reservedFor": [{"resource": "pods", "name": pod, "uid": pod} for pod in pods]}
    if results:
        names = {"key": "metadata.name", "operator": "In", "values": [results[0]["pool"]]}
        selector = {"nodeSelectorTerms": [{"matchFields": [names]}]}
        status["allocation"] = {"devices": {"results": results}, "nodeSelector": selector}
    return decode(
        {"metadata": {"name": name, "namespace": "team"}, "status": status}, ResourceClaim
    )


def states(devices: tuple[DeviceView, ...]) -> dict[str, str]:
    return {f"{each.pool}/{each.device}": str(each.state) for each in devices}


def test_a_device_is_free_until_a_claim_has_it() -> None:
    """The claim and its pods are told; admin access takes nothing."""
    here = slice_of("a", [{"name": "gpu-0"}, {"name": "gpu-1"}])
    watcher = claim("watcher", "a/gpu-1", adminAccess=True)
    devices = devices_of([here], [claim("one", "a/gpu-0", pods=("web",)), watcher])

    assert states(devices) == {"a/gpu-0": "allocated", "a/gpu-1": "free"}
    assert [(h.claim, h.pods) for h in devices[0].holders] == [("team/one", ("team/web",))]
    assert [h.admin_access for h in devices[1].holders] == [True]
    assert [each.takers for each in devices] == [("team/one",), ()]


def test_taints_count_whoever_set_them() -> None:
    """By the slice or by a rule; one without effect on scheduling does not count."""
    taint = {"key": "bad", "effect": "NoSchedule"}
    devices: list[Raw] = [
        {"name": "gpu-0", "taints": [taint]},
        {"name": "gpu-1"},
        {"name": "gpu-2", "taints": [{"key": "old", "effect": "None"}]},
    ]
    rule = decode(
        {"spec": {"deviceSelector": {"device": "gpu-1"}, "taint": taint}}, DeviceTaintRule
    )
    found = devices_of([slice_of("a", devices)], [], [rule])

    assert states(found) == {"a/gpu-0": "tainted", "a/gpu-1": "tainted", "a/gpu-2": "free"}


def test_what_claims_share_is_told_with_what_is_left() -> None:
    """It is shared while there is more, and allocated when there is none."""
    device = {
        "name": "gpu-0",
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "80Gi"}},
    }
    first = claim("first", "a/gpu-0", consumedCapacity={"memory": "30Gi"})
    second = claim("second", "a/gpu-0", consumedCapacity={"memory": "50Gi"})
    some = devices_of([slice_of("a", [device])], [first])
    all_ = devices_of([slice_of("a", [device])], [first, second])

    assert states(some) == {"a/gpu-0": "shared"}
    assert str(some[0].left["memory"]) == "50Gi"
    assert states(all_) == {"a/gpu-0": "allocated"}


def test_a_partition_is_blocked_if_others_have_what_it_takes() -> None:
    """A half leaves the other half, and not the whole."""

    def partition(name: str, memory: str) -> Raw:
        counters = {"counterSet": "gpu-0", "counters": {"memory": {"value": memory}}}
        return {"name": name, "consumesCounters": [counters]}

    counters = [{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}]
    devices = [partition("whole", "80Gi"), partition("left", "40Gi"), partition("right", "40Gi")]
    here = slice_of("a", devices, sharedCounters=counters)

    found = devices_of([here], [claim("one", "a/left")])

    assert states(found) == {"a/whole": "blocked", "a/left": "allocated", "a/right": "free"}
    assert found[0].counter_sets == ("gpu-0",)


def test_only_the_newest_generation_counts_and_only_when_it_is_whole() -> None:
    """As the allocator has it; what a claim has and nobody publishes is withdrawn."""
    old = slice_of("a", [{"name": "old"}], generation=1)
    new = slice_of("a", [{"name": "new"}], generation=2, count=2)

    found = devices_of([old, new], [claim("one", "a/old")])

    assert states(found) == {"a/new": "incomplete", "a/old": "withdrawn"}
    assert found[1].node == ""


@pytest.mark.parametrize(
    ("attributes", "model"),
    [
        ({"productName": {"string": "H100"}, "type": {"string": "gpu"}}, "H100"),
        ({"gpu.example.com/model": {"string": "T4"}}, "T4"),
        ({"productName": {"string": "H100"}, "profile": {"string": "1g.10gb"}}, "H100 1g.10gb"),
        ({"index": {"int": 1}}, ""),
    ],
)
def test_a_model_is_what_the_driver_calls_it(attributes: Raw, model: str) -> None:
    """By the attributes that drivers use, with or without their domain."""
    found = devices_of([slice_of("a", [{"name": "gpu-0", "attributes": attributes}])], [])

    assert found[0].model == model


def test_the_summary_tells_how_fragmented_free_devices_are() -> None:
    """As many are free on two nodes as on one, and a pod of four fits on the one alone."""
    devices = [{"name": f"gpu-{number}"} for number in range(4)]
    slices = [slice_of(node, devices) for node in ("a", "b", "c")]
    taken = [claim("one", "a/gpu-0", "a/gpu-1"), claim("two", "b/gpu-0", "b/gpu-3")]

    (summary,) = summary_of(devices_of(slices, taken))

    assert (summary.free, summary.devices, summary.largest) == (8, 12, 4)
    assert summary.nodes == {(4, 4): 1, (2, 4): 2}


def node(name: str, *, ready: str = "True", **spec: Any) -> Node:
    conditions = [{"type": "Ready", "status": ready}]
    raw = {"metadata": {"name": name}, "spec": spec, "status": {"conditions": conditions}}
    return decode(raw, Node)


def test_devices_of_nodes_that_take_no_pods_are_not_free() -> None:
    """Cordoned, not ready, or gone; a device that a claim has is allocated wherever it is."""
    devices = [{"name": "gpu-0"}, {"name": "gpu-1"}]
    slices = [slice_of(each, devices) for each in ("a", "b", "c", "d")]
    nodes = [node("a"), node("b", unschedulable=True), node("c", ready="Unknown")]
    held = [claim("one", "b/gpu-0")]

    found = devices_of(slices, held, nodes=nodes)
    (summary,) = summary_of(found)

    assert states(found) == {
        "a/gpu-0": "free",
        "a/gpu-1": "free",
        "b/gpu-0": "allocated",
        "b/gpu-1": "cordoned",
        "c/gpu-0": "not ready",
        "c/gpu-1": "not ready",
        "d/gpu-0": "no node",
        "d/gpu-1": "no node",
    }
    assert (summary.free, summary.devices) == (2, 8)
    assert set(states(devices_of(slices, [])).values()) == {"free"}


def test_a_device_of_several_nodes_is_free_while_one_of_them_takes_pods() -> None:
    """By a selector, only the nodes that it selects count."""
    nodes = [node("a"), node("b", unschedulable=True)]

    def state_of(**spec: Any) -> str:
        shared = slice_of("net", [{"name": "nic"}], nodeName="", **spec)
        return states(devices_of([shared], [], nodes=nodes))["net/nic"]

    def selected(*names: str) -> Raw:
        each = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in names]
        return {"nodeSelectorTerms": [{"matchFields": [fields]} for fields in each]}

    assert state_of(allNodes=True) == "free"
    assert state_of(nodeSelector=selected("a", "b")) == "free"
    assert state_of(nodeSelector=selected("b")) == "cordoned"
    assert state_of(nodeSelector=selected("c")) == "no node"


def partition(name: str, **counters: int) -> Raw:
    """A device that takes so much of the counters of a card."""
    values = {key: {"value": str(value)} for key, value in counters.items()}
    return {"name": name, "consumesCounters": [{"counterSet": "card", "counters": values}]}


def card(devices: list[Raw], **counters: int) -> ResourceSlice:
    values = {key: {"value": str(value)} for key, value in counters.items()}
    return slice_of("a", devices, sharedCounters=[{"name": "card", "counters": values}])


def test_free_partitions_are_those_that_fit_at_once() -> None:
    """One whole card, two halves or four quarters; a half that is taken leaves two quarters."""
    sizes = {"whole": 8, "left": 4, "right": 4, "q1": 2, "q2": 2, "q3": 2, "q4": 2}
    here = card([partition(name, memory=size) for name, size in sizes.items()], memory=8)
    (all_free,) = summary_of(devices_of([here], []))
    (half_taken,) = summary_of(devices_of([here], [claim("one", "a/left")]))

    assert (all_free.free, all_free.devices, all_free.is_exact) == (4, 7, True)
    assert all_free.document()["free"] == 4
    assert half_taken.free == 2


def test_the_number_of_free_partitions_is_that_of_an_exhaustive_search() -> None:
    """For random cards with several counters, in use or not."""
    for seed in range(150):
        chance = random.Random(seed)
        names = [f"c{each}" for each in range(chance.randint(1, 4))]
        left = {name: chance.randint(1, 9) for name in names}
        takes = [
            {name: chance.randint(1, 5) for name in names if chance.random() < 0.7} or {names[0]: 1}
            for _ in range(chance.randint(1, 9))
        ]
        (summary,) = summary_of(
            devices_of([card([partition(f"d{i}", **t) for i, t in enumerate(takes)], **left)], [])
        )
        most = max(
            bin(chosen).count("1")
            for chosen in range(1 << len(takes))
            if all(
                sum(t.get(name, 0) for i, t in enumerate(takes) if chosen >> i & 1) <= left[name]
                for name in names
            )
        )

        assert (summary.free, summary.is_exact) == (most, True), seed


def test_a_search_that_is_given_up_is_a_lower_bound() -> None:
    """Many partitions of one card that hardly differ."""
    chance = random.Random(7)
    names = [f"c{each}" for each in range(12)]
    takes = [{name: chance.randint(1, 9) for name in chance.sample(names, 3)} for _ in range(80)]
    devices = [partition(f"d{i}", **t) for i, t in enumerate(takes)]
    (summary,) = summary_of(devices_of([card(devices, **dict.fromkeys(names, 40))], []))

    assert not summary.is_exact
    assert summary.document()["freeIsAtLeast"] is True
    assert 0 < summary.free < summary.devices


def test_a_device_that_two_claims_have_is_a_conflict() -> None:
    """Also one that is given out twice by its counters, or beyond its capacity."""
    twice = [claim("one", "a/gpu-0"), claim("two", "a/gpu-0")]
    both = [claim("one", "a/whole"), claim("two", "a/half")]
    parts = card([partition("whole", memory=8), partition("half", memory=4)], memory=8)
    capacity = {"memory": {"value": "8Gi"}}
    shared = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": capacity}
    consumed = [
        claim(name, "a/gpu-0", consumedCapacity={"memory": "5Gi"}, shareID=name)
        for name in ("one", "two")
    ]

    assert states(devices_of([slice_of("a", [{"name": "gpu-0"}])], twice)) == {
        "a/gpu-0": "conflict"
    }
    assert set(states(devices_of([parts], both)).values()) == {"conflict"}
    assert states(devices_of([slice_of("a", [shared])], consumed)) == {"a/gpu-0": "conflict"}


def test_claims_tell_how_far_they_have_come() -> None:
    """Claims list the pods that may use them, or that wait for them."""
    name = {"name": "gpu", "resourceClaimName": "waits"}
    pod = decode(
        {"metadata": {"name": "web", "namespace": "team"}, "spec": {"resourceClaims": [name]}}, Pod
    )
    waits = claim("waits")
    has = claim("has", "a/gpu-0")
    used = claim("used", "a/1", pods=("x",))

    found = {each.name: each for each in claims_of([waits, has, used], [pod])}

    assert [str(found[name].state) for name in ("waits", "has", "used")] == [
        "pending",
        "allocated",
        "reserved",
    ]
    assert found["waits"].pods == ("web",)
    assert (found["used"].node, found["used"].devices) == ("a", ("gpu.example.com/a/1",))


def member(name: str, gang: str, minimum: str, node: str = "", phase: str = "Pending") -> Pod:
    labels = {f"{LABELS}/name": gang, f"{LABELS}/min-available": minimum}
    metadata = {"name": name, "namespace": "team", "labels": labels}
    message = {"type": "PodScheduled", "status": "False", "message": "no room"}
    return decode(
        {
            "metadata": metadata,
            "spec": {"nodeName": node} if node else {},
            "status": {"phase": phase, "conditions": [] if node else [message]},
        },
        Pod,
    )


@pytest.mark.parametrize(
    ("pods", "status", "why"),
    [
        ([member("a", "g", "2", "n"), member("b", "g", "2", "n")], "placed", ""),
        ([member(name, "g", "2", "n", "Succeeded") for name in "ab"], "finished", ""),
        ([member("a", "g", "2", "n", "Succeeded"), member("b", "g", "2", "n")], "placed", ""),
        ([member("a", "g", "2"), member("b", "g", "2")], "waiting", "no room"),
        ([member("a", "g", "2", "n"), member("b", "g", "2")], "incomplete", "no room"),
        ([member("a", "g", "2")], "gathering", "has 1 pod, needs at least 2"),
        (
            [member("a", "g", "2"), member("b", "g", "3")],
            "invalid",
            "different values of min-available",
        ),
    ],
)
def test_gangs_tell_how_far_they_have_come(pods: list[Pod], status: str, why: str) -> None:
    """And why they wait, in the words of the scheduler if it said some."""
    (gang,) = gangs_of(pods)

    assert str(gang.status) == status
    assert why in gang.why
    assert bool(gang.why) is bool(why)


def test_a_group_without_pods_is_a_gang_that_gathers() -> None:
    """Whoever has made the object looks for it."""
    group = decode(
        {
            "metadata": {"name": "train", "namespace": "team"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 4}}},
        },
        PodGroup,
    )
    (gang,) = gangs_of([], [group])

    assert (gang.name, str(gang.status), gang.min_count) == ("train", "gathering", 4)
