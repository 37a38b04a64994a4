"""
Proof that a part of the search holds nothing, so that it need not be walked through.

Kubernetes tries every combination and gives up after ten seconds. Here a part of the tree is
left out when it provably holds no leaf that ends the attempt: no solution, and no error.

What ends the attempt with an error? A *mine*: a request and a device for which a selector
cannot be evaluated. The walk treads on it when it comes to the request, the device is not held
by an earlier choice, and no solution came before. And "all" devices under a constraint: the
first of them that breaks it, which counts as a mine of that request if it is possible at all.
Mines are known from the table before the walk. From this follows what may be cut:

- Bounds prove that requests cannot all be satisfied. If those from here up to, and not
  including, the next request with a mine cannot, then neither the end nor that mine is ever
  reached. So bounds look at exactly these requests. A request that has a mine itself is
  walked through: its first device is the point where the mine goes off.
- Exchanging alike devices maps the walk below one choice onto the walk below the other, mines
  included, for alike devices are mines for the same requests. If nothing came of the first,
  nothing comes of the second. Within a request only later devices are tried, so what is tried
  below a later twin was tried below the earlier one.
- By the same exchange a state that was walked through in vain need not be walked through
  again when it returns with other devices of the same sorts. The key has all that decides
  what follows, and nothing else: the request and the place in its order, the choices up to
  exchange, the constraints' state, and, where it can matter, the number of results. What is
  chosen decides by being held and by what it draws. So a choice is left out that nobody from
  here on could want, and a constraint that nobody from here on is under. Of a constraint that
  remembers the last device of each request, what the request under way remembers is told from
  what the others do: the one may be forgotten, the others stand, each in the place of any.

A claim that has no solution even with every device to itself has none beside others, so what is
chosen for earlier claims need not be varied on its account.

A claim over its limit of results makes Kubernetes skip devices, and so mines. No choice of
devices brings such a claim back under the limit, so without mines in the claim itself
skipping is the same as trying in vain. A claim with both is walked through plainly.

Lists under matchAttribute up to 1.36 keep traces of devices that were tried in vain. Then what
was tried cannot be left out, and only the bounds at the very beginning are used.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from dryrack.allocation.bounds import Bounds, Demand
from dryrack.allocation.constraints import ConstraintKind
from dryrack.allocation.features import Release
from dryrack.allocation.likeness import Likeness
from dryrack.allocation.problem import FAILED, UNKNOWN, USABLE
from dryrack.allocation.requests import RESULTS_MAX
from dryrack.allocation.search import Ending, Walk

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from dryrack.allocation.bounds import Group
    from dryrack.allocation.constraints import Constraint
    from dryrack.allocation.problem import Problem, Slate
    from dryrack.allocation.search import Frame

# Dead ends are strings of some hundred bytes; this bounds them to about a hundred megabytes.
_DEAD_ENDS_MAX = 300_000


# A claim that is hopeless by itself mostly is so at once.
_ALONE_DEAD_ENDS_MAX = 100


class SearchProof:
    """Knows, for one problem, what need not be searched. Completes the problem's table."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._slates = [slate for ways in problem.requests for slate in ways]
        for slate in self._slates:
            _complete(problem, slate)
        self._safe = {id(s): safe_prefix(problem, s) for s in self._slates if s.ask.takes_all}
        self._mined = [any(map(self._has_mine, ways)) for ways in problem.requests]
        self._horizon = self._next_mines()
        self._least_after = self._least_results()
        self._can_exceed = self._claims_that_can_exceed()
        self._ruled_by = self._constraints_ahead()
        self._likeness = Likeness(problem, self._slates)
        self._bounds = Bounds(problem, self._likeness)
        self._plans: dict[int, Sequence[Group]] = {}
        self._dead: set[Hashable] = set()
        # Whether the walk may be cut below its root.
        self.cuts = not (
            self._leaves_traces()
            or self._limit_hides_mines()
            or self._odd_amounts()
            or self._repeats_names()
        )

    def refuted(self) -> bool:
        """Whether the bounds alone show that there is nothing to find, and no error either."""
        if not self._problem.requests:
            return False
        return self._bounds.impossible(Walk(self._problem), None, self._plan(0)) or (
            self.cuts and any(map(self._refuted_alone, self._claims_before_mines()))
        )

    def _claims_before_mines(self) -> Iterator[range]:
        """The requests of each claim after the first, as long as none so far has a mine."""
        requests = self._problem.requests
        bounds = [n for n in range(len(requests)) if n and _changes_claim(requests, n)]
        for start, end in pairwise([*bounds, len(requests)]):
            if not any(self._mined[:end]):
                yield range(start, end)

    def _refuted_alone(self, requests: range) -> bool:
        """
        Whether these requests have no solution even if nothing is chosen before them.

        Then what is chosen before them need not be varied.
        """
        ways = (way for number in requests for way in self._problem.requests[number])
        if any(self._likeness.compares_neighbours(way) for way in ways):
            # There what was tried before decides, so less competition may be worse.
            return False
        walk = Walk(self._problem, self, within=requests)
        return walk.run(_ALONE_DEAD_ENDS_MAX) is Ending.FAILED

    # What the walk asks.

    def hopeless(self, walk: Walk, frame: Frame) -> bool:
        slate, request = frame.slate, frame.slate.request
        if frame.slot < 0:
            if walk.counts[slate.claim] + self._least_after[request] > RESULTS_MAX:
                return True
            frame.key = self._key(walk, frame)
            plan = self._plan(request)
            return frame.key in self._dead or self._bounds.impossible(walk, None, plan)
        if frame.slot == 0 and len(self._problem.requests[request]) == 1:
            # Nothing changed since the request was entered.
            return False
        frame.key = self._key(walk, frame)
        if frame.key in self._dead:
            return True
        if self._mined[request] and self._has_mine(slate):
            return False
        now = Demand(request, (slate,), slate.count - frame.slot, frame.cursor)
        return self._bounds.impossible(walk, now, self._plan(request + 1))

    def failed(self, frame: Frame) -> None:
        if frame.key is not None and len(self._dead) < _DEAD_ENDS_MAX:
            self._dead.add(frame.key)

    def twin_key(self, walk: Walk, frame: Frame, device: int) -> Hashable:
        return self._likeness.twin_key(walk, frame, device)

    def _key(self, walk: Walk, frame: Frame) -> Hashable:
        slate, request = frame.slate, frame.slate.request
        own = slate.name_of if frame.slot >= 0 else -1
        states = tuple([walk.states[number].key(own) for number in self._ruled_by[request]])
        results = walk.counts[slate.claim] if self._can_exceed[slate.claim] else 0
        if frame.slot < 0:
            return request, results, states, self._likeness.choices(walk, request)
        choices = self._likeness.choices_from(walk, slate, frame.cursor)
        return request, slate.sub, frame.slot, frame.cursor, results, states, choices

    def _has_mine(self, slate: Slate) -> bool:
        if slate.ask.takes_all:
            return self._safe[id(slate)] < len(slate.all_devices)
        return any(slate.status[device] == FAILED for device in slate.order)

    # Bounds.

    def _plan(self, request: int) -> Sequence[Group]:
        """What is demanded from this request up to the next mine; it never changes."""
        plan = self._plans.get(request)
        if plan is None:
            plan = self._plans[request] = self._bounds.plan(self._later(request))
        return plan

    def _later(self, request: int) -> Iterator[Demand]:
        """What requests need from this one up to the next mine."""
        end = self._horizon[request] if request < len(self._horizon) else request
        for number in range(request, end):
            ways = self._problem.requests[number]
            need = min(_need(way) for way in ways)
            if need > 0:
                yield Demand(number, ways, need)
        if end < len(self._problem.requests) and len(self._problem.requests[end]) == 1:
            [way] = self._problem.requests[end]
            if way.ask.takes_all and self._safe[id(way)]:
                # Until a constraint can break, "all" fails like any other request.
                yield Demand(end, (way,), self._safe[id(way)], 0, self._safe[id(way)])

    def _next_mines(self) -> list[int]:
        horizon = [len(self._mined)] * len(self._mined)
        following = len(self._mined)
        for number in reversed(range(len(self._mined))):
            if self._mined[number]:
                following = number
            horizon[number] = following
        return horizon

    def _least_results(self) -> list[int]:
        """By request: how many results its claim needs at least from it on."""
        least = [0] * len(self._problem.requests)
        claim, total = -1, 0
        for number in reversed(range(len(least))):
            ways = self._problem.requests[number]
            if ways[0].claim != claim:
                claim, total = ways[0].claim, 0
            total += max(0, min(way.count for way in ways))
            least[number] = total
        return least

    def _claims_that_can_exceed(self) -> list[bool]:
        """By claim: whether its requests, each satisfied its largest way, exceed the limit."""
        most = [0] * len(self._problem.claims)
        for ways in self._problem.requests:
            most[ways[0].claim] += max(0, *(way.count for way in ways))
        return [each > RESULTS_MAX for each in most]

    def _constraints_ahead(self) -> list[list[int]]:
        """By request: the constraints of its claim that it or a later request is under."""
        ahead: list[list[int]] = []
        under: dict[int, None] = {}
        for ways in reversed(self._problem.requests):
            numbers = [constraint.number for way in ways for constraint in way.constraints]
            under = {n: None for n in (*numbers, *under) if self._is_of(ways[0].claim, n)}
            ahead.append(sorted(under))
        return ahead[::-1]

    def _is_of(self, claim: int, constraint: int) -> bool:
        return self._problem.constraints[constraint].claim == claim

    # Whether cuts are allowed.

    def _leaves_traces(self) -> bool:
        problem = self._problem
        return problem.surroundings.release is Release.V1_36 and any(
            constraint.kind is ConstraintKind.MATCH
            and not problem.columns[constraint.number].scalar
            for constraint in problem.constraints
        )

    def _limit_hides_mines(self) -> bool:
        return any(
            has_mine and self._can_exceed[ways[0].claim]
            for ways, has_mine in zip(self._problem.requests, self._mined, strict=True)
        )

    def _repeats_names(self) -> bool:
        """Whether one request would forget what another remembers. The API allows none."""
        return any(slate.name_of != slate.request for slate in self._slates)

    def _odd_amounts(self) -> bool:
        """Whether something gives back counters or capacity instead of taking it."""
        draws = (amount for draw in self._problem.draws.values() for _, amount in draw)
        needs = (n for slate in self._slates for need in slate.needs.values() for n in need)
        return any(amount < 0 for amount in draws) or any(need < 0 for need in needs)


