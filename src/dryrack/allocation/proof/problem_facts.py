"""
Facts about a problem that are known before the search, and on which cuts depend.

They are: where errors can occur, how many results a claim can have, which constraints later
requests are under, and where the order of devices decides. `search_proof` draws the conclusions.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from dryrack.allocation.demand.constraints import MISSING, ConstraintKind
from dryrack.allocation.demand.requests import RESULTS_MAX
from dryrack.allocation.search.problem import FAILED, UNKNOWN, USABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dryrack.allocation.demand.constraints import Column, Constraint
    from dryrack.allocation.search.problem import Problem, RequestRow


class ProblemFacts:
    """Facts about one problem. Making them completes the problem's table."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.rows = [row for ways in problem.requests for row in ways]
        for column in problem.columns:
            column.complete()
        for row in self.rows:
            _complete_row(problem, row)
        # The number of "all" devices before the first that might break a constraint.
        self.safe_prefix_length = {
            id(s): find_safe_prefix_length(problem, s) for s in self.rows if s.ask.takes_all
        }
        before = self._results_before()
        self._failing = {
            id(row): before[row.request] + row.count <= RESULTS_MAX and self._find_failure(row)
            for row in self.rows
        }
        self.may_fail = [any(map(self.has_failing_selector, ways)) for ways in problem.requests]
        self.least_after = self._results(min)
        self.most_after = self._results(max)
        self.ruled_by = self._constraints_ahead()
        self.failing_claims = {
            ways[0].claim
            for ways, may_fail in zip(problem.requests, self.may_fail, strict=True)
            if may_fail
        }

    def has_failing_selector(self, row: RequestRow) -> bool:
        """Return whether there is a device on which the ask ends the search with an error."""
        return self._failing[id(row)]

    def _find_failure(self, row: RequestRow) -> bool:
        if row.ask.takes_all:
            return self.safe_prefix_length[id(row)] < len(row.all_devices)
        return any(row.status[device] == FAILED for device in row.order)

    @cached_property
    def can_exceed(self) -> list[bool]:
        """By claim: whether its requests, each satisfied in its largest way, exceed the limit."""
        most = [0] * len(self.problem.claims)
        for ways, after in zip(self.problem.requests, self.most_after, strict=True):
            most[ways[0].claim] = max(most[ways[0].claim], after)
        return [each > RESULTS_MAX for each in most]

    @cached_property
    def near_result_limit(self) -> list[bool]:
        """By claim: whether a lack of devices and too many results have different effects."""
        history_dependent = {
            self.problem.constraints[number].claim for number in self.history_dependent
        }
        special = self.failing_claims | history_dependent
        return [each and claim in special for claim, each in enumerate(self.can_exceed)]

    @cached_property
    def history_dependent(self) -> frozenset[int]:
        """The constraints over lists that remember devices which were tried in vain."""
        columns = self.problem.columns
        if self.problem.context.behaviour.match_is_restored:
            return frozenset()
        return frozenset(
            constraint.number
            for constraint in self.problem.constraints
            if constraint.kind is ConstraintKind.MATCH and not columns[constraint.number].scalar
        )

    @cached_property
    def last_ordered(self) -> int:
        """The last request for which the order of devices decides; or -1."""
        return max((s.request for s in self.rows if self._is_ordered(s)), default=-1)

    def _is_ordered(self, row: RequestRow) -> bool:
        history_dependent = any(
            constraint.number in self.history_dependent for constraint in row.constraints
        )
        return history_dependent or compares_neighbours(self.problem, row)

    # How many results.

    def _results(self, of: Callable[[Iterable[int]], int]) -> list[int]:
        """By request: the least or most results that its claim gets from it and later requests."""
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
        """By request: the least results that its claim has when the request begins."""
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
        """By request: the constraints of its claim that cover it or a later request."""
        ahead: list[list[int]] = []
        under: dict[int, None] = {}
        for ways in reversed(self.problem.requests):
            numbers = [constraint.number for way in ways for constraint in way.constraints]
            under = {n: None for n in (*numbers, *under) if self._is_of(ways[0].claim, n)}
            ahead.append(sorted(under))
        return ahead[::-1]

    def _is_of(self, claim: int, constraint: int) -> bool:
        return self.problem.constraints[constraint].claim == claim

    # Problems for which no cut is made. They are rare, or the API does not allow them.

    def is_beyond_proofs(self) -> bool:
        """Return whether devices have compatibility groups, or requests derive attributes."""
        return bool(self.problem.groups) or self.problem.has_derived

    def repeats_names(self) -> bool:
        """Return whether two requests of a claim have one name."""
        return any(row.name_of != row.request for row in self.rows)

    def odd_amounts(self) -> bool:
        """Return whether a device gives back counters or capacity instead of taking it."""
        draws = (amount for draw in self.problem.draws.values() for _, amount in draw)
        needs = (n for row in self.rows for need in row.needs.values() for n in need)
        return any(amount < 0 for amount in draws) or any(need < 0 for need in needs)


