"""
What can be known about a problem before it is searched, as far as cuts depend on it.

Where errors lurk, how many results a claim can come to, which constraints are still to come,
and where the order of devices decides. `proof` says what follows from it.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from dryrack.allocation.demand.constraints import MISSING, ConstraintKind
from dryrack.allocation.demand.requests import RESULTS_MAX
from dryrack.allocation.model.features import Release
from dryrack.allocation.search.problem import FAILED, UNKNOWN, USABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dryrack.allocation.demand.constraints import Column, Constraint
    from dryrack.allocation.search.problem import Problem, RequestRow


class Survey:
    """Facts about one problem. Completes the problem's table."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.slates = [slate for ways in problem.requests for slate in ways]
        for column in problem.columns:
            column.complete()
        for slate in self.slates:
            _complete(problem, slate)
        # How many of "all" devices come before the first that might break a constraint.
        self.safe = {id(s): safe_prefix(problem, s) for s in self.slates if s.ask.takes_all}
        before = self._results_before()
        self._mines = {
            id(slate): before[slate.request] + slate.count <= RESULTS_MAX and self._find_mine(slate)
            for slate in self.slates
        }
        self.mined = [any(map(self.has_mine, ways)) for ways in problem.requests]
        self.least_after = self._results(min)
        self.most_after = self._results(max)
        self.ruled_by = self._constraints_ahead()
        self.mined_claims = {
            ways[0].claim for ways, mined in zip(problem.requests, self.mined, strict=True) if mined
        }

    def has_mine(self, slate: RequestRow) -> bool:
        """Whether there is a device on which the ask ends the search with an error."""
        return self._mines[id(slate)]

    def _find_mine(self, slate: RequestRow) -> bool:
        if slate.ask.takes_all:
            return self.safe[id(slate)] < len(slate.all_devices)
        return any(slate.status[device] == FAILED for device in slate.order)

    @cached_property
    def can_exceed(self) -> list[bool]:
        """By claim: whether its requests, each satisfied its largest way, exceed the limit."""
        most = [0] * len(self.problem.claims)
        for ways, after in zip(self.problem.requests, self.most_after, strict=True):
            most[ways[0].claim] = max(most[ways[0].claim], after)
        return [each > RESULTS_MAX for each in most]

    @cached_property
    def delicate(self) -> list[bool]:
        """By claim: whether it matters if it fails for want of devices or of allowed results."""
        traced = {self.problem.constraints[number].claim for number in self.traced}
        special = self.mined_claims | traced
        return [each and claim in special for claim, each in enumerate(self.can_exceed)]

    @cached_property
    def traced(self) -> frozenset[int]:
        """Constraints over lists that remember devices which were tried in vain."""
        columns = self.problem.columns
        if self.problem.surroundings.release is not Release.V1_36:
            return frozenset()
        return frozenset(
            constraint.number
            for constraint in self.problem.constraints
            if constraint.kind is ConstraintKind.MATCH and not columns[constraint.number].scalar
        )

    @cached_property
    def last_ordered(self) -> int:
        """The last request for which the order of devices decides; -1 if there is none."""
        return max((s.request for s in self.slates if self._is_ordered(s)), default=-1)

    def _is_ordered(self, slate: RequestRow) -> bool:
        traced = any(constraint.number in self.traced for constraint in slate.constraints)
        return traced or compares_neighbours(self.problem, slate)

    # How many results.

    def _results(self, of: Callable[[Iterable[int]], int]) -> list[int]:
        """By request: how many results its claim comes to from it on, by its least or most."""
        results = [0] * len(self.problem.requests)
        claim = -1
        total = 0
        for number in reversed(range(len(results))):
            ways = self.problem.requests[number]
            if ways[0].claim != claim:
                claim = ways[0].claim
                total = 0
            total += max(0, of(way.count for way in ways))
            results[number] = total
        return results

    def _results_before(self) -> list[int]:
        """By request: how many results its claim has at least when it is entered."""
        results: list[int] = []
        claim = -1
        total = 0
        for ways in self.problem.requests:
            if ways[0].claim != claim:
                claim = ways[0].claim
                total = 0
            results.append(total)
            total += max(0, min(way.count for way in ways))
        return results

    def _constraints_ahead(self) -> list[list[int]]:
        """By request: the constraints of its claim that it or a later request is under."""
        ahead: list[list[int]] = []
        under: dict[int, None] = {}
        for ways in reversed(self.problem.requests):
            numbers = [constraint.number for way in ways for constraint in way.constraints]
            under = {n: None for n in (*numbers, *under) if self._is_of(ways[0].claim, n)}
            ahead.append(sorted(under))
        return ahead[::-1]

    def _is_of(self, claim: int, constraint: int) -> bool:
        return self.problem.constraints[constraint].claim == claim

    # What no cut is made for. The API allows none of it.

    def repeats_names(self) -> bool:
        """Whether one request would forget what another remembers."""
        return any(slate.name_of != slate.request for slate in self.slates)

    def odd_amounts(self) -> bool:
        """Whether something gives back counters or capacity instead of taking it."""
        draws = (amount for draw in self.problem.draws.values() for _, amount in draw)
        needs = (n for slate in self.slates for need in slate.needs.values() for n in need)
        return any(amount < 0 for amount in draws) or any(need < 0 for need in needs)


