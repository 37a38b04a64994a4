"""
The covering problem behind a plan, and quick ways to solve it well.

A node of a type takes a configuration: a number of pods of each kind. The problem is to choose
nodes whose configurations cover the demand of every kind at the least cost. An oracle answers which
configurations a node of a type takes. It is monotone: a node that takes a configuration takes every
smaller one. An answer may be unknown, which counts as "no" for a plan and as "yes" for a bound.

Nodes that exist already are types of limited supply that cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from dryrack.placement import Counts, is_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

NOTHING = Fraction(0)


class Column(NamedTuple):
    """A node of a type, by its index, with a configuration."""

    type: int
    counts: Counts


@dataclass(frozen=True, slots=True)
class Row:
    """An upper limit for the configurations of a type: the sum of the weights of its pods."""

    capacity: int
    weights: Counts

    def allows(self, counts: Counts) -> bool:
        """Return False if the configuration exceeds the limit."""
        total = sum(
            number * weight for number, weight in zip(counts, self.weights, strict=True) if number
        )
        return total <= self.capacity


@dataclass(slots=True)
class Covering:
    """The demand, the types of nodes with their prices and supplies, and the oracle."""

    demand: Counts
    prices: Sequence[Fraction]
    # The number of nodes of each type; None if it is not limited.
    supplies: Sequence[int | None]
    ask: Callable[[int, Counts], bool | None]
    # What every configuration of a type keeps to.
    rows: Sequence[Sequence[Row]]
    # Returns True when the caller's time for the plan has ended.
    is_over: Callable[[], bool] = lambda: False
    # How often the oracle was asked, and whether it did not know an answer.
    looks: int = 0
    has_unknown: bool = False
    _known: dict[Column, bool | None] = field(default_factory=dict)
    _alone: dict[tuple[int, int], int] = field(default_factory=dict)

    def answer(self, type_: int, counts: Counts) -> bool | None:
        """Return whether a node of the type takes the configuration; None if it is unknown."""
        column = Column(type_, counts)
        if column not in self._known:
            if all(row.allows(counts) for row in self.rows[type_]):
                self.looks += 1
                self._known[column] = self.ask(type_, counts)
                self.has_unknown |= self._known[column] is None
            else:
                self._known[column] = False
        return self._known[column]

    def fits(self, type_: int, counts: Counts) -> bool:
        """Return True if a node of the type is known to take the configuration."""
        return self.answer(type_, counts) is True

    def may_fit(self, type_: int, counts: Counts) -> bool:
        """Return False if a node of the type is known to refuse the configuration."""
        return self.answer(type_, counts) is not False

    def most(
        self,
        type_: int,
        counts: Counts,
        kind: int,
        limit: int,
        test: Callable[[int, Counts], bool] | None = None,
    ) -> int:
        """Return how many more pods of a kind a node takes that has these, up to a limit."""
        test = self.fits if test is None else test

        def takes(more: int) -> bool:
            return test(type_, with_more(counts, kind, more))

        # First fast upwards, then the middle of what is left.
        low, high = 0, 1
        while high <= limit and takes(high):
            low, high = high, high * 2
        high = min(high, limit + 1)
        while high - low > 1:
            middle = (low + high) // 2
            if takes(middle):
                low = middle
            else:
                high = middle
        return low

    def alone(self, type_: int, kind: int) -> int:
        """Return how many pods of the kind an empty node of the type takes."""
        key = (type_, kind)
        if key not in self._alone:
            nothing = (0,) * len(self.demand)
            self._alone[key] = self.most(type_, nothing, kind, self.demand[kind])
        return self._alone[key]

    def with_demand(self, demand: Counts) -> Covering:
        """Return the problem with a smaller demand; it shares the answers of the oracle."""
        return self._copy_with(demand, self.prices)

    def with_prices(self, prices: Sequence[Fraction]) -> Covering:
        """Return the problem with other prices; it shares the answers of the oracle."""
        return self._copy_with(self.demand, prices)

    def _copy_with(self, demand: Counts, prices: Sequence[Fraction]) -> Covering:
        other = Covering(demand, prices, self.supplies, self.ask, self.rows, self.is_over)
        other._known = self._known
        other._alone = self._alone
        other.has_unknown = self.has_unknown
        return other

    @property
    def types(self) -> range:
        return range(len(self.prices))

    @property
    def kinds(self) -> range:
        return range(len(self.demand))

    def cost(self, columns: Iterable[Column]) -> Fraction:
        """Return what these nodes cost together."""
        return sum((self.prices[each.type] for each in columns), NOTHING)


def with_more(counts: Counts, kind: int, more: int) -> Counts:
    """Return the configuration with more pods of a kind."""
    return (*counts[:kind], counts[kind] + more, *counts[kind + 1 :])


def minus(counts: Counts, other: Counts) -> Counts:
    """Return what is left of the counts; never less than zero."""
    return tuple(max(one - two, 0) for one, two in zip(counts, other, strict=True))


def least(counts: Counts, other: Counts) -> Counts:
    """Return the smaller count of each kind."""
    return tuple(map(min, counts, other))


def maximal(columns: Iterable[Column]) -> list[Column]:
    """Return the columns that are part of no other column of their type, each once."""
    by_type: dict[int, list[Column]] = {}
    for each in sorted(set(columns), key=lambda column: (-sum(column.counts), column)):
        kept = by_type.setdefault(each.type, [])
        if not any(is_part(each.counts, other.counts) for other in kept):
            kept.append(each)
    return [column for type_ in sorted(by_type) for column in by_type[type_]]


def shares(problem: Covering) -> tuple[float, ...]:
    """Return for each kind the least part of a node's price that one of its pods takes."""
    found = []
    for kind in problem.kinds:
        options = [
            float(problem.prices[type_]) / problem.alone(type_, kind)
            for type_ in problem.types
            if problem.supplies[type_] is None and problem.alone(type_, kind)
        ]
        found.append(min(options, default=0.0))
    return tuple(found)


