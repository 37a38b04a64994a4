"""What is in use, and what giving and taking back do to it."""

from __future__ import annotations

from random import Random

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
)
from tests.allocation.generate import generate
from tests.oracle.verdicts import Prepared, features

from dryrack.allocation import (
    Allocated,
    AllocatedState,
    AllocationError,
    DeviceId,
    Features,
    PoolId,
)
from dryrack.allocation.supply.usage import UsageTable
from dryrack.kinds.decode import decode
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)

FEATURES = Features.defaults()


def result(name: str, **fields: object) -> AllocationResult:
    raw = {"request": "r", "driver": DRIVER, "pool": "pool", "device": name, **fields}
    given_device = decode(raw, DeviceRequestAllocationResult)
    return AllocationResult(devices=DeviceAllocationResult(results=(given_device,)))


def test_admin_access_is_no_use() -> None:
    """A device that is looked after is free for others."""
    state = AllocatedState().allocate(result("gpu-0", adminAccess=True), FEATURES)

    assert state == AllocatedState()


def test_shares_add_up() -> None:
    """Two shares of one device are two entries and one sum."""
    first = result("gpu-0", shareID="a", consumedCapacity={"memory": "10Gi"})
    second = result("gpu-0", shareID="b", consumedCapacity={"memory": "6Gi"})
    state = AllocatedState().allocate(first, FEATURES).allocate(second, FEATURES)

    assert len(state.shared) == 2
    assert not state.devices
    [capacity] = state.capacity.values()
    assert capacity["memory"] == Quantity.parse("16Gi")


def test_a_share_is_a_whole_device_where_there_are_no_shares() -> None:
    """Without consumable capacity a share keeps the device from everybody."""
    state = AllocatedState().allocate(result("gpu-0", shareID="a"), Features())

    assert state.devices == {DeviceId(DRIVER, "pool", "gpu-0")}


def test_the_claim_that_holds_a_device_is_known() -> None:
    """Who has a device can be told, until it is given back."""
    allocation = result("gpu-0")
    state = AllocatedState().allocate(allocation, FEATURES, claim="team/train")

    assert state.holders == {DeviceId(DRIVER, "pool", "gpu-0"): "team/train"}
    assert not state.release(allocation, FEATURES).holders


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["", "a", "b"])), max_size=20))
def test_books_tell_what_the_value_tells(steps: list[tuple[int, str]]) -> None:
    """One allocation after the other given and taken back: both know the same at every step."""
    books, state = UsageTable(FEATURES), AllocatedState()
    given_out: dict[tuple[int, str], AllocationResult] = {}
    for number, share in steps:
        back = given_out.pop((number, share), None)
        if back is not None:
            books.release(back)
            state = state.release(back, FEATURES)
        else:
            fields = {"shareID": share, "consumedCapacity": {"memory": "1Gi"}} if share else {}
            made = given_out[number, share] = result(f"gpu-{number // 2}", **fields)
            books.allocate(made, f"claim-{number}")
            state = state.allocate(made, FEATURES, claim=f"claim-{number}")
        assert books.devices == set(state.devices)
        assert (books.capacity, books.holders) == (dict(state.capacity), dict(state.holders))
        assert books.in_use(PoolId(DRIVER, "pool")) == state.in_use(PoolId(DRIVER, "pool"))
        devices = [DeviceId(DRIVER, "pool", f"gpu-{each}") for each in range(3)]
        assert [*map(books.is_shared, devices)] == [*map(state.is_shared, devices)]


@settings(max_examples=150)
@given(st.integers(0, 2**32))
def test_giving_and_taking_back_leaves_no_trace(seed: int) -> None:
    """Whatever is allocated, in whichever order it is taken back, the state is as before."""
    case = generate(Random(seed))
    enabled = features(case["features"])
    prepared = Prepared(case)
    try:
        outcome = prepared.allocator().allocate(prepared.node, prepared.claims)
    except AllocationError:
        return
    if not isinstance(outcome, Allocated):
        return
    before = AllocatedState()
    after = before.allocate_all([(each, "") for each in outcome.results], enabled)
    for each in outcome.results:
        after = after.release(each, enabled)

    assert not after.devices | after.shared
    assert not after.capacity


shared = st.lists(st.integers(1, 6), min_size=1, max_size=6)


@settings(max_examples=150)
@given(shared, st.integers(4, 12), st.integers(0, 9))
def test_nothing_is_given_twice_or_overdrawn(asked: list[int], room: int, limit: int) -> None:
    """Claims served one after the other never share a device, nor take more than there is."""
    offered = [drawing(f"part-{n}", memory=n % 3 + 1) for n in range(6)]
    shareable = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": str(room)}}}
    offered.append(device("shared", more=shareable))
    serving = allocator(pool(offered, sets=[counters(memory=limit)]))
    state, whole, consumed, drawn = AllocatedState(), set[str](), 0, 0
    for number, amount in enumerate(asked):
        wanted = claim(
            request("share", capacity={"requests": {"memory": str(amount)}}),
            request("part", select="device.allowMultipleAllocations == false"),
            name=f"claim-{number}",
        )
        wanted_less = claim(request("part", select="device.allowMultipleAllocations == false"))
        for each in (wanted, wanted_less):
            outcome = serving.with_allocated(state).allocate(node(), [each])
            if not isinstance(outcome, Allocated):
                continue
            [allocation] = outcome.results
            state = state.allocate(allocation, FEATURES)
            for given_device in allocation.devices.results:
                if given_device.share_id is not None:
                    consumed += amount
                    continue
                assert given_device.device not in whole
                whole.add(given_device.device)
                drawn += int(given_device.device.removeprefix("part-")) % 3 + 1

    assert consumed <= room
    assert drawn <= limit
