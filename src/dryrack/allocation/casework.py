"""
A proof by cases that what is left to choose cannot be chosen.

Bounds look at one rule at a time. This looks at all of them together, after supposing what
they leave open: which value devices under matchAttribute share, which way a request goes, and
which value the last device of a request has under distinctAttribute of 1.36. Whatever is
chosen belongs to one of the cases. Each case is shown to be impossible by a flow from what is
wanted to devices, or is split further:

- a device goes to one request, or to as many as share it;
- of devices in a row that exclude each other a request has one. Up to 1.36 a device must only
  differ from the one before, until another was tried in vain between them; so those that follow
  each other with nothing different between them are such a row. See `neighbours`;
- what the last device of a request excludes, later requests do not have;
- what a request must take, because there is no more of it, later requests do not even see;
- from a counter no more devices can draw than the least greedy of them could.

A flow asks for less than the search does, so what is impossible here is impossible there. Cases
are many, so there is a limit to them: nothing is proved then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dryrack.allocation.cases import Case, Cases, Option
from dryrack.allocation.constraints import (
    MISSING,
    DistinctState,
    LastDistinctState,
    MatchState,
    differs,
)
from dryrack.allocation.contest import OPEN, Contest, Lanes, Want, by_counter
from dryrack.allocation.problem import USABLE
from dryrack.allocation.weighing import Weighing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dryrack.allocation.constraints import Column, Constraint, Values
    from dryrack.allocation.contest import Needs
    from dryrack.allocation.demands import Demand, Question
    from dryrack.allocation.problem import Slate
    from dryrack.allocation.search import Walk

# To look at a case takes about as long as so many steps of a walk with proof.
_STEPS_A_CASE = 4


class Casework:
    """One question: whether these demands can be met from what a walk has left."""

    def __init__(self, walk: Walk, question: Question, *, cases_max: int) -> None:
        self._walk = walk
        self._problem = walk.problem
        later = (demand for group in question.later for demand in group.demands)
        now = [question.now] if question.now else []
        self._demands = now + sorted(later, key=lambda demand: demand.request)
        self._cases = Cases(walk, self._demands)
        self._looked_at = 0
        self._cases_max = cases_max
        self._present = [
            [self._devices_present(demand, way) for way in demand.ways] for demand in self._demands
        ]
        self._contests = [part for who in self._contending() for part in self._parts(who)]

    def impossible(self) -> bool:
        """Whether every case is impossible; no, if there are too many to tell."""
        impossible = self._refuted(Case((OPEN,) * len(self._demands), {}, {}))
        self._walk.steps += self._looked_at * _STEPS_A_CASE
        return impossible

    def _refuted(self, case: Case) -> bool:
        if self._looked_at >= self._cases_max:
            return False
        self._looked_at += 1
        options = self._all_options(case)
        if not all(options) or self._starves(case, options):
            return True
        cases = self._cases.split(case, options)
        return cases is not None and all(map(self._refuted, cases))

    # What is there.

    def _devices_present(self, demand: Demand, way: Slate) -> Sequence[int]:
        """The devices that constraints get to see when the search asks for this way."""
        walk, places = self._walk, way.order[demand.cursor or 0 : demand.end]
        return [
            device
            for device in places
            if way.status[device] == USABLE
            and not self._is_held(way, device)
            and walk.refusal(way, device) is None
        ]

    def _is_held(self, way: Slate, device: int) -> bool:
        if way.ask.admin:
            return (way.claim, device) in self._walk.held
        return bool(self._walk.holds[device])

    def _contending(self) -> Iterator[Sequence[int]]:
        """
        Demands of which no two can have the same device, unless it is shared.

        What admin access holds is denied to all that come later, but it takes what other
        claims before it hold.
        """
        admin = [demand.ways[0].ask.admin for demand in self._demands]
        claims = [demand.ways[0].claim for demand in self._demands]
        plain = [index for index, is_admin in enumerate(admin) if not is_admin]
        if plain:
            yield plain
        for claim in sorted({claims[index] for index, is_admin in enumerate(admin) if is_admin}):
            own = [index for index, each in enumerate(claims) if each == claim]
            yield own + [index for index in plain if claims[index] > claim]

    def _parts(self, who: Sequence[int]) -> Iterator[Sequence[int]]:
        """All of these, and those up to each that looks at what nobody before it holds."""
        for end, index in enumerate(who, start=1):
            ways = self._demands[index].ways
            if end == len(who) or any(self._looks_around(way) for way in ways):
                yield who[:end]

    def _looks_around(self, way: Slate) -> bool:
        states = (self._walk.states[constraint.number] for constraint in way.constraints)
        return way.count > 1 and any(isinstance(state, LastDistinctState) for state in states)

    def _all_options(self, case: Case) -> list[list[Option]]:
        """By demand; what one takes for certain nobody after it gets to see."""
        gone: frozenset[int] = frozenset()
        found = []
        for index in range(len(self._demands)):
            options = self._options(case, index, gone)
            gone = gone.union(self._certain(options))
            found.append(options)
        return found

    def _certain(self, options: Sequence[Option]) -> Iterable[int]:
        """The devices of a demand that has no more of them than it needs."""
        if len(options) != 1 or options[0].way.ask.admin:
            return ()
        [option] = options
        if len(option.devices) > option.need:
            return ()
        return (device for device in option.devices if not self._problem.shareable(device))

    def _options(self, case: Case, index: int, gone: frozenset[int]) -> list[Option]:
        """The ways that the demand can still go, with enough devices for each."""
        demand, chosen = self._demands[index], case.ways[index]
        options: list[Option] = []
        for number, way in enumerate(demand.ways):
            if chosen not in (OPEN, number):
                continue
            need = demand.need if demand.cursor is not None else _need(way)
            # Admin access has what others hold.
            option = Option(way, need, (), frozenset() if way.ask.admin else gone)
            devices = self._admitted(case, index, option)
            if len(devices) >= need:
                options.append(replace(option, devices=devices))
        return options

    def _there(self, index: int, option: Option) -> Sequence[int]:
        devices = self._present[index][self._demands[index].ways.index(option.way)]
        if not option.gone:
            return devices
        return [device for device in devices if device not in option.gone]

    def _admitted(self, case: Case, index: int, option: Option) -> Sequence[int]:
        way, devices = option.way, self._there(index, option)
        for constraint in way.constraints:
            devices = self._passed(case, index, way, constraint, devices)
        for (number, at), value in case.last.items():
            if at == index:
                column = self._problem.columns[number]
                devices = _up_to(devices, column, value, only=option.need == 1)
        return devices

    def _passed(
        self, case: Case, index: int, way: Slate, constraint: Constraint, devices: Sequence[int]
    ) -> Sequence[int]:
        """The devices that the constraint lets pass, whatever else is chosen."""
        number = constraint.number
        column, state = self._problem.columns[number], self._walk.states[number]
        if isinstance(state, MatchState):
            allowed = frozenset((case.shared[number],)) if number in case.shared else None
            if allowed is None and state.count:
                allowed = state.shared
            return _with_one_of(allowed, column, devices)
        barred = [
            *state.others(way.name_of, self._walk.ongoing),
            *(v for (n, at), v in case.last.items() if n == number and at < index),
        ]
        # What is of unknown type may be let in as the first.
        return [
            device
            for device in devices
            if column[device] < MISSING
            or (column[device] >= 0 and differs(column, column[device], barred))
        ]

    # The flow.

    def _starves(self, case: Case, options: Sequence[Sequence[Option]]) -> bool:
        """Whether some demands, which want the same devices, cannot all be met."""
        wants = [self._want(case, index, each) for index, each in enumerate(options)]
        contests = ([wants[index] for index in who] for who in self._contests)
        return any(Contest(self._walk, each).starves() for each in contests) or self._too_dear(
            options
        )

    def _too_dear(self, options: Sequence[Sequence[Option]]) -> bool:
        lots = [
            (
                min(option.need for option in each),
                list({device: None for option in each for device in option.devices}),
            )
            for each in options
        ]
        return Weighing(self._walk, lots).too_dear()

    def _want(self, case: Case, index: int, options: Sequence[Option]) -> Want:
        need = min(option.need for option in options)
        shares: dict[int, Needs] = {}
        for option in options:
            for device in option.devices:
                if device in option.way.needs:
                    asked = option.way.needs[device]
                    known = shares.get(device, asked)
                    shares[device] = tuple(map(min, known, asked))
        in_rows = self._rows(case, index, options[0]) if len(options) == 1 else None
        if in_rows is None:
            devices = {device: None for option in options for device in option.devices}
            return Want(need, by_counter(self._walk, list(devices)), shares)
        number, lanes = in_rows
        return Want(need, lanes, shares, case.last.get((number, index)) if lanes.roads else None)

    def _rows(self, case: Case, index: int, option: Option) -> tuple[int, Lanes] | None:
        """The constraint that leaves the least, and what it leaves, if there is one."""
        rows = [
            (each.number, self._in_rows(case, index, option, each))
            for each in option.way.constraints
            if self._sets_apart(each, option)
        ]
        return min(rows, key=lambda each: sum(each[1].widths.values()), default=None)

    def _sets_apart(self, constraint: Constraint, option: Option) -> bool:
        """Whether the constraint lets a request have one of several devices."""
        state, column = (
            self._walk.states[constraint.number],
            self._problem.columns[constraint.number],
        )
        if any(column[device] < 0 for device in option.devices):
            return False
        if isinstance(state, DistinctState):
            return column.scalar
        in_rows = isinstance(state, LastDistinctState) and not option.way.ask.takes_all
        return in_rows and option.need > 1

    def _in_rows(self, case: Case, index: int, option: Option, constraint: Constraint) -> Lanes:
        column = self._problem.columns[constraint.number]
        if isinstance(self._walk.states[constraint.number], DistinctState):
            values = {device: column[device] for device in option.devices}
            return Lanes(values, dict.fromkeys(values.values(), 1))
        seen = self._seen(case, index, option, constraint)
        row_of = rows_of(seen, column)
        rows = {device: row_of[device] for device in option.devices}
        widths = dict.fromkeys(rows.values(), 1)
        if not column.scalar:
            return Lanes(rows, widths)
        values_of = {row: column[device] for device, row in rows.items()}
        return Lanes(rows, widths, values_of, self._half(option, seen))

    def _half(self, option: Option, seen: Sequence[int]) -> int | None:
        """
        How many devices of one value a demand can have, if others of it count as well.

        Between two of one value that follow each other there is one of another: chosen too, or
        tried in vain and so not held by anyone before. Of those that are chosen or tried there
        are as many as needed with no more than half of one value. Somebody who comes later may
        take what was tried in vain; and to try one device after the other costs counters once.
        """
        if len(seen) > len(option.devices) or any(map(self._walk.draw, seen)):
            return None
        return (option.need + 1) // 2

    def _seen(
        self, case: Case, index: int, option: Option, constraint: Constraint
    ) -> Sequence[int]:
        """
        The devices that the constraint may get to see, and allow.

        What constraints after it refuse, it has seen. What those before it refuse, it has not;
        but lists have more than one member that may have let a device pass.
        """
        devices = self._there(index, option)
        for before in option.way.constraints:
            supposed = case if self._problem.columns[before.number].scalar else _nothing(case)
            devices = self._passed(supposed, index, option.way, before, devices)
            if before is constraint:
                break
        last = case.last.get((constraint.number, index))
        column = self._problem.columns[constraint.number]
        return devices if last is None else _up_to(devices, column, last, only=False)


def _nothing(case: Case) -> Case:
    return replace(case, shared={})


def _need(way: Slate) -> int:
    return max(1, way.count)


def _with_one_of(members: Values | None, column: Column, devices: Iterable[int]) -> Sequence[int]:
    """The devices that have one of the members; or any at all, if none is named."""
    if members is None:
        return [device for device in devices if column[device] != MISSING]
    values = {value for value, each in enumerate(column.members) if not members.isdisjoint(each)}
    return [device for device in devices if column[device] in values]


def _up_to(devices: Sequence[int], column: Column, value: int, *, only: bool) -> Sequence[int]:
    """The devices up to the last with the value; or only those with it."""
    if only:
        return [device for device in devices if column[device] == value]
    places = [place for place, device in enumerate(devices) if column[device] == value]
    return devices[: places[-1] + 1] if places else ()


def rows_of(devices: Iterable[int], column: Column) -> dict[int, int]:
    """Numbers the rows of devices that exclude each other."""
    rows: dict[int, int] = {}
    values: list[int] = []
    number = 0
    for device in devices:
        value = column[device]
        if any(differs(column, value, (each,)) for each in values):
            number, values = number + 1, []
        if value not in values:
            values.append(value)
        rows[device] = number
    return rows
