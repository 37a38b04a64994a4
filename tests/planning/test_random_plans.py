"""Random workloads: plans are the cheapest, their bounds are true, and they replay."""

from __future__ import annotations

import pytest
from tests.planning.workloads import (
    add_node,
    cheapest_by_brute_force,
    empty_cluster,
    fits_together,
    place_next,
    random_case,
)

from dryrack.planning import Reach, plan


@pytest.mark.parametrize("start", range(0, 60, 10))
def test_small_plans_cost_what_brute_force_finds(start: int) -> None:
    """For up to six pods no division of the pods among nodes is cheaper than the plan."""
    for seed in range(start, start + 10):
        case = random_case(seed, pods_max=5)
        result = plan(case.workload, case.types, empty_cluster())
        refused = {each.pod for each in result.unplaceable}
        for each in case.workload.members:
            alone = any(fits_together([each], type_) for type_ in case.types)
            assert alone == (each.name not in refused), (seed, each.name)
        known = cheapest_by_brute_force(case.without(refused))

        assert result.cost == known, seed
        assert result.is_optimal, (seed, result.proof)
        assert result.bound <= known, seed


@pytest.mark.parametrize("start", range(0, 40, 10))
def test_larger_plans_hold_by_the_decider_alone(start: int) -> None:
    """The decider places the pods of each node together, and the bound is below the cost."""
    for seed in range(start, start + 10):
        case = random_case(seed, pods_max=30)
        types = {each.name: each for each in case.types}
        result = plan(case.workload, case.types, empty_cluster())
        names = [pod.member.name for node in result.nodes for pod in node.pods]
        refused = [each.pod for each in result.unplaceable]
        everyone = sorted(each.name for each in case.workload.members)

        assert sorted(names + refused) == everyone, seed
        assert result.bound <= result.cost, seed
        assert result.cost == sum(types[name].price for name in result.types), seed
        for node in result.nodes:
            assert node.type is not None, "nothing exists in these cases"
            assert fits_together([pod.member for pod in node.pods], node.type), (seed, node.name)


@pytest.mark.parametrize("start", range(0, 30, 10))
def test_the_scheduler_reaches_plans_for_any_placement(start: int) -> None:
    """If nothing has to be pinned, the scheduler places all pods on nodes of these types."""
    for seed in range(start, start + 10):
        case = random_case(seed, pods_max=20)
        result = plan(case.workload, case.types, empty_cluster())
        cluster = empty_cluster()
        for node in result.nodes:
            assert node.type is not None, "nothing exists in these cases"
            add_node(cluster, node.type.make(node.name))
        refused = {each.pod for each in result.unplaceable}
        members = [each for each in case.workload.members if each.name not in refused]
        placed = [place_next(member, cluster) for member in members]

        assert all(placed) == (result.reach is Reach.ANY), seed


def test_plans_are_the_same_each_time() -> None:
    """The same workload and types give the same plan."""
    for seed in range(10):
        first, second = (
            plan(case.workload, case.types, empty_cluster())
            for case in (random_case(seed, pods_max=20) for _ in range(2))
        )

        assert (first.types, first.cost, first.proof) == (second.types, second.cost, second.proof)
        assert [n.pods for n in first.nodes] == [n.pods for n in second.nodes]


def test_the_cluster_is_the_same_after_a_plan() -> None:
    """A plan adds its nodes only while it is made."""
    case = random_case(3, pods_max=10)
    cluster = empty_cluster()
    add_node(cluster, case.types[0].make("old"))
    before = cluster.fleet.states()
    plan(case.workload, case.types, cluster)

    assert cluster.fleet.states() == before
    assert [state.occupants for state in before] == [{}]
