"""Plans for one pool: no half of it is ever seen, nothing is written twice, anybody may die."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controllers.slices.stages import devices
from tests.hardware.pool_worlds import (
    NOW,
    Refusal,
    Slices,
    pool_with,
    scattered_pool,
    seen_in_order,
    visible,
    wanted_slices,
)

from dryrack.hardware.pool_plan import (
    CreateSlice,
    DeleteSlice,
    PoolId,
    SliceWrite,
    UpdateSlice,
    document,
    plan_pool,
    plan_pools,
)
from dryrack.hardware.slicing import slices_of
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import Device, DeviceAttribute, DeviceCapacity, DeviceTaint

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

Parts = dict[str, tuple[Device, ...]]


def wanted(parts: Parts, uid: str = "uid-a") -> list[Raw]:
    return [document(each) for each in wanted_slices(pool_with(parts), uid)]


def carried_out(slices: Slices, new: list[Raw]) -> list[SliceWrite]:
    writes = list(plan_pool(new, slices.all()))
    for write in writes:
        slices.carry_out(write)
    return writes


def generations(slices: Slices) -> list[tuple[int, int]]:
    pools = [each["spec"]["pool"] for each in slices.all()]
    return [(pool["generation"], pool["resourceSliceCount"]) for pool in pools]


def kinds(writes: list[SliceWrite]) -> list[type[SliceWrite]]:
    return [type(write) for write in writes]


def test_a_new_pool_is_created_in_its_first_generation() -> None:
    """Two mappings: two slices, each of which says two."""
    slices = Slices()

    assert kinds(carried_out(slices, wanted({"a": devices("x", 1), "b": devices("y", 1)}))) == [
        CreateSlice,
        CreateSlice,
    ]
    assert generations(slices) == [(1, 2), (1, 2)]


def test_an_unchanged_pool_causes_no_write() -> None:
    """Changes by the server are recognized: times of taints, forms of quantities."""
    taint = DeviceTaint(key="a", effect="NoSchedule")
    capacity = {"memory": DeviceCapacity(value=Quantity.parse("0.5Gi"))}
    timed = DeviceTaint(key="b", effect="None", time_added="2026-01-01T02:00:00.75+01:00")
    new = wanted({"a": (Device(name="x", taints=(taint, timed), capacity=capacity),)})
    slices = Slices()
    carried_out(slices, new)
    [stored] = slices.all()

    assert stored["spec"]["devices"][0]["capacity"] == {"memory": {"value": "512Mi"}}
    assert [each["timeAdded"] for each in stored["spec"]["devices"][0]["taints"]] == [
        NOW,
        "2026-01-01T01:00:00Z",
    ]
    assert plan_pool(new, slices.all()) == ()


def test_another_form_of_the_same_value_is_no_change() -> None:
    """A server that keeps quantities as they came, or spells out empty lists, means the same."""
    capacity = {"memory": DeviceCapacity(value=Quantity.parse("1Gi"))}
    new = wanted({"a": (Device(name="x", capacity=capacity),)})
    slices = Slices()
    carried_out(slices, new)
    [stored] = slices.all()
    device = stored["spec"]["devices"][0] | {"capacity": {"memory": {"value": "1024Mi"}}}
    slices.put(stored | {"spec": stored["spec"] | {"devices": [device], "sharedCounters": []}})

    assert plan_pool(new, slices.all()) == ()


def test_one_changed_slice_is_one_write_in_the_same_generation() -> None:
    """The other slices stay as they are."""
    slices = Slices()
    carried_out(slices, wanted({"a": devices("x", 1), "b": devices("y", 1)}))

    writes = carried_out(slices, wanted({"a": devices("x", 1), "b": devices("z", 3)}))
    assert kinds(writes) == [UpdateSlice]
    assert generations(slices) == [(1, 2), (1, 2)]


def test_two_changed_slices_are_a_new_generation() -> None:
    """Otherwise one new and one old slice would be taken for a pool."""
    slices = Slices()
    carried_out(slices, wanted({"a": devices("x", 1), "b": devices("y", 1)}))

    writes = carried_out(slices, wanted({"a": devices("z", 1), "b": devices("z", 1)}))
    assert kinds(writes) == [UpdateSlice, UpdateSlice]
    assert generations(slices) == [(2, 2), (2, 2)]


def test_a_new_slice_is_a_new_generation_for_all() -> None:
    """The slices that stay are written too, before the new one comes."""
    slices = Slices()
    carried_out(slices, wanted({"a": devices("x", 1)}))

    writes = carried_out(slices, wanted({"a": devices("x", 1), "b": devices("y", 1)}))
    assert kinds(writes) == [UpdateSlice, CreateSlice]
    assert generations(slices) == [(2, 2), (2, 2)]


def test_the_last_slice_that_stays_keeps_its_generation() -> None:
    """As with upstream's controller: one changes, none is new; the other goes first."""
    slices = Slices()
    carried_out(slices, wanted({"a": devices("x", 1), "b": devices("y", 1)}))

    writes = carried_out(slices, wanted({"a": devices("x", 1)}))
    assert kinds(writes) == [DeleteSlice, UpdateSlice]
    assert generations(slices) == [(1, 1)]


