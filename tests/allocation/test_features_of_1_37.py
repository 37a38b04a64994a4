"""Alpha features of 1.37: compatibility groups, derived attributes, and optional operations."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest
from tests.allocation.builders import (
    DRIVER,
    all_devices,
    allocator,
    claim,
    counters,
    device,
    device_class,
    devices,
    drawing,
    given,
    node,
    pool,
    refused,
    request,
    slice_,
    used,
    way,
)

from dryrack.allocation import Allocated, AllocationError, Code, Features, Release, SearchMemo
from dryrack.kinds.core import Node
from dryrack.kinds.decode import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.allocation import LiveAllocator
    from dryrack.kinds.resource import ResourceSlice

GROUPS = Features.from_gates({"DRADeviceCompatibilityGroups": True}, Release.V1_37)
DERIVED = Features.from_gates({"DRADerivedAttributes": True}, Release.V1_37)
OPERATIONS = Features.from_gates({"DRAOptionalNodeOperations": True}, Release.V1_37)
NUMA = f'device.attributes["{DRIVER}"].numa'


def grouped(name: str, *groups: str, **of_sets: tuple[str, ...]) -> Any:
    """A device that consumes one of "gpu", or of each counter set with its own groups."""
    made = drawing(name)
    made["consumesCounters"] = [
        {
            "counterSet": each,
            "counters": {"memory": {"value": "1"}},
            "compatibilityGroups": list(own),
        }
        for each, own in (of_sets or {"gpu": groups}).items()
    ]
    return made


def grouping(
    offered: Sequence[Any], features: Features = GROUPS, sets: Sequence[str] = ("gpu",), **more: Any
) -> LiveAllocator:
    slices = pool(offered, sets=[counters(name, memory=10) for name in sets])
    return allocator(slices, features=features, release=Release.V1_37, **more)


@pytest.mark.parametrize(
    ("groups", "fits"),
    [
        ([("a",), ("a",)], True),
        ([("a",), ("b",)], False),
        ([("a", "b"), ("b",)], True),
        # Each two have a group in common, but all three have none.
        ([("a", "b"), ("b", "c"), ("c", "a")], False),
        ([(), ()], True),
        ([(), ("a",)], False),
        ([("a",), ()], False),
    ],
)
def test_devices_of_a_counter_set_need_a_common_group(
    groups: list[tuple[str, ...]], fits: bool
) -> None:
    """All devices that are chosen from a set share a group, or none of them has any."""
    offered = [grouped(f"gpu-{index}", *own) for index, own in enumerate(groups)]
    outcome = grouping(offered).allocate(node(), [claim(request("r", len(groups)))])

    assert isinstance(outcome, Allocated) is fits


def test_groups_count_for_each_counter_set_alone() -> None:
    """A device between two sets must go together with the devices of both."""
    both = grouped("both", gpu=("a",), nic=("b",))
    ends = [grouped("gpu", gpu=("a",)), grouped("nic", nic=("c",))]
    serving = grouping([both, *ends], sets=("gpu", "nic"))

    assert given(serving.allocate(node(), [claim(request("r", 2))])) == [["both", "gpu"]]
    assert refused(serving.allocate(node(), [claim(request("r", 3))]))


def test_the_search_takes_back_a_choice_with_other_groups() -> None:
    """The first device leaves no partner, so the second is chosen; claims are no border."""
    offered = [grouped("a", "x"), grouped("b", "y"), grouped("c", "y")]

    assert given(grouping(offered).allocate(node(), [claim(request("r", 2))])) == [["b", "c"]]
    pair = [claim(request("r"), name="one"), claim(request("r"), name="two")]
    assert given(grouping(offered).allocate(node(), pair)) == [["b"], ["c"]]


def test_devices_in_use_count_with_their_groups() -> None:
    """A free device must go together with those of other claims, until they are released."""
    offered = [grouped("a", "x"), grouped("b", "y"), grouped("c", "x", "y")]
    serving = grouping(offered, held={"other": used("a")})

    outcome = serving.allocate(node(), [claim(request("r"))])
    assert given(outcome) == [["c"]]
    missing = refused(serving.allocate(node(), [claim(request("r", 2))]))
    assert Code.INCOMPATIBLE in [reason.code for reason in missing.reasons]
    serving.set_allocation("other", None)
    assert given(serving.allocate(node(), [claim(request("r", 2))])) == [["a", "c"]]


def test_a_further_share_needs_no_group() -> None:
    """A device that is shared already stays available, whatever else is in use by now."""
    shared = {**grouped("a", "x"), "allowMultipleAllocations": True}
    held = {"one": used("a", shareID="share"), "other": used("b")}
    serving = grouping([shared, grouped("b", "y"), grouped("c", "x")], held=held)

    assert given(serving.allocate(node(), [claim(request("r"), request("s"))])) == [["a", "a"]]
    assert refused(serving.allocate(node(), [claim(request("r", 2))]))


def test_slices_with_groups_are_ignored_without_the_gate() -> None:
    """Their pool is incomplete, so devices without groups are not allocated either."""
    features = Features.defaults(Release.V1_37)
    plain = slice_("plain", spec_of(devices=[drawing("c", memory=1)]))
    grouped_slice = slice_("grouped", spec_of(devices=[grouped("a", "x")]))
    shared = slice_("shared", spec_of(sharedCounters=[counters(memory=10)]))
    serving = allocator([plain, grouped_slice, shared], features=features, release=Release.V1_37)

    assert refused(serving.allocate(node(), [claim(request("r"))]))
    with pytest.raises(AllocationError, match="is currently being updated"):
        serving.allocate(node(), [claim(all_devices("r"))])
    serving.drop_slice("grouped")
    assert refused(serving.allocate(node(), [claim(request("r"))]))
    before = allocator([plain, grouped_slice, shared], release=Release.V1_36)
    assert given(before.allocate(node(), [claim(request("r"))])) == [["a"]]


def spec_of(**fields: Any) -> Any:
    of_pool = {"name": "pool", "generation": 1, "resourceSliceCount": 3}
    return {"driver": DRIVER, "pool": of_pool, "nodeName": "node-1", **fields}


def test_a_long_search_with_groups_finds_what_trying_all_finds() -> None:
    """Proofs do not know groups, so they leave nothing out."""
    own = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("b", "d"), ("c",), ("a", "c")] * 2
    offered = [grouped(f"gpu-{index:02}", *each) for index, each in enumerate(own)]
    for count in range(1, 11):
        fitting = (
            [f"gpu-{index:02}" for index in chosen]
            for chosen in combinations(range(len(own)), count)
            if set.intersection(*(set(own[index]) for index in chosen))
        )
        expected = next(fitting, None)
        outcome = grouping(offered, memo=SearchMemo()).allocate(
            node(), [claim(request("r", count))]
        )

        assert (given(outcome)[0] if isinstance(outcome, Allocated) else None) == expected


def deriving(name: str, expression: str, count: int = 1, **fields: Any) -> Any:
    attributes = [{"name": "example.com/place", "expression": expression}]
    return request(name, count, derivedAttributes=attributes, **fields)


def match(*requests: str) -> Any:
    return {"constraints": [{"requests": list(requests), "matchAttribute": "example.com/place"}]}


def distinct(*requests: str) -> Any:
    return {"constraints": [{"requests": list(requests), "distinctAttribute": "example.com/place"}]}


def offer(features: Features = DERIVED, **more: Any) -> LiveAllocator:
    offered = [device(f"gpu-{n}", numa=n, place=f"p{n}") for n in range(6)]
    return allocator(pool(offered), features=features, release=Release.V1_37, **more)


def test_constraints_compare_derived_attributes() -> None:
    """The first three devices are in one half, the others in the other one."""
    half = deriving("r", f"{NUMA} / 3", 2)
    serving = offer()

    assert given(serving.allocate(node(), [claim(half, **match())])) == [["gpu-0", "gpu-1"]]
    assert given(serving.allocate(node(), [claim(half, **distinct())])) == [["gpu-0", "gpu-3"]]
    four = deriving("r", f"{NUMA} / 3", 4)
    assert refused(serving.allocate(node(), [claim(four, **match())]))


def test_each_request_derives_for_itself() -> None:
    """One request derives what another one derives differently, or has on its devices."""
    wanted = claim(deriving("a", f"{NUMA} + 4"), deriving("b", NUMA), **match())
    assert given(offer().allocate(node(), [wanted])) == [["gpu-0", "gpu-4"]]

    own = [
        {**device(f"gpu-{n}"), "attributes": {"example.com/place": {"string": f"p{n}"}}}
        for n in range(3)
    ]
    serving = allocator(pool(own), features=DERIVED, release=Release.V1_37)
    mixed = claim(deriving("a", '"p2"'), request("b"), **match())
    assert given(serving.allocate(node(), [mixed])) == [["gpu-0", "gpu-2"]]


def test_subrequests_derive_their_own_attributes() -> None:
    """The second choice derives a value that the other request has."""
    choices = [
        {**way(derivedAttributes=derived), "name": name}
        for name, derived in (
            ("far", [{"name": "example.com/place", "expression": "100"}]),
            ("near", [{"name": "example.com/place", "expression": "3"}]),
        )
    ]
    wanted = claim({"name": "a", "firstAvailable": choices}, deriving("b", NUMA), **match())
    outcome = offer().allocate(node(), [wanted])

    assert given(outcome) == [["gpu-0", "gpu-3"]]
    assert isinstance(outcome, Allocated)
    assert outcome.results[0].devices.results[0].request == "a/near"


def test_values_of_other_types_and_empty_lists_equal_nothing() -> None:
    """Types are compared, too; an empty list has no member in common with another."""
    lists = replace(DERIVED, list_type_attributes=True)
    mixed = deriving("r", f"{NUMA} < 1 ? dyn(1) : dyn('1')", 2)
    assert given(offer().allocate(node(), [claim(mixed, **match())])) == [["gpu-1", "gpu-2"]]

    empty = deriving("r", f"[{NUMA}].filter(x, false)")
    assert refused(offer(lists).allocate(node(), [claim(empty, **match())]))
    some = deriving("r", f"[dyn({NUMA}), dyn({NUMA} + 2)]", 2)
    assert given(offer(lists).allocate(node(), [claim(some, **match())])) == [["gpu-0", "gpu-2"]]


def test_an_expression_that_fails_ends_the_attempt_when_it_is_needed() -> None:
    """It is evaluated after all checks of the device, and only under a constraint."""
    fails = deriving("r", f'device.attributes["{DRIVER}"].none')
    where = f"attribute example.com/place on device {DRIVER}/pool/gpu-0 failed: no such key: none"
    with pytest.raises(AllocationError, match=re.escape(f"evaluate derived {where}")):
        offer().allocate(node(), [claim(fails, **match())])
    broken = deriving("r", "device.driver +")
    with pytest.raises(AllocationError, match="compile derived attribute"):
        offer().allocate(node(), [claim(broken, **match())])

    assert given(offer().allocate(node(), [claim(fails)])) == [["gpu-0"]]
    unmatched = deriving("r", f'device.attributes["{DRIVER}"].none', select="false")
    assert refused(offer().allocate(node(), [claim(unmatched, **match())]))


def test_derived_attributes_need_their_gate() -> None:
    """The claim is refused with the gate off; releases before 1.37 have no such field."""
    wanted = [claim(deriving("r", f"{NUMA} / 3", 2), **match())]
    with pytest.raises(AllocationError) as refusal:
        offer(Features.defaults(Release.V1_37)).allocate(node(), wanted)

    expected = "cannot handle request with derived attributes, the feature is disabled"
    assert str(refusal.value) == f"claim claim, request r: {expected}"
    before = allocator(pool(devices(2)), release=Release.V1_36)
    assert refused(before.allocate(node(), wanted))


def test_a_long_search_with_derived_attributes_ends_with_its_answer() -> None:
    """No proof judges by the attributes of devices, and the memory knows what is derived."""
    memo = SearchMemo()
    for modulus, expected in ((2, True), (5, False)):
        serving = allocator(
            pool([device(f"gpu-{n:02}", numa=n) for n in range(24)]),
            features=DERIVED,
            release=Release.V1_37,
            memo=memo,
        )
        wanted = deriving("r", f"{NUMA} % {modulus}", 9)
        outcome = serving.allocate(node(), [claim(wanted, **match())])

        assert isinstance(outcome, Allocated) is expected


def test_a_node_on_which_an_expression_fails_is_doubtful() -> None:
    """A scheduler gives the pod up if it looks at such a node."""
    other = pool([device("gpu-9")], name="other", node="node-2")
    serving = offer()
    for each in other:
        serving.put_slice(each)
    wanted = [claim(deriving("r", NUMA), **match())]
    both = (node(), node("node-2"))
    doubtful = serving.doubtful_nodes(wanted, lambda: both, enough=2, version=1)

    assert [each.metadata.name for each in doubtful] == ["node-2"]


def node_with(*declared: str) -> Node:
    status = {"declaredFeatures": list(declared)}
    return decode({"metadata": {"name": "node-1"}, "status": status}, Node)


def skipping() -> list[ResourceSlice]:
    of_pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": of_pool, "nodeName": "node-1", "devices": devices(2)}
    return [slice_("s", {**spec, "skipNodeOperations": ["*"]})]


def test_devices_that_skip_operations_need_a_node_that_declares_it() -> None:
    """The list is in the result; without gate or declaration the device is passed over."""
    able = node_with("DRAOptionalNodeOperations")
    wanted = [claim(request("r"))]
    serving = allocator(skipping(), features=OPERATIONS, release=Release.V1_37)
    outcome = serving.allocate(able, wanted)

    assert isinstance(outcome, Allocated)
    assert outcome.results[0].devices.results[0].skip_node_operations == ("*",)
    reasons = refused(serving.allocate(node_with("Other"), wanted)).reasons
    assert "its slice skips node operations, which node node-1 cannot do" in [
        reason.fact for reason in reasons
    ]
    off = allocator(skipping(), release=Release.V1_37)
    assert Code.GATE_OFF in [each.code for each in refused(off.allocate(able, wanted)).reasons]


def test_releases_before_1_37_have_no_optional_operations() -> None:
    """An API server of 1.36 drops the field."""
    serving = allocator(skipping(), release=Release.V1_36)
    outcome = serving.allocate(node(), [claim(request("r"))])

    assert isinstance(outcome, Allocated)
    assert outcome.results[0].devices.results[0].skip_node_operations == ()


def test_the_limit_of_results_is_checked_request_by_request() -> None:
    """Errors of later requests are not reached, and the text says how far it came."""
    wanted = [claim(request("a", 20), request("b", 13), request("c", deviceClassName="none"))]
    with pytest.raises(AllocationError) as before:
        allocator(pool(devices(1)), release=Release.V1_36).allocate(node(), wanted)
    with pytest.raises(AllocationError) as after:
        allocator(pool(devices(1)), release=Release.V1_37).allocate(node(), wanted)

    assert "could not retrieve device class none" in str(before.value)
    assert str(after.value) == (
        "claim claim, request b: adding 13 devices exceeds the claim limit of 32, "
        "with 20 already accounted for"
    )


def test_list_attributes_are_evaluated_without_their_gate() -> None:
    """Since 1.37 a stored selector can go through a list; before, it fails on the device."""
    listed = {**device("gpu-0"), "attributes": {"ids": {"ints": [1, 2]}}}
    attribute = f'device.attributes["{DRIVER}"].ids'
    selector = f"{attribute}.includes(2) && {attribute}.exists(x, x == 1)"
    gpu = [device_class(select=selector)]
    wanted = [claim(request("r"))]
    after = allocator(pool([listed]), classes=gpu, release=Release.V1_37)

    assert given(after.allocate(node(), wanted)) == [["gpu-0"]]
    before = allocator(pool([listed]), classes=gpu, release=Release.V1_36)
    with pytest.raises(AllocationError, match="expression of type 'any' cannot be range"):
        before.allocate(node(), wanted)


def test_reasons_read_names_in_backquotes() -> None:
    """The explanation of a selector names the attribute, however it is written."""
    selector = f'device.attributes["{DRIVER}"].`numa` == 7'
    serving = allocator(pool([device("gpu-0", numa=0)]), release=Release.V1_37)
    reasons = refused(serving.allocate(node(), [claim(request("r", select=selector))])).reasons

    assert any(reason.fact.startswith("numa is 0") for reason in reasons)
