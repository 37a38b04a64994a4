"""
Configurations as columns of a linear programme, and the lower bound that it proves.

If the types have few configurations, all of them are enumerated, and the bound is that of the
linear programme. If they have many, columns are generated: the programme prices the kinds, and a
search looks for a configuration that is worth more than its node. When such a search stops at its
limit, the best value that it may have missed makes the bound smaller (the bound of Farley).

A bound is computed in fractions from the prices of the kinds and from the best value on each type,
so a rounding error of the simplex can make it weaker, and never wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil, gcd, lcm
from typing import TYPE_CHECKING

from dryrack.planning.covering import (
    NOTHING,
    Column,
    Covering,
    Row,
    least,
    maximal,
    with_more,
)
from dryrack.planning.simplex import LinearSolution, solve

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.placement import Counts

# Questions to the oracle during the enumeration; about a third of a second.
LOOKS_MAX = 3_000
# Nodes of the search for a configuration, on one type.
_PRICING_MAX = 400
_ROUNDS_MAX = 60
_DENOMINATOR_MAX = 10**9
_MARGIN = 1e-7
# Costs that the rounding of a bound looks at.
_UNITS_MAX = 2**22


@dataclass(slots=True)
class Columns:
    """Columns that nodes are known to take, the solution of their programme, and the bound."""

    known: list[Column]
    solution: LinearSolution | None
    bound: Fraction
    # The prices of the kinds, of which the bound is made, and of each node of limited supply.
    values: tuple[Fraction, ...]
    rents: tuple[Fraction, ...]
    # Whether `known` has every configuration that is part of no other.
    are_all: bool
    # Configurations that may fit, which the bound is about.
    possible: list[Column] = field(default_factory=list)


def columns_of(
    problem: Covering,
    start: Sequence[Column],
    looks_max: int = LOOKS_MAX,
    base: Columns | None = None,
) -> Columns:
    """
    Return all columns, or those that are generated from the columns of good solutions.

    `base` has the columns of the same problem with a greater demand.
    """
    if base is not None and base.are_all:
        return _solve_all(problem, base.known, base.possible)
    if base is not None:
        return generate(problem, (*start, *base.known))
    every = enumerate_all(problem, looks_max)
    if every is None:
        return generate(problem, start)
    possible = maximal(every)
    known = possible
    if problem.has_unknown:
        known = maximal(each for each in every if problem.fits(*each))
    return _solve_all(problem, known, possible)


def _solve_all(problem: Covering, known: list[Column], possible: list[Column]) -> Columns:
    """Return the solution and the bound of all columns."""
    nothing = (0,) * len(problem.demand)
    if not any(problem.demand):
        zero = tuple(NOTHING for _ in problem.demand)
        rents = tuple(NOTHING for _ in problem.prices)
        return Columns(known, None, NOTHING, zero, rents, True, possible)
    solution = _solve(problem, known)
    relaxed = solution if known == possible else _solve(problem, possible)
    if relaxed is None:
        none = tuple(NOTHING for _ in problem.prices)
        zero = tuple(NOTHING for _ in nothing)
        return Columns(known, solution, NOTHING, zero, none, True, possible)
    values = _fractions(relaxed, problem)

    def best(type_: int) -> Fraction:
        own = (
            worth(least(each.counts, problem.demand), values)
            for each in possible
            if each.type == type_
        )
        return max(own, default=NOTHING)

    bound, scaled, rents = lower_bound(problem, values, [best(each) for each in problem.types])
    return Columns(known, solution, bound, scaled, rents, True, possible)


def enumerate_all(problem: Covering, looks_max: int) -> list[Column] | None:
    """Return configurations that may fit, with all maximal ones; None if there are too many."""
    found: list[Column] = []
    most = problem.looks + looks_max

    def visit(type_: int, counts: Counts, kind: int) -> Iterator[Counts]:
        limit = problem.demand[kind]
        more = problem.most(type_, counts, kind, limit, problem.may_fit)
        if kind + 1 == len(counts):
            # Known configurations may be smaller than those that are only possible.
            known = problem.most(type_, counts, kind, more) if problem.has_unknown else more
            yield from {with_more(counts, kind, more), with_more(counts, kind, known)}
            return
        for number in range(more, -1, -1):
            if problem.looks > most or problem.is_over():
                return
            yield from visit(type_, with_more(counts, kind, number), kind + 1)

    for type_ in problem.types:
        every = visit(type_, (0,) * len(problem.demand), 0)
        found += [Column(type_, counts) for counts in every if any(counts)]
        if problem.looks > most or problem.is_over():
            return None
    return found


def generate(problem: Covering, start: Sequence[Column]) -> Columns:
    """Return columns that are generated by their value, and the bound."""
    known = dict.fromkeys(start)
    nothing = (0,) * len(problem.demand)
    for type_ in problem.types:
        for kind in problem.kinds:
            alone = problem.alone(type_, kind)
            if alone:
                known[Column(type_, with_more(nothing, kind, alone))] = None
    solution = None
    best = Columns(list(known), None, NOTHING, (), (), are_all=False)
    for _ in range(_ROUNDS_MAX):
        solution = _solve(problem, list(known))
        if solution is None:
            break
        values = _fractions(solution, problem)
        most: list[Fraction] = []
        is_new = False
        for type_ in problem.types:
            column, value = price(problem, type_, values)
            most.append(value)
            rent = _rent(problem, solution, type_)
            gain = float(worth(column.counts, values)) - float(problem.prices[type_]) - rent
            if gain > _MARGIN and column not in known:
                known[column] = None
                is_new = True
        bound, scaled, rents = lower_bound(problem, values, most)
        if bound > best.bound or not best.values:
            best = Columns([], None, bound, scaled, rents, are_all=False)
        if not is_new or problem.is_over():
            break
    best.known = list(known)
    best.solution = solution
    if not best.values:
        best.values = tuple(NOTHING for _ in problem.demand)
        best.rents = tuple(NOTHING for _ in problem.prices)
    return best


def price(problem: Covering, type_: int, values: Sequence[Fraction]) -> tuple[Column, Fraction]:
    """
    Return a configuration of great value, and a value that no configuration exceeds.

    The search is by branch and bound over the kinds; a bound is the least of the fractional
    knapsacks of all rows.
    """
    search = _Pricing(problem, type_, values)
    search.visit((0,) * len(problem.demand), 0, NOTHING)
    return Column(type_, search.best), max(search.worth, search.missed)


class _Pricing:
    def __init__(self, problem: Covering, type_: int, values: Sequence[Fraction]) -> None:
        self._problem = problem
        self._type = type_
        self._values = values
        self._rows = problem.rows[type_]
        self._limits = [
            problem.most(type_, (0,) * len(values), kind, problem.demand[kind], problem.may_fit)
            for kind in problem.kinds
        ]
        # Kinds of great value first: they decide most.
        worths = [each * limit for each, limit in zip(values, self._limits, strict=True)]
        self._order = [
            kind
            for kind in sorted(problem.kinds, key=lambda each: (-worths[each], each))
            if worths[kind]
        ]
        # For each row, the kinds by value for their weight.
        self._by_rate = [
            sorted(
                self._order,
                key=lambda kind, row=row: (  # type: ignore[misc]
                    -float(values[kind]) / row.weights[kind] if row.weights[kind] else -1e300
                ),
            )
            for row in self._rows
        ]
        self._nodes_left = _PRICING_MAX
        self.best: Counts = (0,) * len(values)
        self.worth = NOTHING
        # The greatest value that a part of the search may have that was left out.
        self.missed = NOTHING

    def visit(self, counts: Counts, depth: int, value: Fraction) -> None:
        """Search the configurations that begin with these counts."""
        if value > self.worth and self._problem.fits(self._type, counts):
            self.worth = value
            self.best = counts
        if depth == len(self._order):
            if value > self.worth:
                # It is unknown whether it fits.
                self.missed = max(self.missed, value)
            return
        bound = value + self._upper_bound(counts, depth)
        if bound <= self.worth:
            return
        if self._nodes_left <= 0 or self._problem.is_over():
            self.missed = max(self.missed, bound)
            return
        self._nodes_left -= 1
        kind = self._order[depth]
        test = self._problem.may_fit
        most = self._problem.most(self._type, counts, kind, self._limits[kind], test)
        for number in range(most, -1, -1):
            more = value + number * self._values[kind]
            self.visit(with_more(counts, kind, number), depth + 1, more)

    def _upper_bound(self, counts: Counts, depth: int) -> Fraction:
        """Return a value that the remaining kinds cannot exceed."""
        open_kinds = set(self._order[depth:])
        bound = sum((self._values[kind] * self._limits[kind] for kind in open_kinds), NOTHING)
        for row, order in zip(self._rows, self._by_rate, strict=True):
            bound = min(bound, self._fill(row, order, counts, open_kinds))
        return bound

    def _fill(
        self, row: Row, order: Sequence[int], counts: Counts, open_kinds: set[int]
    ) -> Fraction:
        """Return the value of the fractional knapsack of a row."""
        used = sum(n * w for n, w in zip(counts, row.weights, strict=True) if n)
        room = row.capacity - used
        total = NOTHING
        for kind in order:
            if kind not in open_kinds:
                continue
            weight = row.weights[kind]
            limit = self._limits[kind]
            if weight * limit <= room:
                total += self._values[kind] * limit
                room -= weight * limit
            else:
                return total + self._values[kind] * Fraction(max(room, 0), weight)
        return total


def worth(counts: Counts, values: Sequence[Fraction]) -> Fraction:
    """Return the value of all pods of a configuration."""
    return sum(
        (number * value for number, value in zip(counts, values, strict=True) if number), NOTHING
    )


def lower_bound(
    problem: Covering, values: Sequence[Fraction], best: Sequence[Fraction]
) -> tuple[Fraction, tuple[Fraction, ...], tuple[Fraction, ...]]:
    """
    Return the bound on the cost, the scaled values, and the rent of each type.

    `best` is a value that no configuration of the type exceeds. The values are scaled so that no
    node that can be bought is worth more than its price; a node of limited supply pays a rent.
    """
    scale = Fraction(1)
    for price_, supply, most in zip(problem.prices, problem.supplies, best, strict=True):
        if supply is None and most > 0:
            scale = min(scale, price_ / most)
    scaled = tuple(each * scale for each in values)
    rents = tuple(
        NOTHING if supply is None else max(most * scale - price_, NOTHING)
        for price_, supply, most in zip(problem.prices, problem.supplies, best, strict=True)
    )
    rent = sum(
        (each * (supply or 0) for each, supply in zip(rents, problem.supplies, strict=True)),
        NOTHING,
    )
    return max(worth(problem.demand, scaled) - rent, NOTHING), scaled, rents


def _limited_types(problem: Covering) -> list[int]:
    return [type_ for type_ in problem.types if problem.supplies[type_] is not None]


def _solve(problem: Covering, columns: Sequence[Column]) -> LinearSolution | None:
    limited = _limited_types(problem)
    rows = [
        (*least(each.counts, problem.demand), *(-int(each.type == type_) for type_ in limited))
        for each in columns
    ]
    costs = [float(problem.prices[each.type]) for each in columns]
    objective = (*problem.demand, *(-(problem.supplies[type_] or 0) for type_ in limited))
    return solve(rows, costs, objective)


def _fractions(solution: LinearSolution, problem: Covering) -> tuple[Fraction, ...]:
    own = solution.prices[: len(problem.demand)]
    return tuple(Fraction(each).limit_denominator(_DENOMINATOR_MAX) for each in own)


def _rent(problem: Covering, solution: LinearSolution, type_: int) -> float:
    """Return the price that the programme puts on one more node of a limited type."""
    limited = _limited_types(problem)
    if type_ not in limited:
        return 0.0
    return solution.prices[len(problem.demand) + limited.index(type_)]


def round_up(bound: Fraction, prices: Sequence[Fraction], limit: Fraction) -> Fraction:
    """Return the least cost of whole nodes that is not below the bound; `limit` is reachable."""
    wanted = [each for each in {*prices} if 0 < each <= limit]
    if not wanted or bound <= 0:
        return bound
    # In units of which every price is a multiple, the costs are integers.
    denominator = lcm(*(each.denominator for each in wanted))
    sizes = sorted(int(each * denominator) for each in wanted)
    unit = gcd(*sizes)
    sizes = [each // unit for each in sizes]
    lowest = ceil(bound * denominator / unit)
    highest = int(limit * denominator / unit)
    if highest > _UNITS_MAX:
        return min(Fraction(lowest * unit, denominator), limit)
    # The smaller plans of "one node fewer" and of limits have the same prices, and other limits.
    above = _reachable_costs(tuple(sizes), highest.bit_length()) >> lowest
    if not above:
        return limit
    next_one = (above & -above).bit_length() - 1
    return min(Fraction((lowest + next_one) * unit, denominator), limit)


@lru_cache(maxsize=8)
def _reachable_costs(sizes: tuple[int, ...], bits: int) -> int:
    """Return a number whose bit n is set if some nodes cost n units, for n below 2 ** bits."""
    highest = (1 << bits) - 1
    mask = (1 << (highest + 1)) - 1
    reachable = 1
    for size in sizes:
        shift = size
        while shift <= highest:
            reachable |= (reachable << shift) & mask
            shift *= 2
    return reachable