def test_a_slice_that_somebody_deleted_is_put_back() -> None:
    """The pool is whole again, in a new generation."""
    slices = Slices()
    new = wanted({"a": devices("x", 1), "b": devices("y", 1)})
    carried_out(slices, new)
    slices.remove(slices.all()[0]["metadata"]["name"])

    assert kinds(carried_out(slices, new)) == [UpdateSlice, CreateSlice]
    assert generations(slices) == [(2, 2), (2, 2)]


def test_a_pool_that_should_not_be_is_deleted_as_it_was_seen() -> None:
    """Deletions name uid and revision: what has changed meanwhile is looked at again."""
    slices = Slices()
    carried_out(slices, wanted({"a": devices("x", 1)}))
    [stored] = slices.all()
    [delete] = plan_pool((), slices.all())
    slices.put(stored)

    assert delete == DeleteSlice(stored)
    with pytest.raises(Refusal):
        slices.carry_out(delete)


def test_pools_that_are_removed_are_planned_first() -> None:
    """Removed pools come before wanted ones; pools that stay untouched or the same are left out."""
    slices = Slices()
    carried_out(slices, wanted({"a": devices("x", 1)}))
    old = PoolId("gpu.example.com", "node-a")
    new = PoolId("gpu.example.com", "a-pool")
    slice_ = wanted({"b": devices("y", 1)})[0]
    moved = slice_ | {
        "spec": slice_["spec"] | {"pool": slice_["spec"]["pool"] | {"name": new.name}}
    }

    assert list(plan_pools({new: [moved]}, slices.all())) == [old, new]
    assert list(plan_pools({new: [moved]}, slices.all(), untouched={old})) == [new]
    assert plan_pools({old: wanted({"a": devices("x", 1)})}, slices.all()) == {}


def test_the_time_of_a_taint_is_kept_until_the_taint_changes() -> None:
    """The time is kept if the device moves to another slice; a taint with its own time keeps it."""
    old = DeviceTaint(key="broken", value="yes", effect="NoExecute")
    slices = Slices()
    carried_out(slices, wanted({"a": (Device(name="x", taints=(old,)),)}))
    past = "2026-06-01T00:00:00Z"
    [stored] = slices.all()
    stored["spec"]["devices"][0]["taints"][0]["timeAdded"] = past
    other = DeviceTaint(key="broken", value="no", effect="NoExecute")
    tainted = Device(name="x", taints=(old, other))
    carried_out(slices, wanted({"b": (tainted, *devices("y", 1))}))

    [stored] = slices.all()
    taints = stored["spec"]["devices"][0]["taints"]
    assert [taint["timeAdded"] for taint in taints] == [past, NOW]


