"""Limits on nodes, amounts and cost: a plan within them is found if there is one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from tests.planning.workloads import (
    RandomCase,
    add_node,
    cheapest_by_brute_force,
    claim,
    cpu_of,
    empty_cluster,
    gpu,
    large_case,
    member,
    node_type,
    random_case,
    request,
)

from dryrack.planning import Limits, Workload, plan

if TYPE_CHECKING:
    from dryrack.placement import Member

FOUR = node_type("four", 50, cpu=16, devices=[gpu(each) for each in range(4)])
ONE = node_type("one", 4, cpu=4, devices=[gpu(0)])


def with_gpu(name: str) -> Member:
    return member(name, claim(f"{name}-c", request()))


def test_fewer_and_dearer_nodes_keep_to_the_limit() -> None:
    """Six small nodes cost 24; within three nodes, one large and two small ones cost 58."""
    workload = Workload(tuple(with_gpu(f"m{number}") for number in range(6)))

    free = plan(workload, [ONE, FOUR], empty_cluster())
    three = plan(workload, [ONE, FOUR], empty_cluster(), Limits(nodes=3))
    two = plan(workload, [ONE, FOUR], empty_cluster(), Limits(nodes=2))
    one = plan(workload, [ONE, FOUR], empty_cluster(), Limits(nodes=1))

    assert (list(free.types), float(free.cost)) == (["one"] * 6, 24)
    assert (sorted(three.types), float(three.cost)) == (["four", "one", "one"], 58)
    assert (three.is_optimal, float(three.bound), len(three.unplaceable)) == (True, 24, 0)
    assert (list(two.types), float(two.cost), len(two.unplaceable)) == (["four"] * 2, 100, 0)
    assert (one.types, len(one.unplaceable)) == (["four"], 2)


def test_nodes_that_have_less_of_a_limited_amount() -> None:
    """The cheap node has 64 CPUs; within 20 CPUs two dearer ones with 8 each are chosen."""
    large = node_type("large", 5, cpu=64, devices=[gpu(each) for each in range(4)])
    small = node_type("small", 9, cpu=8, devices=[gpu(each) for each in range(2)])
    workload = Workload(tuple(with_gpu(f"m{number}") for number in range(4)))

    result = plan(workload, [large, small], empty_cluster(), Limits(amounts={"cpu": 20 * 10**9}))

    assert (result.types, result.unplaceable, result.is_optimal) == (["small"] * 2, (), True)


def test_existing_nodes_use_nothing_of_a_limit() -> None:
    """With a limit of one node, four pods go to the new node, and one to the existing node."""
    cluster = empty_cluster()
    add_node(cluster, node_type("old", 0, devices=[gpu(0)]).make("old"))
    workload = Workload(tuple(with_gpu(f"m{number}") for number in range(5)))

    result = plan(workload, [ONE, FOUR], cluster, Limits(nodes=1))

    assert (result.types, len(result.existing), result.unplaceable) == (["four"], 1, ())


def test_a_limit_of_zero_allows_no_node() -> None:
    """All pods are left over, whatever is limited."""
    workload = Workload((with_gpu("m"),))

    for limits in (Limits(nodes=0), Limits(amounts={"cpu": 0}), Limits(cost=Fraction(1, 10**6))):
        result = plan(workload, [ONE], empty_cluster(), limits)

        assert (result.types, len(result.unplaceable)) == ([], 1)


@pytest.mark.parametrize("start", range(0, 40, 10))
def test_plans_within_limits_cost_what_brute_force_finds(start: int) -> None:
    """For up to five pods: the plan has all of them if and only if some nodes take them."""
    for seed in range(start, start + 10):
        case = _feasible(random_case(seed, pods_max=5))
        cpus = max(map(cpu_of, case.types))
        for nodes_max, cpu_max in ((1, 99), (2, 99), (3, 99), (99, cpus), (3, 2 * cpus)):
            limits = Limits(nodes=nodes_max, amounts={"cpu": cpu_max * 10**9})
            result = plan(case.workload, case.types, empty_cluster(), limits)
            known = cheapest_by_brute_force(case, nodes_max=nodes_max, cpu_max=cpu_max)
            here = (seed, nodes_max, cpu_max, result.proof)

            assert (known is not None) == (not result.unplaceable), here
            assert len(result.types) <= nodes_max, here
            if known:
                assert (result.cost, result.is_optimal) == (known, True), here
                assert result.bound <= known, here
                same = replace(limits, cost=known)
                less = replace(limits, cost=known - Fraction(1, 100))
                result = plan(case.workload, case.types, empty_cluster(), same)
                assert (result.cost, result.unplaceable) == (known, ()), here
                assert plan(case.workload, case.types, empty_cluster(), less).unplaceable, here


def _feasible(case: RandomCase) -> RandomCase:
    """Return the case without the pods that no node takes."""
    result = plan(case.workload, case.types, empty_cluster())
    return case.without({each.pod for each in result.unplaceable})


def test_large_plans_keep_to_limits() -> None:
    """With generated columns, too: 200 pods on fewer nodes than the cheapest plan has."""
    case = large_case(1, pods=200)
    free = plan(case.workload, case.types, empty_cluster())
    nodes = len(free.nodes) * 3 // 4
    within = plan(case.workload, case.types, empty_cluster(), Limits(nodes=nodes))

    assert len(within.nodes) <= nodes
    assert within.unplaceable == ()
    assert free.cost <= within.cost
