"""
Branch and bound over configurations: the cheapest nodes, and the proof that none are cheaper.

The search covers the first kind of which pods are left, with each column that has the kind. What is
left costs at least what its kinds are worth in the bound's prices. A demand that was reached before
at no greater cost, with no less of what is limited, is not searched again.

Limited are the supply of some types, and the limits of the plan: a node uses a part of each limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from operator import le, sub
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dryrack.placement import is_part
from dryrack.planning.columns import worth
from dryrack.planning.covering import NOTHING, Column, Covering, least, minus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.placement import Counts
    from dryrack.planning.columns import Columns

# What is left: of the supply of each type, zero if it is not limited, and of each limit.
Stock: TypeAlias = "tuple[int | Fraction, ...]"

# Nodes of the search.
STEPS_MAX = 4_000
# The search goes one level deeper for each node of the plan.
_DEPTH_MAX = 120


class Bound(NamedTuple):
    """A bound on the cost: a price for each kind, and one for each part of the stock."""

    values: Sequence[Fraction]
    rents: Sequence[Fraction]

    def rest(self, left: Counts, stock: Stock) -> Fraction:
        """Return what nodes for the pods that are left cost at least."""
        rent = sum((n * each for n, each in zip(stock, self.rents, strict=True) if n), NOTHING)
        return max(worth(left, self.values) - rent, NOTHING)


@dataclass(slots=True)
class Branching:
    """The result of a search: the best nodes, if they are better, and whether it ended."""

    best: list[Column] | None
    cost: Fraction
    steps: int = 0
    is_exhausted: bool = False


def branch(
    problem: Covering,
    columns: Columns,
    limit: Fraction,
    *,
    demand: Counts | None = None,
    used: Sequence[Column] = (),
    steps_max: int = STEPS_MAX,
    uses: Sequence[Sequence[Fraction]] = (),
    bounds: Sequence[Bound] = (),
) -> Branching:
    """
    Search for nodes that cost less than the limit; `used` are nodes that are taken already.

    `uses` are the parts of each limit that a node of a type uses, and `bounds` are further bounds.
    """
    search = _Search(problem, columns, limit, steps_max=steps_max, uses=uses, bounds=bounds)
    left = problem.demand if demand is None else demand
    supply = [
        0 if number is None else number - sum(1 for each in used if each.type == type_)
        for type_, number in enumerate(problem.supplies)
    ]
    limits = len(uses[0]) if uses else 0
    search.visit(left, (*supply, *[Fraction(1)] * limits), NOTHING, [])
    return Branching(search.best, search.cost, search.steps, not search.is_cut)


class _Search:
    def __init__(
        self,
        problem: Covering,
        columns: Columns,
        limit: Fraction,
        *,
        steps_max: int,
        uses: Sequence[Sequence[Fraction]],
        bounds: Sequence[Bound],
    ) -> None:
        self._problem = problem
        self._columns = columns
        self._steps_max = steps_max
        limits = len(uses[0]) if uses else 0
        self._bounds = (Bound(columns.values, (*columns.rents, *[NOTHING] * limits)), *bounds)
        # What a node of each type takes of the stock: of its supply, and of the limits.
        self._takes: list[tuple[int | Fraction, ...]] = []
        for type_, supply in enumerate(problem.supplies):
            own = [int(supply is not None and each == type_) for each in problem.types]
            self._takes.append((*own, *(uses[type_] if uses else ())))
        self.best: list[Column] | None = None
        self.cost = limit
        self.steps = 0
        self.is_cut = False
        # For each demand, the costs at which it was reached, with the supply left.
        self._reached: dict[Counts, list[tuple[Fraction, Stock]]] = {}
        takers = [sum(1 for c in columns.known if c.counts[kind]) for kind in problem.kinds]
        self._order = sorted(
            problem.kinds, key=lambda kind: (takers[kind], -columns.values[kind], kind)
        )
        self._by_kind = [
            [each for each in columns.known if each.counts[kind]] for kind in problem.kinds
        ]

    def visit(self, left: Counts, stock: Stock, cost: Fraction, chosen: list[Column]) -> None:
        """Cover what is left in every way that may be cheaper than the best."""
        if not any(left):
            if cost < self.cost:
                self.best = list(chosen)
                self.cost = cost
            return
        if any(cost + each.rest(left, stock) >= self.cost for each in self._bounds):
            return
        before = self._reached.setdefault(left, [])
        if any(other <= cost and all(map(le, stock, kept)) for other, kept in before):
            return
        before.append((cost, stock))
        self.steps += 1
        if self.steps > self._steps_max or len(chosen) >= _DEPTH_MAX or self._problem.is_over():
            self.is_cut = True
            return
        kind = next(kind for kind in self._order if left[kind])
        options: dict[Column, Fraction] = {}
        for each in self._by_kind[kind]:
            if all(map(le, self._takes[each.type], stock)):
                column = Column(each.type, least(each.counts, left))
                waste = self._problem.prices[each.type] - worth(column.counts, self._columns.values)
                options[column] = waste
        kept: list[Column] = []
        for column in sorted(options, key=lambda each: (options[each], -sum(each.counts), each)):
            # A configuration that is part of another on the same type helps no more than it.
            if any(k.type == column.type and is_part(column.counts, k.counts) for k in kept):
                continue
            kept.append(column)
            after = tuple(map(sub, stock, self._takes[column.type]))
            chosen.append(column)
            price = self._problem.prices[column.type]
            self.visit(minus(left, column.counts), after, cost + price, chosen)
            chosen.pop()
            if self.steps > self._steps_max:
                return