def test_a_new_owner_is_no_new_generation() -> None:
    """A node that was made again owns the slices; what they say has not changed."""
    slices = Slices()
    parts = {"a": devices("x", 1), "b": devices("y", 1)}
    carried_out(slices, wanted(parts))

    assert kinds(carried_out(slices, wanted(parts, uid="uid-b"))) == [UpdateSlice, UpdateSlice]
    assert generations(slices) == [(1, 2), (1, 2)]
    assert {each["metadata"]["ownerReferences"][0]["uid"] for each in slices.all()} == {"uid-b"}
    assert plan_pool(wanted(parts, uid="uid-b"), slices.all()) == ()


def test_what_others_add_to_the_metadata_stays() -> None:
    """Labels and annotations of others stay; those of dryrack are restored."""
    slices = Slices()
    new = wanted({"a": devices("x", 1)})
    carried_out(slices, new)
    [stored] = slices.all()
    metadata = stored["metadata"] | {"annotations": {"by": "hand"}}
    metadata["labels"] = {"theirs": "1", "kwok.x-k8s.io/managed-by": "dra-kwok-driver"}
    slices.put(stored | {"metadata": metadata})
    carried_out(slices, new)

    [stored] = slices.all()
    assert stored["metadata"]["annotations"] == {"by": "hand"}
    assert stored["metadata"]["labels"] == new[0]["metadata"]["labels"] | {"theirs": "1"}


def test_what_was_replaced_does_not_come_to_light_again() -> None:
    """A publisher dies before it could clear up; the next one removes the oldest first."""
    slices = Slices()
    carried_out(slices, wanted({"a": devices("x", 1), "b": devices("y", 1)}))
    create, *_ = plan_pool(wanted({"c": devices("z", 1)}), slices.all())
    slices.carry_out(create)
    shown = visible(slices.all())

    seen = []
    for write in plan_pool((), slices.all()):
        slices.carry_out(write)
        seen.append(visible(slices.all()))
    assert seen == [shown, shown, ()]


CONTENTS = st.dictionaries(
    st.sampled_from("abcd"),
    st.builds(devices, st.sampled_from(("x", "y")), st.integers(1, 2)),
    max_size=4,
).map(lambda parts: {name: _apart(name, each) for name, each in sorted(parts.items())})


def _apart(name: str, given: tuple[Device, ...]) -> tuple[Device, ...]:
    """No name twice in a pool."""
    return tuple(
        Device(name=f"{name}-{n}", attributes=each.attributes) for n, each in enumerate(given)
    )


