"""Scores that see devices: which node is left with the most for others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.allocation.builders import (
    DRIVER,
    Counting,
    counters,
    device,
    device_class,
    devices,
    drawing,
    pool,
)
from tests.placement.builders import fleet_of, node, pod, wish

from dryrack.allocation import LiveAllocator
from dryrack.placement import Cluster, Occupant, Placed, Profile, Unplaced, place
from dryrack.placement.plugins import DEFAULT_PROFILE, IN_TREE
from dryrack.placement.trace import trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.resource import ResourceSlice


def by(name: str, **args: Any) -> Profile:
    """Only this plugin scores."""
    plugin = IN_TREE[name]
    return Profile(filters=DEFAULT_PROFILE.filters, scores=((plugin, 1),), args={name: args})


def cluster(**pools: Sequence[ResourceSlice]) -> Cluster:
    allocator = LiveAllocator(chance=Counting())
    allocator.put_class(device_class())
    for slices in pools.values():
        for each in slices:
            allocator.put_slice(each)
    return Cluster(fleet_of(*(node(name, cpu="64") for name in pools)), allocator)


def settle(there: Cluster, key: str, count: int, profile: Profile) -> str:
    """The node of a pod that gets so many devices, and keeps them."""
    placed = place(pod(), (wish(count, key),), (), there, profile=profile)
    assert isinstance(placed, Placed)
    there.fleet.add_pod(key, placed.node, Occupant.of(pod(), claims=[f"n/{key}"]))
    assert isinstance(there.allocator, LiveAllocator)
    there.fleet.reopen(there.allocator.set_allocation(f"n/{key}", placed.allocations[0]))
    return placed.node


def scores(there: Cluster, count: int, profile: Profile) -> list[int]:
    found = trace(pod(), (wish(count, "k"),), (), there, profile=profile)
    return [each.total for each in found.nodes]


def test_the_smallest_rest_is_the_best() -> None:
    """Two devices go where two are left, and the node with four stays whole."""
    there = cluster(a=pool(devices(4), name="a", node="a"), b=pool(devices(2), name="b", node="b"))
    profile = by("DeviceFragmentation")

    assert scores(there, 1, profile) == [25, 50]
    assert [settle(there, key, 1, profile) for key in "xy"] == ["b", "b"]
    assert scores(there, 4, profile) == [100, 0]


def test_a_partitioned_device_counts_by_its_counters() -> None:
    """A part of a device that is broken already is better than one of a whole."""
    parts = [drawing(f"p{number}", "gpu", memory=10) for number in range(4)]
    sets = [counters("gpu", memory=40)]
    there = cluster(
        a=pool(parts, sets=sets, name="a", node="a"), b=pool(parts, sets=sets, name="b", node="b")
    )
    profile = by("DeviceFragmentation")

    assert [settle(there, key, 1, profile) for key in "wxyz"] == ["a", "a", "a", "a"]
    assert scores(there, 1, profile) == [0, 25]


def two_groups(name: str) -> list[ResourceSlice]:
    """Four devices in two groups of two."""
    offered = [device(f"gpu-{number}", link=f"link-{number // 2}") for number in range(4)]
    return pool(offered, name=name, node=name)


def test_groups_that_belong_together_are_kept_whole() -> None:
    """A single device goes where a group is broken already, a pair where one is whole."""
    there = cluster(a=two_groups("a"), b=two_groups("b"))
    profile = by("DeviceGroups", attribute=f"{DRIVER}/link")

    assert scores(there, 1, profile) == [0, 0]
    assert settle(there, "x", 1, profile) == "a"
    assert scores(there, 1, profile) == [100, 0]
    assert scores(there, 2, profile) == [50, 100]
    assert settle(there, "pair", 2, profile) == "b"


def test_groups_need_an_attribute() -> None:
    """A profile that names none places no pod, and says so."""
    outcome = place(
        pod(), (wish(1, "k"),), (), cluster(a=two_groups("a")), profile=by("DeviceGroups")
    )

    assert isinstance(outcome, Unplaced)
    words = "args.attribute is missing; set the attribute that groups have in common"
    assert outcome.message == f"plugin DeviceGroups: {words}"


@pytest.mark.parametrize("name", ["DeviceFragmentation", "DeviceGroups"])
def test_they_are_off_by_default(name: str) -> None:
    """kube-scheduler has no such plugins."""
    assert name not in [plugin.name for plugin, _ in DEFAULT_PROFILE.scores]
