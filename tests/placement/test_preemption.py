"""Preemption chooses as few and as unimportant victims as possible, with devices."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as changed
from tests.placement.builders import APP, PreemptionCluster, container, names, pod, state

from dryrack.kinds.meta import LabelSelector
from dryrack.placement import Occupant
from dryrack.placement.place import unresolvable_nodes
from dryrack.placement.preemption import (
    DisruptionBudget,
    DisruptionGroup,
    NoPreemption,
    Preemption,
    Preemptor,
    preempt_anywhere,
    preempt_on_node,
)
from dryrack.placement.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence


def test_the_least_important_pod_goes_and_the_others_stay() -> None:
    """One of two has to go: the one of lower priority."""
    world = PreemptionCluster("a")
    world.run("old", "a", cpu=2, priority=5)
    world.run("young", "a", cpu=2, priority=1)
    found = preempt_on_node(world.cluster, Preemptor(10), world.try_on(cpu=2))
    assert isinstance(found, Preemption)
    assert names(found) == ["young"]
    assert found.node == "a"


def test_pods_of_the_same_priority_stay() -> None:
    """Preemption is for lower priorities alone."""
    world = PreemptionCluster("a")
    world.run("equal", "a", cpu=4, priority=10)
    found = preempt_on_node(world.cluster, Preemptor(10), world.try_on(cpu=2))
    assert isinstance(found, NoPreemption)
    assert found.message == (
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_devices_of_victims_are_free() -> None:
    """The pod that has no device is spared, although it is the least important."""
    world = PreemptionCluster("a")
    world.run("idle", "a", priority=0)
    world.run("busy", "a", gpus=2, priority=1)
    found = preempt_on_node(world.cluster, Preemptor(10), world.try_on(gpus=1))
    assert names(found) == ["busy"]


def test_a_node_without_a_protected_victim_is_taken_before_others() -> None:
    """A budget that allows no disruption weighs more than a priority."""
    world = PreemptionCluster("ab")
    world.run("protected", "a", cpu=4, priority=0)
    world.run("more-important", "b", cpu=4, priority=5)
    of_both = DisruptionBudget("n", LabelSelector(match_labels=APP), 0, frozenset())
    spared = DisruptionBudget(
        "n", LabelSelector(match_labels=APP), 0, frozenset({"more-important"})
    )
    wanted = world.try_on(cpu=2)
    found = preempt_on_node(world.cluster, Preemptor(10), wanted, [of_both])
    assert names(found) == ["protected"]
    found = preempt_on_node(world.cluster, Preemptor(10), wanted, [spared])
    assert isinstance(found, Preemption)
    assert (names(found), found.violations) == (["more-important"], 0)


def test_of_two_nodes_the_one_with_the_younger_victim_is_taken() -> None:
    """All else being equal, less work is lost."""
    world = PreemptionCluster("ab")
    world.run("older", "a", cpu=4, age=5)
    world.run("younger", "b", cpu=4, age=1)
    found = preempt_on_node(world.cluster, Preemptor(10), world.try_on(cpu=2))
    assert names(found) == ["younger"]


def test_a_gang_takes_from_many_nodes_what_it_needs_and_no_more() -> None:
    """Two nodes are full; three devices are needed, and one pod can stay."""
    world = PreemptionCluster("ab")
    for number, node in enumerate("aabb"):
        world.run(f"p{number}", node, gpus=1, priority=number)
    found = preempt_anywhere(world.cluster, Preemptor(10), world.all_fit(1, 1, 1))
    assert names(found) == ["p2", "p1", "p0"]


def test_what_belongs_together_goes_together() -> None:
    """A pod of a group takes the others along, or stays if one of them has to."""
    world = PreemptionCluster("ab")
    world.run("x0", "a", gpus=2)
    world.run("x1", "b", gpus=2)
    pair = DisruptionGroup("pair", ("x0", "x1"))
    preemptor = Preemptor(10, group_of=lambda _: pair)
    assert names(preempt_anywhere(world.cluster, preemptor, world.all_fit(1))) == ["x0", "x1"]
    whole = replace(preemptor, own=frozenset({"x1"}))
    assert isinstance(preempt_anywhere(world.cluster, whole, world.all_fit(1)), NoPreemption)


def gang_of(name: str, size: int, min_count: int) -> Callable[[Hashable], DisruptionGroup | None]:
    """Pods that begin so are a gang."""
    group = DisruptionGroup(name, [f"{name}{number}" for number in range(size)], min_count)
    return lambda key: group if str(key).startswith(name) else None


@pytest.mark.parametrize(
    ("needed", "victims"),
    [
        ((1,), ["g3"]),
        ((1, 1), ["g2", "g3"]),
        ((1, 1, 1), ["g0", "g1", "g2", "g3"]),
    ],
)
def test_a_gang_is_spared_or_goes_whole(needed: Sequence[int], victims: list[str]) -> None:
    """Two of its four pods have to run: two may go by themselves, but never three alone."""
    world = PreemptionCluster("ab")
    for number, node in enumerate("aabb"):
        world.run(f"g{number}", node, gpus=1)
    preemptor = Preemptor(10, group_of=gang_of("g", 4, 2))
    assert names(preempt_anywhere(world.cluster, preemptor, world.all_fit(*needed))) == victims


def test_the_rest_of_a_gang_counts_where_nodes_are_compared() -> None:
    """A lone pod of the same priority is the lesser loss than a pod with its whole gang."""
    world = PreemptionCluster("abc")
    for name, node in (("g0", "a"), ("g1", "b"), ("lone", "c")):
        world.run(name, node, gpus=2)
    preemptor = Preemptor(10, group_of=gang_of("g", 2, 2))
    assert names(preempt_on_node(world.cluster, preemptor, world.try_on(gpus=1))) == ["lone"]
    stands = changed(world.cluster.fleet.occupant("lone") or Occupant(("", ""), {}), priority=5)
    world.cluster.fleet.add_pod("lone", "c", stands)
    found = preempt_on_node(world.cluster, preemptor, world.try_on(gpus=1))
    assert names(found) == ["g0", "g1"]


def test_a_gang_with_a_member_that_may_not_go_keeps_all_that_it_needs() -> None:
    """One of three is as important as who comes: only the one that is spare goes."""
    world = PreemptionCluster("a", device_count=3)
    world.run("g0", "a", gpus=1, priority=10)
    world.run("g1", "a", gpus=1)
    world.run("g2", "a", gpus=1)
    preemptor = Preemptor(10, group_of=gang_of("g", 3, 2))
    assert names(preempt_on_node(world.cluster, preemptor, world.try_on(gpus=1))) == ["g2"]
    found = preempt_on_node(world.cluster, preemptor, world.try_on(gpus=2))
    assert isinstance(found, NoPreemption)


def test_a_budget_does_not_part_a_gang_either() -> None:
    """The spare pod is protected, and goes all the same with the others, which are not."""
    world = PreemptionCluster("a", device_count=3)
    for number in range(3):
        labels = {"app": "kept"} if number == 2 else {}
        world.run(f"g{number}", "a", gpus=1, labels=labels)
    budget = DisruptionBudget("n", LabelSelector(match_labels={"app": "kept"}), 0)
    preemptor = Preemptor(10, group_of=gang_of("g", 3, 2))
    found = preempt_on_node(world.cluster, preemptor, world.try_on(gpus=2), [budget])
    assert names(found) == ["g0", "g1", "g2"]
    assert isinstance(found, Preemption)
    assert found.violations == 1


def test_pods_that_yield_go_first_whatever_their_priority() -> None:
    """Backfill makes way for a gang of its own priority, and before pods of a lower one."""
    world = PreemptionCluster("a", device_count=2)
    world.run("lower", "a", gpus=1, priority=1)
    world.run("backfill", "a", gpus=1, priority=10)
    preemptor = Preemptor(10, yields=lambda each: each.name[1] == "backfill")
    assert names(preempt_anywhere(world.cluster, preemptor, world.all_fit(1))) == ["backfill"]


def test_nothing_goes_where_it_does_not_help() -> None:
    """Three devices are not there, whoever goes."""
    world = PreemptionCluster("a")
    world.run("small", "a", cpu=1)
    found = preempt_on_node(world.cluster, Preemptor(10), world.try_on(gpus=3))
    assert isinstance(found, NoPreemption)
    assert found.message == ("preemption: 0/1 nodes are available: 1 cannot allocate all claims.")


def test_each_node_says_why_preemption_does_not_help() -> None:
    """Each node reports a shortage, that it has no victims, or that preemption is not helpful."""
    world = PreemptionCluster("abc")
    world.run("equal-a", "a", cpu=3, priority=10)
    world.run("low-a", "a", cpu=1)
    world.run("equal-b", "b", cpu=4, priority=10)
    world.run("low-c", "c", cpu=4)
    world.cluster.fleet.put(state("c", unschedulable=True).node)
    wanted = pod(containers=[container(cpu="2")])
    unresolvable = unresolvable_nodes(wanted, (), (), world.cluster)
    found = preempt_on_node(
        world.cluster, Preemptor(10), world.try_on(cpu=2), unresolvable=unresolvable
    )
    assert isinstance(found, NoPreemption)
    assert found.message == (
        "preemption: 0/3 nodes are available: 1 Insufficient cpu,"
        " 1 No preemption victims found for incoming pod,"
        " 1 Preemption is not helpful for scheduling."
    )


def test_a_pod_that_has_not_started_goes_first() -> None:
    """Whenever it was made; of those that have, the one that started last."""
    world = PreemptionCluster("a")
    for name in ("old", "young", "waiting"):
        world.run(name, "a", cpu=1)
    started = {"old": "2026-01-01T00:00:00Z", "young": "2026-01-01T00:01:00Z"}
    preemptor = Preemptor(10, started=lambda each: started.get(each.name[1]))
    found = preempt_on_node(world.cluster, preemptor, world.try_on(cpu=2))
    assert names(found) == ["waiting"]
    found = preempt_on_node(world.cluster, preemptor, world.try_on(cpu=3))
    assert names(found) == ["young", "waiting"]


_PODS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 3)), max_size=7)


def _filled(pods: Iterable[tuple[str, int, int]]) -> PreemptionCluster:
    world = PreemptionCluster("ab", device_count=4)
    left = dict.fromkeys("ab", 4)
    for number, (node, gpus, priority) in enumerate(pods):
        if left[node] >= gpus:
            left[node] -= gpus
            world.run(f"p{number}", node, gpus=gpus, priority=priority)
    return world


@settings(max_examples=60)
@given(_PODS, st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_no_victim_could_be_spared(pods: list[tuple[str, int, int]], wants: list[int]) -> None:
    """The pods fit without the victims, and not with any one of them."""
    world = _filled(pods)
    fits = world.all_fit(*wants)
    if fits():
        return
    found = preempt_anywhere(world.cluster, Preemptor(3), fits)
    removable = [
        key
        for each in world.cluster.fleet.states()
        for key, there in each.occupants.items()
        if there.priority < 3
    ]
    with Simulation(world.cluster) as simulation:
        for key in removable:
            simulation.remove_pod(key)
        assert fits() == isinstance(found, Preemption)
    if isinstance(found, NoPreemption):
        return
    with Simulation(world.cluster) as simulation:
        places = [simulation.remove_pod(each.key) for each in found.victims]
        assert fits()
        for each in places:
            assert each is not None
            mark = simulation.mark()
            simulation.put_back(each)
            assert not fits()
            simulation.rewind(mark)