def _complete_row(problem: Problem, row: RequestRow) -> None:
    """Fill a row of the table, and keep only the devices that the walk has to look at."""
    devices = row.all_devices if row.ask.takes_all else range(len(problem.devices))
    for device in devices:
        if row.status[device] == UNKNOWN:
            problem.judge(row, device)
    if row.ask.takes_all:
        row.order = row.all_devices
    else:
        row.order = [d for d in devices if row.status[d] in (USABLE, FAILED)]


def compares_neighbours(problem: Problem, row: RequestRow) -> bool:
    """Return whether devices of the ask must differ, but each only from the one before."""
    return (
        not problem.context.behaviour.distinct_compares_all
        and row.count > 1
        and any(each.kind is ConstraintKind.DISTINCT for each in row.constraints)
    )


def claims_after_the_first(requests: Sequence[tuple[RequestRow, ...]]) -> Iterator[range]:
    """Yield the requests of each claim except the first."""
    starts = [
        number
        for number in range(1, len(requests))
        if requests[number][0].claim != requests[number - 1][0].claim
    ]
    for start, end in pairwise([*starts, len(requests)]):
        yield range(start, end)


def find_safe_prefix_length(problem: Problem, row: RequestRow) -> int:
    """Return the number of "all" devices before the first that might break a constraint."""
    return min(
        (_safe_prefix_under(problem, row, constraint) for constraint in row.constraints),
        default=len(row.all_devices),
    )


def _safe_prefix_under(problem: Problem, row: RequestRow, constraint: Constraint) -> int:
    column = problem.columns[constraint.number]
    if not column.scalar:
        return 0
    match = constraint.kind is ConstraintKind.MATCH
    # A device may have to differ from the one before only, and not from all.
    forgets = not match and not problem.context.behaviour.distinct_compares_all
    before = _values_before(problem, row, constraint)
    seen = set(before)
    for place, device in enumerate(row.all_devices):
        if row.status[device] != USABLE:
            # "All" fails here, so later devices do not matter.
            break
        value = column[device]
        if value < 0 or (bool(seen - {value}) if match else value in seen):
            return place
        seen = before | {value} if forgets else seen | {value}
    return len(row.all_devices)


def _values_before(problem: Problem, row: RequestRow, constraint: Constraint) -> set[int]:
    """Return the values that devices of earlier requests may have where "all" are requested."""
    earlier = problem.requests[: row.request]
    column = problem.columns[constraint.number]
    if constraint.kind is ConstraintKind.MATCH:
        return _shared_before(problem, earlier, constraint)
    ways = (way for ways in earlier for way in ways if constraint in way.constraints)
    return {column[device] for way in ways for device in way.order}


def _shared_before(
    problem: Problem, earlier: Iterable[tuple[RequestRow, ...]], constraint: Constraint
) -> set[int]:
    """Return the values that devices of these requests may share, if all are satisfied."""
    column = problem.columns[constraint.number]
    surely: list[tuple[RequestRow, ...]] = []
    perhaps: set[int] = set()
    for ways in earlier:
        under = tuple(way for way in ways if constraint in way.constraints)
        perhaps |= {value for way in under for value in _values_with_enough_devices(way, column)}
        if under == ways and all(way.count > 0 for way in ways):
            surely.append(ways)
    values = perhaps.intersection(
        *(
            {value for way in ways for value in _values_with_enough_devices(way, column)}
            for ways in surely
        )
    )
    return {value for value in values if _has_enough_devices(problem, surely, column, value)}


def _has_enough_devices(
    problem: Problem, requests: Sequence[tuple[RequestRow, ...]], column: Column, value: int
) -> bool:
    """Return whether there are enough devices of the value for the requests together."""
    rows = (way for ways in requests for way in ways)
    devices = {
        device
        for way in rows
        for device in way.order
        if way.status[device] == USABLE and column[device] == value
    }
    needed = sum(min(way.count for way in ways) for ways in requests)
    return len(devices) >= needed or any(map(problem.shareable, devices))


def _values_with_enough_devices(way: RequestRow, column: Column) -> Iterator[int]:
    """Yield the values that enough devices have to satisfy the request in this way."""
    usable = (device for device in way.order if way.status[device] == USABLE)
    for value, number in Counter(column[device] for device in usable).items():
        if value != MISSING and number >= way.count:
            yield value