@dataclass(slots=True)
class _OpenNode:
    type: int
    counts: Counts


def cheapest_type(problem: Covering, type_: int, kind: int, left: int) -> float:
    """Value a new node by its price."""
    return float(problem.prices[type_])


def cheapest_pod(problem: Covering, type_: int, kind: int, left: int) -> float:
    """Value a new node by its price for each pod of the kind that it takes."""
    return float(problem.prices[type_]) / min(problem.alone(type_, kind), left)


def first_fit(
    problem: Covering,
    demand: Counts,
    value_of: Callable[[Covering, int, int, int], float],
    used: Sequence[Column] = (),
) -> list[Column] | None:
    """
    Return nodes for the demand by first-fit-decreasing, or None if some pods fit on no new node.

    `value_of` values a new node of a type for a kind with so many pods left; the least is chosen.
    `used` are nodes that are taken already, and count for the supply.
    """
    nothing = (0,) * len(demand)
    nodes = [_OpenNode(type_, nothing) for type_ in supplied_types(problem, used)]
    weights = shares(problem)
    for kind in sorted(problem.kinds, key=lambda each: (-weights[each], each)):
        left = demand[kind]
        for node in nodes:
            if not left:
                break
            more = problem.most(node.type, node.counts, kind, left)
            node.counts = with_more(node.counts, kind, more)
            left -= more
        while left:
            options = [
                (value_of(problem, type_, kind, left), type_)
                for type_ in problem.types
                if problem.supplies[type_] is None and problem.alone(type_, kind)
            ]
            if not options:
                return None
            type_ = min(options)[1]
            more = min(problem.alone(type_, kind), left)
            nodes.append(_OpenNode(type_, with_more(nothing, kind, more)))
            left -= more
    return [Column(node.type, node.counts) for node in nodes if any(node.counts)]


def supplied_types(problem: Covering, used: Sequence[Column] = ()) -> Iterator[int]:
    """Yield the type of each node of limited supply that is not used yet."""
    for type_ in problem.types:
        supply = problem.supplies[type_]
        if supply is not None:
            taken = sum(1 for each in used if each.type == type_)
            yield from [type_] * (supply - taken)


def greedy(
    problem: Covering,
    columns: Sequence[Column],
    values: Sequence[float],
    demand: Counts,
    used: Sequence[Column] = (),
) -> list[Column] | None:
    """
    Return nodes for the demand, each with the most value for its price; None if columns lack.

    `values` are those of one pod of each kind. Nodes of limited supply come first.
    """
    left = demand
    chosen: list[Column] = []
    supply = {type_: number for type_, number in enumerate(problem.supplies) if number is not None}
    for each in used:
        if each.type in supply:
            supply[each.type] -= 1
    while any(left):
        best: tuple[float, float, Column] | None = None
        for column in columns:
            counts = least(column.counts, left)
            if not any(counts) or supply.get(column.type, 1) <= 0:
                continue
            value = sum(number * each for number, each in zip(counts, values, strict=True))
            price = float(problem.prices[column.type])
            rate = value / price if price else float("inf")
            if best is None or (rate, value) > best[:2]:
                best = (rate, value, Column(column.type, counts))
        if best is None:
            return None
        column = best[2]
        copies = min(have // need for have, need in zip(left, column.counts, strict=True) if need)
        if column.type in supply:
            copies = min(copies, supply[column.type])
            supply[column.type] -= copies
        chosen += [column] * copies
        left = minus(left, tuple(each * copies for each in column.counts))
    return chosen
