"""
A small simplex for covering programmes: the cheapest mix of columns that covers a demand.

It solves the dual, max d·y − n·s with A'y − s ≤ c and y, s ≥ 0, because the slack basis of the dual
is feasible when no column has a negative cost. So there is no first phase. The tableau has a row
for each column of the programme and a column for each kind and each limited type, which are few.

The arithmetic is in floats. Nothing relies on it: `bounds` turns the prices of the kinds into
fractions and checks them against every configuration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_TINY = 1e-9
# After so many pivots the rule of Bland is used, which cannot cycle.
_GREEDY_PIVOTS_MAX = 500
_PIVOTS_MAX = 20_000


@dataclass(frozen=True, slots=True)
class LinearSolution:
    """The number of each column, the prices of the kinds, and the cost."""

    numbers: tuple[float, ...]
    prices: tuple[float, ...]
    cost: float


def solve(
    rows: Sequence[Sequence[int]], costs: Sequence[float], objective: Sequence[int]
) -> LinearSolution | None:
    """
    Return the cheapest numbers of columns, or None if no numbers cover the demand.

    `rows` has the coefficients of each column of the programme, `objective` the demand of each kind
    and, with a negative sign, the supply of each limited type.
    """
    width = len(objective)
    tableau = [[*map(float, row), float(cost)] for row, cost in zip(rows, costs, strict=True)]
    last = [-float(each) for each in objective] + [0.0]
    # Variables below `width` are prices, others are the slacks of rows.
    outside = list(range(width))
    inside = [width + number for number in range(len(tableau))]
    for pivots in range(_PIVOTS_MAX):
        entering = _entering_column(last, outside, is_bland=pivots > _GREEDY_PIVOTS_MAX)
        if entering is None:
            break
        leaving = _leaving_row(tableau, inside, entering)
        if leaving is None:
            return None
        _pivot(tableau, last, leaving, entering)
        outside[entering], inside[leaving] = inside[leaving], outside[entering]
    numbers = [0.0] * len(tableau)
    prices = [0.0] * width
    for place, name in enumerate(outside):
        if name >= width:
            numbers[name - width] = max(last[place], 0.0)
    for row, name in zip(tableau, inside, strict=True):
        if name < width:
            prices[name] = max(row[-1], 0.0)
    return LinearSolution(tuple(numbers), tuple(prices), last[-1])


def _entering_column(
    last: Sequence[float], outside: Sequence[int], *, is_bland: bool
) -> int | None:
    """Return the column of the tableau that raises the objective, None at the optimum."""
    rising = [place for place in range(len(outside)) if last[place] < -_TINY]
    if not rising:
        return None
    if is_bland:
        return min(rising, key=lambda place: outside[place])
    return min(rising, key=lambda place: (last[place], outside[place]))


def _leaving_row(
    tableau: Sequence[Sequence[float]], inside: Sequence[int], entering: int
) -> int | None:
    """Return the row that limits the entering column, None if no row does."""
    best: tuple[float, int] | None = None
    chosen = None
    for number, row in enumerate(tableau):
        if row[entering] > _TINY:
            key = (max(row[-1], 0.0) / row[entering], inside[number])
            if best is None or key < best:
                best = key
                chosen = number
    return chosen


def _pivot(tableau: list[list[float]], last: list[float], leaving: int, entering: int) -> None:
    """Exchange a variable inside the basis with one outside."""
    pivot = tableau[leaving]
    scale = 1.0 / pivot[entering]
    pivot[entering] = 1.0
    pivot[:] = [each * scale for each in pivot]
    for row in (*tableau, last):
        factor = row[entering]
        if row is not pivot and factor != 0.0:
            row[entering] = 0.0
            row[:] = [each - factor * own for each, own in zip(row, pivot, strict=True)]
