"""
Solve a covering problem within limits on the cost, on the number of nodes, or on their amounts.

Dearer nodes may keep to a limit that the cheapest exceed, for example fewer and larger ones. So a
limit that is exceeded gets a price, which is added to the price of each node for the part that it
uses (a Lagrangian relaxation). The price grows until the cheapest nodes keep to the limits. Each of
these problems also gives a bound, and branch and bound searches all columns within the limits.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from dryrack.planning.branching import STEPS_MAX, Bound, branch
from dryrack.planning.columns import LOOKS_MAX
from dryrack.planning.covering import NOTHING
from dryrack.planning.solving import Solution, solve_covering

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.planning.columns import Columns
    from dryrack.planning.covering import Column, Covering

# The prices of a whole limit that are tried, in costs of the cheapest nodes.
_PRICES = (Fraction(1, 4), Fraction(1), Fraction(4), Fraction(32), Fraction(10**6))
# More than any plan may use of a limit.
EXCEEDED = Fraction(2)


def solve_within(
    problem: Covering,
    uses: Sequence[Sequence[Fraction]],
    most: Fraction | None,
    *,
    looks_max: int = LOOKS_MAX,
    steps_max: int = STEPS_MAX,
    base: Columns | None = None,
) -> Solution | None:
    """
    Return the cheapest nodes that are found within the limits, or None if none are found.

    `uses` are the parts of each limit that a node of each type uses, and `most` is the limit of the
    cost, if it has one. If all columns are known, None means that there are no such nodes, unless
    the search stops at its limit.
    """
    cheapest = solve_covering(problem, looks_max=looks_max, steps_max=steps_max, base=base)
    if cheapest is None or cheapest.columns is None:
        return cheapest
    over = _find_exceeded(cheapest.nodes, uses)
    if not over:
        return cheapest if most is None or cheapest.cost <= most else None
    if most is not None and cheapest.bound > most:
        return None
    best: tuple[Column, ...] | None = None
    bounds: list[Bound] = []
    for price in _PRICES:
        price *= cheapest.cost or 1
        prices = [price * (number in over) for number in range(len(uses[0]))]
        with_limits = [
            own + sum(map(Fraction.__mul__, prices, used), NOTHING)
            for own, used in zip(problem.prices, uses, strict=True)
        ]
        trial = solve_covering(
            problem.with_prices(with_limits),
            looks_max=looks_max,
            steps_max=steps_max,
            base=cheapest.columns,
        )
        if trial is None or trial.columns is None:
            break
        bounds.append(Bound(trial.columns.values, (*trial.columns.rents, *prices)))
        further = _find_exceeded(trial.nodes, uses)
        if not further:
            best = trial.nodes
            break
        over |= further
    return _search(problem, uses, most, cheapest, best, bounds=bounds, steps_max=steps_max)


def _find_exceeded(nodes: Sequence[Column], uses: Sequence[Sequence[Fraction]]) -> set[int]:
    """Return the limits that the nodes exceed."""
    totals = [sum(each, NOTHING) for each in zip(*(uses[node.type] for node in nodes), strict=True)]
    return {number for number, total in enumerate(totals) if total > 1}


def _search(
    problem: Covering,
    uses: Sequence[Sequence[Fraction]],
    most: Fraction | None,
    cheapest: Solution,
    best: tuple[Column, ...] | None,
    *,
    bounds: Sequence[Bound],
    steps_max: int,
) -> Solution | None:
    """Search for cheaper nodes within the limits than the best that are known."""
    columns = cheapest.columns
    assert columns is not None, "the cheapest nodes are made of columns"
    # No plan needs more than the dearest node for each pod.
    ceiling = max(problem.prices) * (sum(problem.demand) + 1)
    if best is not None:
        ceiling = problem.cost(best)
    if most is not None and ceiling > most:
        best = None
        # A plan may cost as much as the limit.
        ceiling = most + Fraction(1, 10**9)
    proof = ""
    if columns.are_all:
        found = branch(problem, columns, ceiling, steps_max=steps_max, uses=uses, bounds=bounds)
        best = best if found.best is None else tuple(found.best)
        if found.is_exhausted and not problem.has_unknown:
            proof = f"search exhausted ({found.steps} nodes)"
    if best is None:
        return None
    cost = problem.cost(best)
    is_optimal = bool(proof)
    if not proof:
        above = float((cost - cheapest.bound) / cheapest.bound * 100) if cheapest.bound else 100.0
        proof = f"within {above:.1f} % of the bound without limits; the search stopped at its limit"
    return Solution(best, cost, cheapest.bound, is_optimal, proof, cheapest.first_fit, columns)
