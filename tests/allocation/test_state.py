"""The devices in use after allocations and releases."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.allocation.builders import (
    DRIVER,
    allocator,
    claim,
    counters,
    device,
    drawing,
    node,
    pool,
    request,
    used,
)
from tests.allocation.generate import generate
from tests.oracle.verdicts import Prepared, features

from dryrack.allocation import (
    Allocated,
    AllocationError,
    DeviceId,
    Features,
)
from dryrack.allocation.supply.usage import UsageTable
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import (
    AllocationResult,
)

FEATURES = Features.defaults()
GPU_0 = DeviceId(DRIVER, "pool", "gpu-0")


def test_admin_access_is_no_use() -> None:
    """A device that is looked after is free for others."""
    books = UsageTable(FEATURES)
    books.allocate(used("gpu-0", adminAccess=True))

    assert vars(books) == vars(UsageTable(FEATURES))


def test_shares_add_up() -> None:
    """Two shares of one device are two entries and one sum."""
    books = UsageTable(FEATURES)
    books.allocate(used("gpu-0", shareID="a", consumedCapacity={"memory": "10Gi"}))
    books.allocate(used("gpu-0", shareID="b", consumedCapacity={"memory": "6Gi"}))

    assert len(books.snapshot([GPU_0]).shared) == 2
    assert not books.devices
    [capacity] = books.capacity.values()
    assert capacity["memory"] == Quantity.parse("16Gi")


def test_a_share_is_a_whole_device_where_there_are_no_shares() -> None:
    """A share is exclusive if the consumable capacity feature is off."""
    books = UsageTable(Features())
    books.allocate(used("gpu-0", shareID="a"))

    assert books.devices == {GPU_0}


def test_the_claim_that_holds_a_device_is_known() -> None:
    """The claim of a device is known until the release."""
    books = UsageTable(FEATURES)
    allocation = used("gpu-0")
    books.allocate(allocation, "team/train")
    assert books.holders == {GPU_0: "team/train"}

    books.release(allocation)
    assert not books.holders


@pytest.mark.parametrize("first", ["red", "blue"])
def test_a_device_that_two_claims_have_is_in_use_until_both_give_it_back(first: str) -> None:
    """Two schedulers may write at the same time; the one that takes it back frees nothing."""
    books = UsageTable(FEATURES)
    allocation = used("gpu-0")
    for name in ("red", "blue"):
        books.allocate(allocation, name)
    (second,) = {"red", "blue"} - {first}

    books.release(allocation, first)
    assert books.devices == {GPU_0}
    assert books.holders == {GPU_0: second}

    books.release(allocation, second)
    assert vars(books) == vars(UsageTable(FEATURES))


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["", "a", "b"])), max_size=20))
def test_how_it_came_about_does_not_matter(steps: list[tuple[int, str]]) -> None:
    """A table after releases is equal to a new table with the other allocations."""
    books = UsageTable(FEATURES)
    given_out = dict[tuple[int, str], AllocationResult]()
    for number, share in steps:
        back = given_out.pop((number, share), None)
        if back is not None:
            books.release(back)
        else:
            made = given_out[number, share] = whole_or_share(number, share)
            books.allocate(made, f"claim-{number}")
    anew = UsageTable(FEATURES)
    for (number, _), allocation in given_out.items():
        anew.allocate(allocation, f"claim-{number}")

    assert {**vars(books), "holders": set(books.holders)} == {
        **vars(anew),
        "holders": set(anew.holders),
    }


def whole_or_share(number: int, share: str) -> AllocationResult:
    """A whole device, or a share of a device with several shares."""
    if not share:
        return used(f"gpu-{number}")
    share_id = f"{share}-{number}"
    consumed = {"memory": "1Gi"}
    return used(f"shared-{number // 2}", shareID=share_id, consumedCapacity=consumed)


@settings(max_examples=150)
@given(st.integers(0, 2**32))
def test_giving_and_taking_back_leaves_no_trace(seed: int) -> None:
    """After all releases, in any order, the state is as before."""
    case = generate(Random(seed))
    enabled = features(case["features"])
    try:
        outcome = Prepared(case).outcome()
    except AllocationError:
        return
    if not isinstance(outcome, Allocated):
        return
    books = UsageTable(enabled)
    for each in outcome.results:
        books.allocate(each)
    for each in outcome.results:
        books.release(each)

    assert vars(books) == vars(UsageTable(enabled))


shared = st.lists(st.integers(1, 6), min_size=1, max_size=6)


@settings(max_examples=150)
@given(shared, st.integers(4, 12), st.integers(0, 9))
def test_nothing_is_given_twice_or_overdrawn(asked: list[int], room: int, limit: int) -> None:
    """Claims served one after the other never share a device, nor take more than there is."""
    offered = [drawing(f"part-{n}", memory=n % 3 + 1) for n in range(6)]
    shareable = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": str(room)}}}
    offered.append(device("shared", more=shareable))
    serving = allocator(pool(offered, sets=[counters(memory=limit)]))
    whole = set[str]()
    consumed = 0
    drawn = 0
    for number, amount in enumerate(asked):
        wanted = claim(
            request("share", capacity={"requests": {"memory": str(amount)}}),
            request("part", select="device.allowMultipleAllocations == false"),
            name=f"claim-{number}",
        )
        less = request("part", select="device.allowMultipleAllocations == false")
        for each in (wanted, claim(less, name=f"less-{number}")):
            outcome = serving.allocate(node(), [each])
            if not isinstance(outcome, Allocated):
                continue
            [allocation] = outcome.results
            serving.set_allocation(each.metadata.name, allocation)
            for given_device in allocation.devices.results:
                if given_device.share_id is not None:
                    consumed += amount
                    continue
                assert given_device.device not in whole
                whole.add(given_device.device)
                drawn += int(given_device.device.removeprefix("part-")) % 3 + 1

    assert consumed <= room
    assert drawn <= limit