def _complete(problem: Problem, slate: Slate) -> None:
    """Fill the ask's row of the table, and keep only devices that the walk has to look at."""
    devices = slate.all_devices if slate.ask.takes_all else range(len(problem.devices))
    for device in devices:
        if slate.status[device] == UNKNOWN:
            problem.judge(slate, device)
    if slate.ask.takes_all:
        slate.order = slate.all_devices
    else:
        slate.order = [d for d in devices if slate.status[d] in (USABLE, FAILED)]


def _changes_claim(requests: Sequence[tuple[Slate, ...]], number: int) -> bool:
    return requests[number][0].claim != requests[number - 1][0].claim


def _need(way: Slate) -> int:
    # "All" of nothing fails; one device that nobody has says the same.
    return 1 if way.ask.takes_all and not way.all_devices else way.count


def safe_prefix(problem: Problem, slate: Slate) -> int:
    """How many of "all" devices come before the first that might break a constraint."""
    return min(
        (_safe_under(problem, slate, constraint) for constraint in slate.constraints),
        default=len(slate.all_devices),
    )


def _safe_under(problem: Problem, slate: Slate, constraint: Constraint) -> int:
    column = problem.columns[constraint.number]
    if column.lists:
        return 0
    match = constraint.kind is ConstraintKind.MATCH
    seen = {
        column[device]
        for ways in problem.requests[: slate.request]
        for way in ways
        if constraint in way.constraints
        for device in way.order
    }
    for place, device in enumerate(slate.all_devices):
        value = column[device]
        if value < 0 or (bool(seen - {value}) if match else value in seen):
            return place
        seen.add(value)
    return len(slate.all_devices)