@settings(max_examples=300)
@given(st.lists(st.tuples(CONTENTS, st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6))
def test_whoever_dies_wherever_nobody_sees_half_a_pool(
    story: list[tuple[Parts, int, int]],
) -> None:
    """
    After every write the allocator sees the old pool or the wanted one, or waits.

    Each publisher dies after some writes, somebody deletes a slice now and then, and the next
    publisher wants something else; the last one lives, and then all is as it should be.
    """
    slices = Slices()
    for number, (parts, lives, lost) in enumerate(story):
        if lost < len(slices.all()):
            slices.remove(slices.all()[lost]["metadata"]["name"])
        new = wanted(parts)
        before = visible(slices.all())
        after = visible(_stored(new))
        is_last = number == len(story) - 1
        for write in plan_pool(new, slices.all())[: None if is_last else lives]:
            slices.carry_out(write)
            assert visible(slices.all()) in (before, after, None)
    assert visible(slices.all()) == after
    assert plan_pool(new, slices.all()) == ()


def _stored(new: list[Raw]) -> list[Raw]:
    slices = Slices()
    carried_out(slices, new)
    return slices.all()


def _slice(parts: Parts, index: int, *, generation: int, count: int) -> Raw:
    found = wanted(parts)
    chosen = found[index % len(found)]
    pool = chosen["spec"]["pool"] | {"generation": generation, "resourceSliceCount": count}
    metadata = chosen["metadata"] | {"uid": f"given-{index}", "resourceVersion": f"{index + 1}"}
    return chosen | {"metadata": metadata, "spec": chosen["spec"] | {"pool": pool}}


STRANGE = st.lists(
    st.builds(
        _slice,
        CONTENTS.filter(bool),
        st.integers(0, 3),
        generation=st.integers(0, 3),
        count=st.integers(1, 4),
    ),
    max_size=5,
)


@settings(max_examples=300)
@given(STRANGE, CONTENTS.filter(bool))
def test_whatever_was_there_before_nobody_sees_half_a_pool(
    strange: list[Raw], parts: Parts
) -> None:
    """Slices of any generation and count, as a crash or a hand leaves them, become the pool."""
    slices = Slices(strange)
    new = wanted(parts)
    after = visible(_stored(new))
    before = both_ways(slices)
    for write in plan_pool(new, slices.all()):
        slices.carry_out(write)
        assert both_ways(slices) <= before | {after, None}
    assert visible(slices.all()) == after
    assert plan_pool(new, slices.all()) == ()


def both_ways(slices: Slices) -> set[tuple[str, ...] | None]:
    """Slices that disagree about the count look different to those who start elsewhere."""
    return {seen_in_order(slices.all()), seen_in_order(slices.all()[::-1])}


def scattered(name: str, given: tuple[tuple[str, str], ...]) -> tuple[Device, ...]:
    return tuple(
        Device(
            name=f"{name}-{number}",
            node_name=node,
            attributes={"model": DeviceAttribute(string_value=model)},
        )
        for number, (node, model) in enumerate(given)
    )


SCATTERED = st.dictionaries(
    st.sampled_from("abcd"),
    st.lists(
        st.tuples(st.sampled_from(("node-a", "node-b")), st.sampled_from("xy")),
        min_size=1,
        max_size=2,
    ).map(tuple),
    max_size=4,
).map(lambda parts: {name: scattered(name, each) for name, each in sorted(parts.items())})


@settings(max_examples=400)
@given(st.lists(st.tuples(SCATTERED, st.integers(0, 9)), min_size=1, max_size=6))
def test_nodes_that_see_a_part_of_a_pool_do_not_see_half_of_it(
    story: list[tuple[Parts, int]],
) -> None:
    """A node that only some slices are for sees its part of one version, or waits."""
    slices = Slices()
    nodes = ("node-a", "node-b")
    for number, (parts, lives) in enumerate(story):
        new = [document(each) for each in slices_of(scattered_pool(parts))]
        before = {node: seen_in_order(slices.all(), node) for node in nodes}
        after = {node: seen_in_order(_stored(new), node) for node in nodes}
        is_last = number == len(story) - 1
        for write in plan_pool(new, slices.all())[: None if is_last else lives]:
            slices.carry_out(write)
            for node in nodes:
                allowed = (before[node], after[node], None, ())
                assert seen_in_order(slices.all(), node) in allowed
    assert {node: seen_in_order(slices.all(), node) for node in nodes} == after


@pytest.mark.parametrize("last", ["c", "a"])
def test_what_was_replaced_does_not_come_to_light_for_a_part_of_the_nodes(last: str) -> None:
    """Old slices are deleted or changed first: newer slices hide them only from some consumers."""
    versions: list[dict[str, tuple[tuple[str, str], ...]]] = [
        {"a": (("node-a", "x"),)},
        {"b": (("node-a", "x"),)},
        {"b": (("node-b", "x"),), last: (("node-b", "x"),)},
    ]
    slices = Slices()
    seen = list[tuple[str, ...] | None]()
    for version, lives in zip(versions, (9, 1, 9), strict=True):
        parts = {name: scattered(name, given) for name, given in version.items()}
        new = [document(each) for each in slices_of(scattered_pool(parts))]
        for write in plan_pool(new, slices.all())[:lives]:
            slices.carry_out(write)
            seen.append(seen_in_order(slices.all(), "node-a"))

    first, second, *rest = seen
    assert first != second
    assert set(rest) <= {second, None, ()}
