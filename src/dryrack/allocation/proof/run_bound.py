"""
A bound for devices that must only differ from the one before, as up to 1.36.

After a device, those that follow are refused as long as their value is the same, until another
was allowed; then any will do. So of devices in a row with one value a request can have one.
In the row are the devices that the constraint gets to see and allows: the last devices of
earlier requests rule out a value each, and a matchAttribute that is asked before lets those of
one value pass. Devices that are gone make no more runs of those that are left, so it is enough
to look at those that are there now, for the best choice of values.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations, groupby
from math import comb
from typing import TYPE_CHECKING

from dryrack.allocation.demand.constraints import MISSING, ConstraintKind, LastDistinctState
from dryrack.allocation.demand.open_requests import Demand

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.allocation.demand.constraints import Column, Constraint
    from dryrack.allocation.demand.open_requests import Group
    from dryrack.allocation.search.problem import Problem, RequestRow
    from dryrack.allocation.search.walk import Walk

# More ways to rule out values than these are not looked at.
_CHOICES_MAX = 40

# The values of devices in a row, and how many of each value would do.
Row = tuple["Sequence[int]", "Mapping[int, int]"]


@dataclass(frozen=True, slots=True)
class _View:
    """A demand under a constraint, at some point of a walk."""

    walk: Walk
    constraint: Constraint
    demand: Demand
    # How many devices of each sort would do.
    supply: Mapping[int, int]
    # Values that are ruled out, and how many more will be of which.
    taken: frozenset[int]
    more: int
    among: frozenset[int]


class Neighbours:
    """Knows the runs of equal values in the order of each ask."""

    def __init__(self, problem: Problem, sample: Mapping[int, int]) -> None:
        """`sample` has a device of each sort."""
        self._problem = problem
        self._sample = sample
        self._constraints = [
            constraint
            for constraint in problem.constraints
            if constraint.kind is ConstraintKind.DISTINCT
            and problem.columns[constraint.number].scalar
        ]

    def short(self, walk: Walk, groups: Sequence[Group]) -> bool:
        """Whether one of the demands cannot be met."""
        return any(
            all(self._short_of_way(view, way) for way in view.demand.ways)
            for constraint in self._constraints
            for view in self._views(walk, constraint, groups)
        )

    def short_of_way(self, walk: Walk, way: RequestRow, supply: Mapping[int, int]) -> bool:
        """Whether a way to satisfy a request that has not begun cannot be gone by itself."""
        if way.count < 2 or way.ask.takes_all:
            return False
        demand = Demand(way.request, (way,), way.count)
        for constraint in self._constraints:
            state = walk.states[constraint.number]
            if constraint in way.constraints and isinstance(state, LastDistinctState):
                taken = frozenset(state.others(way.name_of, walk.ongoing))
                view = _View(walk, constraint, demand, supply, taken, 0, frozenset())
                if self._short_of_way(view, way):
                    return True
        return False

    def _views(
        self, walk: Walk, constraint: Constraint, groups: Sequence[Group]
    ) -> Iterator[_View]:
        """The demands for several devices that the constraint covers, in order."""
        state = walk.states[constraint.number]
        if not isinstance(state, LastDistinctState):
            return
        column = self._problem.columns[constraint.number]
        pairs = ((demand, group) for group in groups for demand in group.demands)
        earlier = 0
        among = frozenset[int]()
        for demand, group in sorted(pairs, key=lambda pair: pair[0].request):
            if not all(constraint in way.constraints for way in demand.ways):
                continue
            taken = frozenset(state.others(demand.ways[0].name_of, walk.ongoing))
            # "All" does not pass over what it cannot have.
            passes_over = not any(way.ask.takes_all for way in demand.ways)
            if demand.need > 1 and passes_over:
                yield _View(walk, constraint, demand, group.supply, taken, earlier, among)
            earlier += 1
            among |= {column[self._sample[sort]] for sort in group.supply}

    def _short_of_way(self, view: _View, way: RequestRow) -> bool:
        places = self._places(view, way)
        return any(
            all(_is_short(row, view) for row in self._rows(view, places, also))
            for also in (None, *self._asked_before(view.constraint, way))
        )

    def _places(self, view: _View, way: RequestRow) -> Sequence[int]:
        """The devices that may be looked at, in order."""
        column = self._problem.columns[view.constraint.number]
        demand = view.demand
        holds = view.walk.holds
        return [
            device
            for device in way.order[demand.cursor : demand.end]
            if (way.ask.admin or not holds[device])
            and column[device] != MISSING
            and column[device] not in view.taken
        ]

    def _asked_before(self, constraint: Constraint, way: RequestRow) -> Iterator[Column]:
        for other in way.constraints:
            if other is constraint:
                return
            column = self._problem.columns[other.number]
            if other.kind is ConstraintKind.MATCH and column.scalar:
                yield column

    def _rows(self, view: _View, places: Sequence[int], also: Column | None) -> Iterator[Row]:
        """What the constraint gets to see, for each value that all devices may share."""
        column = self._problem.columns[view.constraint.number]
        rows: dict[int, tuple[list[int], Counter[int]]] = {}
        for device in places:
            shared = also[device] if also is not None else 0
            rows.setdefault(shared, ([], Counter()))[0].append(column[device])
        for sort, number in view.supply.items():
            device = self._sample[sort]
            shared = also[device] if also is not None else 0
            if shared in rows:
                rows[shared][1][column[device]] += number
        yield from rows.values()


def _is_short(row: Row, view: _View) -> bool:
    values = sorted(set(row[0]))
    # What is ruled out need not be in the row.
    out_of_row = max(0, view.more - len(view.among.difference(values)))
    if comb(len(values), out_of_row) > _CHOICES_MAX:
        return False
    return all(_most(row, set(out)) < view.demand.need for out in combinations(values, out_of_row))


def _most(row: Row, out: set[int]) -> int:
    """How many devices there are in different runs, without the values that are ruled out."""
    values, supply = row
    runs = Counter(value for value, _ in groupby(v for v in values if v not in out))
    return sum(min(number, supply[value]) for value, number in runs.items())
