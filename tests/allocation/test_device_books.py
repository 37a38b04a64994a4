"""Refusals by counting are those of the search, and books show what is left."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.allocation.live_worlds import NODES, World, a_claim

from dryrack.allocation import Allocated, AllocationError, LiveAllocator, Search, Unsatisfiable
from dryrack.kinds.core import Node
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import DeviceClass, ResourceClaim, ResourceSlice


def outcome_of(world: World, node: Node, claim: ResourceClaim, *, by_counting: bool) -> object:
    """Return what is comparable of an outcome: the result, the reasons, or the error."""
    world.chance.reset()
    ask = world.live.begin if by_counting else world.live.allocate
    try:
        outcome = ask(node, (claim,))
        while isinstance(outcome, Search):
            outcome.finish()
            outcome = ask(node, (claim,))
    except AllocationError as error:
        return str(error)
    if isinstance(outcome, Allocated):
        return outcome.results
    return type(outcome), outcome.error, outcome.reasons


@settings(max_examples=150)
@given(st.integers(0, 2**32))
def test_counting_gives_the_outcome_of_the_search(seed: int) -> None:
    """With shares, counters, taints, invalid pools, and claims that come and go."""
    world = World(Random(seed))
    for _ in range(40):
        world.change()
        for name in NODES:
            node = decode({"metadata": {"name": name, "labels": {"zone": world.zones[name]}}}, Node)
            claim = a_claim(world.random)
            assert outcome_of(world, node, claim, by_counting=True) == outcome_of(
                world, node, claim, by_counting=False
            )


class Counting:
    def __init__(self) -> None:
        self.number = 0

    def uuid(self) -> str:
        self.number += 1
        return f"00000000-0000-4000-8000-{self.number:012}"


def make_allocator() -> LiveAllocator:
    """Return an allocator for one node with two devices of 1000 thousandths, which are shared."""
    allocator = LiveAllocator(chance=Counting())
    devices = [
        {
            "name": f"d{number}",
            "capacity": {"milli": {"value": "1000"}},
            "allowMultipleAllocations": True,
        }
        for number in range(2)
    ]
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu", "pool": pool, "nodeName": "n", "devices": devices}
    allocator.put_slice(decode({"metadata": {"name": "s"}, "spec": spec}, ResourceSlice))
    allocator.put_class(decode({"metadata": {"name": "all"}}, DeviceClass))
    return allocator


def share(milli: int, count: int = 1) -> tuple[ResourceClaim]:
    exactly: dict[str, Any] = {
        "deviceClassName": "all",
        "allocationMode": "ExactCount",
        "count": count,
        "capacity": {"requests": {"milli": str(milli)}},
    }
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return (decode({"metadata": {"name": "k", "namespace": "n"}, "spec": spec}, ResourceClaim),)


NODE = decode({"metadata": {"name": "n"}}, Node)


def test_a_book_shows_what_is_left_of_each_device() -> None:
    """A share takes from one device, and gives it back; a refusal needs no search."""
    allocator = make_allocator()
    outcome = allocator.begin(NODE, share(700))
    assert isinstance(outcome, Allocated)
    allocator.set_allocation("n/k", outcome.results[0])

    assert allocator.book_on(NODE).fractions == (300, 1000)
    assert not allocator.lacks(NODE, share(400))
    assert allocator.lacks(NODE, share(400, count=2))
    refused = allocator.begin(NODE, share(400, count=2))
    assert isinstance(refused, Unsatisfiable)
    assert refused.reasons
    allocator.set_allocation("n/k", None)
    assert allocator.book_on(NODE).fractions == (1000, 1000)
    assert not allocator.lacks(NODE, share(400, count=2))


def test_a_share_helps_no_other_claim() -> None:
    """Only a share that ends does, because devices become free."""
    allocator = make_allocator()
    outcome = allocator.begin(NODE, share(700))
    assert isinstance(outcome, Allocated)

    assert allocator.set_allocation("n/k", outcome.results[0]) == ()
    assert allocator.set_allocation("n/k", None) == ("n",)
