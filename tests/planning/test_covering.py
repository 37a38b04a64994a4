"""The covering problem by itself: its solutions, its bounds, and HiGHS beside it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random

import pytest
from tests.planning.integer_programme import cheapest_by_highs

from dryrack.placement import is_part
from dryrack.planning.columns import columns_of, round_up
from dryrack.planning.covering import Column, Covering, Row, maximal
from dryrack.planning.simplex import solve
from dryrack.planning.solving import solve_covering


def random_problem(seed: int, *, unknown: float = 0.0) -> Covering:
    """Return a problem in which pods take amounts of two resources, and pairs may not meet."""
    chance = Random(seed)
    kinds = chance.randint(1, 4)
    types = chance.randint(1, 4)
    weights = [(chance.randint(1, 6), chance.randint(0, 4)) for _ in range(kinds)]
    sizes = [(chance.randint(6, 14), chance.randint(4, 9)) for _ in range(types)]
    foes = {(a, b) for a in range(kinds) for b in range(a) if chance.random() < 0.2}
    supplies = [None, *(chance.choice((None, None, 1, 3)) for _ in range(types - 1))]
    prices = [
        Fraction(chance.randint(5, 60), 7) if supply is None else Fraction(0) for supply in supplies
    ]
    blurred = Random(seed + 1)
    doubts: dict[tuple[int, tuple[int, ...]], bool] = {}

    def ask(type_: int, counts: tuple[int, ...]) -> bool | None:
        if any(counts[a] and counts[b] for a, b in foes):
            return False
        totals = [sum(n * w[i] for n, w in zip(counts, weights, strict=True)) for i in range(2)]
        if totals[0] > sizes[type_][0] or totals[1] > sizes[type_][1]:
            return False
        if sum(counts) > 2 and doubts.setdefault((type_, counts), blurred.random() < unknown):
            return None
        return True

    rows = [[Row(size[i], tuple(w[i] for w in weights)) for i in range(2)] for size in sizes]
    demand = tuple(chance.randint(1, 9) for _ in range(kinds))
    return Covering(demand, prices, supplies, ask, rows)


def all_columns(problem: Covering) -> list[Column]:
    """Return all maximal configurations, found by asking about every one."""
    ranges = [range(need + 1) for need in problem.demand]
    every = [
        Column(type_, counts)
        for type_ in problem.types
        for counts in product(*ranges)
        if any(counts) and problem.ask(type_, counts)
    ]
    return maximal(every)


@pytest.mark.parametrize("start", range(0, 200, 25))
def test_solutions_cost_what_highs_finds(start: int) -> None:
    """The plan costs the optimum of the integer programme, and the bound is below it."""
    for seed in range(start, start + 25):
        problem = random_problem(seed)
        solution = solve_covering(problem)
        if solution is None:
            continue
        best = cheapest_by_highs(problem, all_columns(problem))

        assert float(solution.cost) == pytest.approx(best, abs=1e-6), seed
        assert solution.is_optimal, (seed, solution.proof)
        assert solution.bound <= solution.cost <= solution.first_fit, seed
        assert float(solution.bound) <= best + 1e-6, seed


@pytest.mark.parametrize("start", range(0, 100, 25))
def test_generated_columns_give_plans_and_true_bounds(start: int) -> None:
    """Without enumeration, the plan covers the demand and the bound is below the optimum."""
    for seed in range(start, start + 25):
        problem = random_problem(seed)
        solution = solve_covering(problem, looks_max=-1)
        if solution is None:
            continue
        best = cheapest_by_highs(problem, all_columns(problem))
        covered = [sum(each) for each in zip(*(n.counts for n in solution.nodes), strict=True)]

        assert tuple(covered) == problem.demand, seed
        assert all(problem.ask(*node) for node in solution.nodes), seed
        assert float(solution.bound) <= best + 1e-6, seed
        assert float(solution.cost) >= best - 1e-6, seed
        assert solution.cost <= solution.first_fit, seed


@pytest.mark.parametrize("start", range(0, 100, 25))
def test_unknown_answers_make_the_bound_smaller_and_never_wrong(start: int) -> None:
    """A plan uses no unknown configuration; the bound holds even if all of them fit."""
    for seed in range(start, start + 25):
        problem = random_problem(seed, unknown=0.3)
        solution = solve_covering(problem)
        if solution is None:
            continue
        whole = random_problem(seed)
        best = cheapest_by_highs(whole, all_columns(whole))
        known = all_columns(problem)

        for node in solution.nodes:
            assert any(it.type == node.type and is_part(node.counts, it.counts) for it in known)
        assert float(solution.bound) <= best + 1e-6, seed
        if solution.is_optimal:
            assert float(solution.cost) == pytest.approx(best, abs=1e-6), seed


def test_linear_programme_has_its_known_optimum() -> None:
    """Two columns that cover two kinds together: half of each is the optimum."""
    solution = solve([(2, 1), (1, 2)], [3.0, 3.0], (3, 3))

    assert solution is not None
    assert solution.cost == pytest.approx(6.0)
    assert solution.numbers == pytest.approx((1.0, 1.0))
    assert solution.prices == pytest.approx((1.0, 1.0))


def test_a_demand_that_no_column_covers_has_no_solution() -> None:
    """The dual is unbounded if a kind is in no column."""
    assert solve([(1, 0)], [1.0], (1, 1)) is None


@pytest.mark.parametrize(
    ("bound", "prices", "limit", "rounded"),
    [
        (Fraction(5), [Fraction(3)], Fraction(9), Fraction(6)),
        (Fraction(7), [Fraction(3), Fraction(5)], Fraction(11), Fraction(8)),
        (Fraction(1, 3), [Fraction(1, 2)], Fraction(1, 2), Fraction(1, 2)),
        (Fraction(0), [Fraction(3)], Fraction(3), Fraction(0)),
    ],
)
def test_bounds_are_rounded_up_to_the_cost_of_whole_nodes(
    bound: Fraction, prices: list[Fraction], limit: Fraction, rounded: Fraction
) -> None:
    """No sum of prices lies between the bound and the result."""
    assert round_up(bound, prices, limit) == rounded


def test_bound_of_the_programme_equals_the_value_of_highs_relaxation() -> None:
    """For all columns, the bound in fractions is the programme's value to a millionth."""
    for seed in range(40):
        problem = random_problem(seed)
        columns = columns_of(problem, [])
        if columns.solution is not None:
            assert float(columns.bound) == pytest.approx(columns.solution.cost, abs=1e-5), seed
