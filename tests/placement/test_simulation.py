"""A trial leaves nothing behind, and decisions within it are those of a cluster that is so."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.allocation.builders import Counting, device_class, devices, pool
from tests.placement.builders import container, pod, state, wish

from dryrack.allocation import LiveAllocator
from dryrack.placement import Cluster, Fleet, Occupant, Placed, Unplaced, place
from dryrack.placement.simulation import Simulation

if TYPE_CHECKING:
    from dryrack.kinds.core import Pod

NAMES = "abc"
DEVICES = 2


def cluster() -> Cluster:
    fleet = Fleet()
    allocator = LiveAllocator(chance=Counting())
    allocator.put_class(device_class())
    for name in NAMES:
        fleet.put(state(name).node)
        for each in pool(devices(DEVICES), name=name, node=name):
            allocator.put_slice(each)
    return Cluster(fleet, allocator)


def asking(cpu: int) -> Pod:
    return pod(containers=[container(cpu=str(cpu))])


def books(there: Cluster) -> object:
    """All that is written of nodes, pods and claims."""
    assert isinstance(there.allocator, LiveAllocator)
    fleet = there.fleet
    claims = sorted({c for s in fleet.states() for o in s.occupants.values() for c in o.claims})
    return (
        [(each.name, each.used, each.occupants) for each in fleet.states()],
        [(name, there.allocator.allocation_of(name), set(fleet.users(name))) for name in claims],
    )


def settle(there: Cluster, key: str, cpu: int, count: int) -> Placed | Unplaced:
    """A pod and its claim are placed, and are there from now on."""
    with Simulation(there) as simulation:
        placed = _tried(there, simulation, key, cpu, count)
    if isinstance(placed, Placed):
        assert isinstance(there.allocator, LiveAllocator)
        there.fleet.add_pod(key, placed.node, _occupant(key, cpu))
        there.fleet.reopen(there.allocator.set_allocation(f"n/{key}", placed.allocations[0]))
    return placed


def _occupant(key: str, cpu: int) -> Occupant:
    return Occupant.of(asking(cpu), claims=[f"n/{key}"])


def _tried(
    there: Cluster, simulation: Simulation, key: str, cpu: int, count: int
) -> Placed | Unplaced:
    placed = place(asking(cpu), (wish(count, key),), (), there)
    if isinstance(placed, Placed):
        simulation.add_pod(
            key, _occupant(key, cpu), placed.node, {f"n/{key}": placed.allocations[0]}
        )
    return placed


def test_everything_is_as_it_was_after_a_failure() -> None:
    """Pods, what they take, and the devices of claims."""
    there = cluster()
    settle(there, "first", 1, 2)
    before = books(there)

    def fail() -> None:
        with Simulation(there) as simulation:
            simulation.remove_pod("first")
            _tried(there, simulation, "second", 4, 2)
            assert books(there) != before
            raise ValueError("on the way")

    with pytest.raises(ValueError, match="on the way"):
        fail()

    assert books(there) == before


def test_a_pod_that_is_removed_leaves_its_devices_to_others() -> None:
    """While the trial lasts; then nothing fits any longer."""
    there = cluster()
    for name in NAMES:
        settle(there, name, 1, DEVICES)
    with Simulation(there) as simulation:
        simulation.remove_pod("b")
        placed = place(asking(1), (wish(1, "new"),), (), there)

    assert isinstance(placed, Placed)
    assert placed.node == "b"
    assert isinstance(place(asking(1), (wish(1, "new"),), (), there), Unplaced)


def test_a_claim_that_another_pod_has_stays_allocated() -> None:
    """It is free when the last of them is gone."""
    there = cluster()
    assert isinstance(there.allocator, LiveAllocator)
    settle(there, "first", 1, 1)
    there.fleet.add_pod("second", there.fleet.node_of("first"), _occupant("first", 1))
    with Simulation(there) as simulation:
        simulation.remove_pod("first")
        assert there.allocator.allocation_of("n/first") is not None
        simulation.remove_pod("second")
        assert there.allocator.allocation_of("n/first") is None

    assert there.allocator.allocation_of("n/first") is not None


def test_a_trial_is_rewound_to_a_mark() -> None:
    """Changes before the mark stay until the end."""
    there = cluster()
    with Simulation(there) as simulation:
        _tried(there, simulation, "first", 1, 1)
        mark = simulation.mark()
        before = books(there)
        _tried(there, simulation, "second", 1, 1)
        simulation.rewind(mark)

        assert books(there) == before


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_decisions_after_trials_are_those_of_a_cluster_without(seed: int) -> None:
    """Refusals and placements of a simulation are forgotten at its end."""
    random = Random(seed)
    tried = cluster()
    plain = cluster()
    for number in range(12):
        key = f"p{number}"
        cpu = random.randint(0, 3)
        count = random.randint(1, DEVICES)
        with Simulation(tried) as simulation:
            for other in random.sample(range(12), 4):
                if random.random() < 0.5:
                    simulation.remove_pod(f"p{other}")
                else:
                    _tried(
                        tried, simulation, f"x{other}", random.randint(0, 3), random.randint(1, 2)
                    )
        assert books(tried) == books(plain)
        ours, wanted = (settle(each, key, cpu, count) for each in (tried, plain))
        # Which obstacle a node names that has several depends on when it was asked.
        if isinstance(ours, Placed) or isinstance(wanted, Placed):
            assert ours == wanted