def _complete(problem: Problem, slate: RequestRow) -> None:
    """Fill the ask's row of the table, and keep only devices that the walk has to look at."""
    devices = slate.all_devices if slate.ask.takes_all else range(len(problem.devices))
    for device in devices:
        if slate.status[device] == UNKNOWN:
            problem.judge(slate, device)
    if slate.ask.takes_all:
        slate.order = slate.all_devices
    else:
        slate.order = [d for d in devices if slate.status[d] in (USABLE, FAILED)]


def compares_neighbours(problem: Problem, slate: RequestRow) -> bool:
    """Whether devices of the ask must differ, but only from the one before."""
    return (
        problem.surroundings.release is Release.V1_36
        and slate.count > 1
        and any(each.kind is ConstraintKind.DISTINCT for each in slate.constraints)
    )


def claims_after_the_first(requests: Sequence[tuple[RequestRow, ...]]) -> Iterator[range]:
    """The requests of each claim but the first."""
    starts = [
        number
        for number in range(1, len(requests))
        if requests[number][0].claim != requests[number - 1][0].claim
    ]
    for start, end in pairwise([*starts, len(requests)]):
        yield range(start, end)


def safe_prefix(problem: Problem, slate: RequestRow) -> int:
    """How many of "all" devices come before the first that might break a constraint."""
    return min(
        (_safe_under(problem, slate, constraint) for constraint in slate.constraints),
        default=len(slate.all_devices),
    )


def _safe_under(problem: Problem, slate: RequestRow, constraint: Constraint) -> int:
    column = problem.columns[constraint.number]
    if not column.scalar:
        return 0
    match = constraint.kind is ConstraintKind.MATCH
    # Up to 1.36 a device must differ from the one before, and not from all.
    forgets = not match and problem.surroundings.release is Release.V1_36
    before = _values_before(problem, slate, constraint)
    seen = set(before)
    for place, device in enumerate(slate.all_devices):
        if slate.status[device] != USABLE:
            # "All" fails here, whatever would come after.
            break
        value = column[device]
        if value < 0 or (bool(seen - {value}) if match else value in seen):
            return place
        seen = before | {value} if forgets else seen | {value}
    return len(slate.all_devices)


def _values_before(problem: Problem, slate: RequestRow, constraint: Constraint) -> set[int]:
    """The values that devices of earlier requests may have where "all" devices are asked for."""
    earlier = problem.requests[: slate.request]
    column = problem.columns[constraint.number]
    if constraint.kind is ConstraintKind.MATCH:
        return _shared_before(problem, earlier, constraint)
    return _had(earlier, constraint, column)


def _had(
    earlier: Iterable[tuple[RequestRow, ...]], constraint: Constraint, column: Column
) -> set[int]:
    """The values that devices of these requests may have."""
    ways = (way for ways in earlier for way in ways if constraint in way.constraints)
    return {column[device] for way in ways for device in way.order}


def _shared_before(
    problem: Problem, earlier: Iterable[tuple[RequestRow, ...]], constraint: Constraint
) -> set[int]:
    """The values that devices of these requests may share, if all requests are satisfied."""
    column = problem.columns[constraint.number]
    surely: list[tuple[RequestRow, ...]] = []
    perhaps: set[int] = set()
    for ways in earlier:
        under = tuple(way for way in ways if constraint in way.constraints)
        perhaps |= {value for way in under for value in _sufficient(way, column)}
        if under == ways and all(way.count > 0 for way in ways):
            surely.append(ways)
    values = perhaps.intersection(
        *({value for way in ways for value in _sufficient(way, column)} for ways in surely)
    )
    return {value for value in values if _suffice(problem, surely, column, value)}


def _suffice(
    problem: Problem, requests: Sequence[tuple[RequestRow, ...]], column: Column, value: int
) -> bool:
    """Whether there are enough devices of the value for requests of one claim together."""
    slates = (way for ways in requests for way in ways)
    devices = {
        device
        for way in slates
        for device in way.order
        if way.status[device] == USABLE and column[device] == value
    }
    needed = sum(min(way.count for way in ways) for ways in requests)
    return len(devices) >= needed or any(map(problem.shareable, devices))


def _sufficient(way: RequestRow, column: Column) -> Iterator[int]:
    """The values that enough devices have to go this way with one of them."""
    usable = (device for device in way.order if way.status[device] == USABLE)
    for value, number in Counter(column[device] for device in usable).items():
        if value != MISSING and number >= way.count:
            yield value
