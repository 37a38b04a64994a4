"""
What may be supposed about whatever is chosen, and how that is split further.

A case says which value devices under matchAttribute share, which way a request goes, and which
value the last device of a request has under distinctAttribute of 1.36. Whatever is chosen belongs
to one of the cases that a case is split into. See `casework` for what they are good for.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dryrack.allocation.constraints import ConstraintKind, LastDistinctState, MatchState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.allocation.constraints import Constraint
    from dryrack.allocation.demands import Demand
    from dryrack.allocation.problem import Slate
    from dryrack.allocation.search import Walk


@dataclass(frozen=True, slots=True)
class Option:
    """A way to meet a demand, and the devices that are left for it in some case."""

    way: Slate
    need: int
    # In the order of trying.
    devices: Sequence[int]
    # What demands before it take for certain.
    gone: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Case:
    """What is supposed."""

    # By demand: the way it goes, or `OPEN`.
    ways: tuple[int, ...]
    # By constraint: the value that all its devices share.
    shared: Mapping[int, tuple[str, object]]
    # By constraint and demand: the value of the last device.
    last: Mapping[tuple[int, int], int]


class Cases:
    """Splits cases of what these demands can be met with from what a walk has left."""

    def __init__(self, walk: Walk, demands: Sequence[Demand]) -> None:
        self._walk = walk
        self._problem = walk.problem
        self._demands = demands

    def split(self, case: Case, wants: Sequence[Sequence[Option]]) -> list[Case] | None:
        """Cases of which one must hold if the case does; None, if nothing is left open."""
        for split in (self._by_value, self._by_way, self._by_last):
            cases = split(case, wants)
            if cases is not None:
                return cases
        return None

    def _by_value(self, case: Case, wants: Sequence[Sequence[Option]]) -> list[Case] | None:
        for constraint in self._problem.constraints:
            number = constraint.number
            if constraint.kind is not ConstraintKind.MATCH or number in case.shared:
                continue
            under = [options for options in wants if _all_under(constraint, options)]
            if sum(min(o.need for o in options) for options in under) > 1:
                members = self._members(number, under)
                return [replace(case, shared={**case.shared, number: each}) for each in members]
        return None

    def _members(
        self, number: int, wants: Sequence[Sequence[Option]]
    ) -> Iterable[tuple[str, object]]:
        """The members of which there are enough for each of the demands."""
        members: dict[tuple[str, object], None] | None = None
        for options in wants:
            enough: dict[tuple[str, object], None] = {}
            for option in options:
                counts = self._counted(number, option.devices)
                enough |= {each: None for each, n in counts.items() if n >= option.need}
            members = enough if members is None else {m: None for m in members if m in enough}
        return members or ()

    def _counted(self, number: int, devices: Iterable[int]) -> Counter[tuple[str, object]]:
        """How many of the devices have each member that they may share."""
        column, state = self._problem.columns[number], self._walk.states[number]
        narrowed = state.shared if isinstance(state, MatchState) and state.count else None
        counts: Counter[tuple[str, object]] = Counter()
        for value, count in Counter(column[device] for device in devices).items():
            for member in sorted(column.members[value], key=str) if value >= 0 else ():
                if narrowed is None or member in narrowed:
                    counts[member] += count
        return counts

    def _by_way(self, case: Case, wants: Sequence[Sequence[Option]]) -> list[Case] | None:
        for index, options in enumerate(wants):
            if len(options) > 1:
                ways = self._demands[index].ways
                numbers = [ways.index(option.way) for option in options]
                return [
                    replace(case, ways=(*case.ways[:index], number, *case.ways[index + 1 :]))
                    for number in numbers
                ]
        return None

    def _by_last(self, case: Case, wants: Sequence[Sequence[Option]]) -> list[Case] | None:
        for constraint in self._problem.constraints:
            number = constraint.number
            if not isinstance(self._walk.states[number], LastDistinctState):
                continue
            under = [n for n, options in enumerate(wants) if _all_under(constraint, options)]
            for index in under[:-1]:
                if (number, index) not in case.last:
                    column = self._problem.columns[number]
                    values = dict.fromkeys(column[d] for d in wants[index][0].devices)
                    return [replace(case, last={**case.last, (number, index): v}) for v in values]
        return None


def _all_under(constraint: Constraint, options: Iterable[Option]) -> bool:
    return all(constraint in option.way.constraints for option in options)
