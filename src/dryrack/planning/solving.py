"""
Solve a covering problem: quick plans first, then the bound, then better plans until one is proved.

The quick plans are first-fit-decreasing with two rules for new nodes, and the greedy choice of
columns. The linear programme gives the bound and a plan by rounding down. Branch and bound searches
all columns; if columns are generated, it searches those that there are for what rounding left over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.planning.branching import STEPS_MAX, branch
from dryrack.planning.columns import LOOKS_MAX, columns_of, round_up
from dryrack.planning.covering import (
    Column,
    cheapest_pod,
    cheapest_type,
    first_fit,
    greedy,
    least,
    maximal,
    minus,
    shares,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from dryrack.planning.columns import Columns
    from dryrack.planning.covering import Covering

# Plans of more nodes are too deep for a search of all of their nodes.
_NODES_SEARCHED_MAX = 100
# Steps of the search of what rounding left over.
_REST_STEPS = 1_000


@dataclass(frozen=True, slots=True)
class Solution:
    """The nodes, and what is proved about their cost."""

    nodes: tuple[Column, ...]
    cost: Fraction
    bound: Fraction
    is_optimal: bool
    proof: str
    # The cost of first-fit-decreasing with the cheapest type.
    first_fit: Fraction
    columns: Columns | None = None


def solve_covering(
    problem: Covering,
    *,
    looks_max: int = LOOKS_MAX,
    steps_max: int = STEPS_MAX,
    base: Columns | None = None,
) -> Solution | None:
    """
    Return the best nodes for the demand, or None if the types of unlimited supply lack some.

    `base` has the columns of the same problem with a greater demand.
    """
    demand = problem.demand
    simple = first_fit(problem, demand, cheapest_type)
    if simple is None:
        return None
    by_pod = first_fit(problem, demand, cheapest_pod)
    plans = [each for each in (simple, by_pod) if each is not None]
    start = maximal(each for plan in plans for each in plan)
    columns = columns_of(problem, start, looks_max, base)
    weights = shares(problem)
    for values in (weights, tuple(map(float, columns.values))):
        plan = greedy(problem, columns.known, values, demand)
        if plan is not None:
            plans.append(plan)
    plans += _round_down(problem, columns, weights)
    best = min(plans, key=lambda plan: (problem.cost(plan), len(plan)))
    cost = problem.cost(best)
    limit = round_up(columns.bound, _prices(problem), cost)
    steps = 0
    is_exhausted = False
    if cost > limit and columns.are_all and len(best) <= _NODES_SEARCHED_MAX:
        branching = branch(problem, columns, cost, steps_max=steps_max)
        steps = branching.steps
        is_exhausted = branching.is_exhausted and not problem.has_unknown
        if branching.best is not None:
            best, cost = branching.best, branching.cost
    # Whole nodes cost at least that.
    bound = round_up(columns.bound, _prices(problem), cost)
    if is_exhausted or cost <= bound:
        proof = f"search exhausted ({steps} nodes)" if is_exhausted else "the bound is reached"
        return Solution(tuple(best), cost, bound, True, proof, problem.cost(simple), columns)
    above = float((cost - bound) / bound * 100) if bound else 100.0
    proof = f"within {above:.1f} % of the bound; the search stopped at its limit"
    if problem.has_unknown:
        proof += ", and the decider left some questions undecided"
    return Solution(tuple(best), cost, bound, False, proof, problem.cost(simple), columns)


def _prices(problem: Covering) -> list[Fraction]:
    return [
        price
        for type_, price in enumerate(problem.prices)
        if any(problem.alone(type_, kind) for kind in problem.kinds)
    ]


def _round_down(
    problem: Covering, columns: Columns, weights: Sequence[float]
) -> Iterator[list[Column]]:
    """Yield plans that begin with the whole part of the programme's solution."""
    if columns.solution is None:
        return
    left = problem.demand
    chosen: list[Column] = []
    for column, number in zip(columns.known, columns.solution.numbers, strict=True):
        for _ in range(int(number + 1e-6)):
            counts = least(column.counts, left)
            if any(counts):
                chosen.append(Column(column.type, counts))
                left = minus(left, counts)
    if not any(left):
        yield chosen
        return
    values = tuple(map(float, columns.values))
    rests = [
        first_fit(problem, left, cheapest_type, chosen),
        first_fit(problem, left, cheapest_pod, chosen),
        greedy(problem, columns.known, values, left, chosen),
        greedy(problem, columns.known, weights, left, chosen),
    ]
    known = [rest for rest in rests if rest is not None]
    yield from ([*chosen, *rest] for rest in known)
    if known and not columns.are_all:
        best = min(map(problem.cost, known))
        found = branch(problem, columns, best, demand=left, used=chosen, steps_max=_REST_STEPS).best
        if found is not None:
            yield [*chosen, *found]
