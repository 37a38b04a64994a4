"""
Proof that a part of the search holds nothing, so that it need not be walked through.

Kubernetes tries every combination and stops after ten seconds. Here a part of the tree is left out
when it provably holds no leaf that ends the attempt: no solution, and no error.

Two things end the attempt with an error. The first is a selector that cannot be evaluated on a
device: the walk meets it when it comes to the request, the device is not held by an earlier
choice, and no solution came before. The second is a constraint that one of "all" devices breaks;
it counts as a failing selector of that request if it is possible at all. Both are known from the
table before the walk. From this follows what can be cut:

- Bounds prove that requests cannot all be satisfied. If those from here up to, and not including,
  the next request that can fail cannot, then neither the end nor that request is ever reached. So
  bounds look at exactly these requests. A request that can fail itself is walked through: the
  error happens at its first device.
- Exchanging alike devices maps the walk below one choice onto the walk below the other, errors
  included, because selectors fail on alike devices alike. If the first gave nothing, the second
  gives nothing. Within a request only later devices are tried, so everything below a later twin
  was tried below the earlier one.
- By the same exchange a state that was walked through in vain need not be walked through again
  when it returns with other devices of the same sorts. The key has everything that decides what
  follows, and nothing else: the request and the place in its order, the choices up to exchange,
  the state of the constraints, and, where it can matter, the number of results. A choice matters
  because the device is held, and because of what it draws. So a choice is left out of the key if
  no later request could want the device, and so is a constraint that covers no later request. A
  constraint that remembers the last device of each request keeps the current request apart from
  the others: its own device can be forgotten, the others stay, in any order.

A claim that has no solution even with every device to itself has none beside others, so the
choices for earlier claims need not be varied for it.

A claim over its limit of results makes Kubernetes skip devices, and with them errors and what
lists would remember. No choice of devices brings such a claim back under the limit, so without
errors and such lists in the claim skipping is the same as trying in vain. A claim with one of
them is near the result limit: it is cut only where it is known which of the two would happen.

Two constraints of 1.36 depend on more than the chosen devices. Where the order of devices decides,
`DeviceSymmetry` exchanges only neighbours. Lists under matchAttribute remember devices that were
tried in vain, as a set of members that only gets smaller until nothing is chosen under the
constraint. So a dead end is remembered together with what it left behind, a twin is one only if
the sets were the same, and bounds are used where no device could make the sets smaller: elsewhere
the walk has to go on, though in vain, for what it leaves behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.allocation.demand.constraints import MatchState
from dryrack.allocation.demand.open_requests import Demand, Question
from dryrack.allocation.demand.requests import RESULTS_MAX
from dryrack.allocation.proof.bounds import Bounds
from dryrack.allocation.proof.problem_facts import (
    ProblemFacts,
    claims_after_the_first,
    compares_neighbours,
)
from dryrack.allocation.proof.symmetry import DeviceSymmetry
from dryrack.allocation.search.walk import Ending, Walk

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from dryrack.allocation.demand.constraints import Values
    from dryrack.allocation.demand.open_requests import Group
    from dryrack.allocation.search.problem import RequestRow
    from dryrack.allocation.search.walk import Frame

# Dead ends are strings of some hundred bytes; this bounds them to about a hundred megabytes.
_DEAD_ENDS_MAX = 300_000


class SearchProof:
    """The proofs for one problem, by which a walk leaves out parts of the tree."""

    def __init__(self, facts: ProblemFacts) -> None:
        problem = facts.problem
        self._problem = problem
        self._facts = facts
        self._requests = problem.requests
        self._symmetry = DeviceSymmetry(problem, facts.rows)
        self._ordered = self._symmetry
        if facts.last_ordered >= 0:
            rows = facts.rows
            if not facts.history_dependent:
                rows = [row for row in rows if compares_neighbours(problem, row)]
            in_order = {device for row in rows for device in row.order}
            self._ordered = DeviceSymmetry(problem, facts.rows, in_order)
        self._bounds = Bounds(problem, self._symmetry)
        # Whether the walk may be cut below its root.
        self.cuts = not (facts.odd_amounts() or facts.repeats_names() or facts.is_beyond_proofs())
        self._plans: dict[tuple[int, frozenset[int]], Sequence[Group] | None] = {}
        # Devices that have to be free for an ask for "all" devices to end with an error.
        self._devices_before_error = {
            id(way): way.all_devices[: facts.safe_prefix_length[id(way)] + 1]
            for way in facts.rows
            if way.ask.takes_all and not way.ask.admin and facts.has_failing_selector(way)
        }
        self._dead: dict[Hashable, tuple[Ending, tuple[Values | None, ...]]] = {}
        self._settled: dict[tuple[int, Values], bool] = {}

    def is_refuted(self) -> bool:
        """Return whether the bounds alone rule out a solution and an error."""
        # The bounds do not know what requests derive; compatibility groups only add to them.
        if not self._requests or self._problem.has_derived:
            return False
        root = Question(None, self.plan(0) or ())
        return self._bounds.impossible(Walk(self._problem), root)

    def claims_alone(self) -> Iterator[Walk]:
        """
        Yield, for each claim after the first, a walk in which nothing is chosen before it.

        If one of them fails, the choices before it need not be varied: there is no solution, and
        no error before it either. Only where lists remember what was tried in vain, it can help
        that a device is not available.
        """
        if not self.cuts or self._facts.history_dependent:
            return
        for requests in claims_after_the_first(self._requests):
            if not any(self._facts.may_fail[: requests.stop]):
                yield Walk(self._problem, self, within=requests)

    # Called by the walk.

    def foresee(self, walk: Walk, frame: Frame) -> Ending | None:
        """
        Return how the frame that the walk is about to enter will end, or None if it has to try.

        The order: too many results, the same state seen before, and bounds.
        """
        row = frame.row
        facts = self._facts
        ways = self._requests[row.request]
        if frame.slot == 0 and len(ways) == 1:
            # Nothing changed since the request was entered.
            return None
        can_fail = row.claim in facts.failing_claims
        if not can_fail and not facts.near_result_limit[row.claim]:
            least = facts.least_after[row.request]
            if frame.slot >= 0:
                least += row.count - frame.slot - max(0, min(way.count for way in ways))
            if walk.counts[row.claim] + least > RESULTS_MAX:
                return Ending.FAILED
        if frame.key is None:
            frame.key = self.key(walk, frame)
        dead_end = self._dead.get(frame.key)
        if dead_end is not None:
            ending, traces = dead_end
            self._restore_traces(walk, row.request, traces)
            return ending
        if frame.slot >= 0 and facts.has_failing_selector(row):
            return None
        if not self._may_cut(walk, frame):
            return None
        later = self.plan(row.request + (frame.slot >= 0), self._excluded_ways(walk))
        if later is None:
            return Ending.FAILED
        now = None
        if frame.slot >= 0:
            now = Demand(row.request, (row,), row.count - frame.slot, frame.cursor)
        impossible = self._bounds.impossible(walk, Question(now, later))
        return Ending.FAILED if impossible else None

    def record(self, walk: Walk, frame: Frame, ending: Ending) -> None:
        """Remember that the frame was walked through without a result."""
        if frame.key is not None and len(self._dead) < _DEAD_ENDS_MAX:
            self._dead[frame.key] = ending, self._traces(walk, frame)

    def twin_key(self, walk: Walk, frame: Frame, device: int) -> Hashable:
        """Return a key that is equal for devices of which only the first has to be tried."""
        twin = self._symmetry_of(frame.row.request).twin_key(walk, frame, device)
        return (twin, self._traces(walk, frame)) if self._facts.history_dependent else twin

    def key(self, walk: Walk, frame: Frame) -> Hashable:
        """Return a key that is equal for states from which the walk continues alike."""
        row = frame.row
        request = frame.row.request
        own = row.name_of if frame.slot >= 0 else -1
        ruled_by = self._facts.ruled_by[request]
        states = tuple([walk.states[number].key(own) for number in ruled_by])
        results = walk.counts[row.claim] if self._facts.can_exceed[row.claim] else 0
        symmetry = self._symmetry_of(request)
        if frame.slot < 0:
            return request, results, states, symmetry.choices(walk, request)
        choices = symmetry.choices_from(walk, row, frame.cursor)
        return request, row.sub, frame.slot, frame.cursor, results, states, choices

    def _symmetry_of(self, request: int) -> DeviceSymmetry:
        return self._ordered if request <= self._facts.last_ordered else self._symmetry

    # What follows from the rules alone.

    def _may_cut(self, walk: Walk, frame: Frame) -> bool:
        """Return whether it is known how the frame ends, and what it leaves behind, if in vain."""
        row = frame.row
        facts = self._facts
        if facts.near_result_limit[row.claim]:
            most = facts.most_after[row.request]
            if frame.slot >= 0:
                ways = self._requests[row.request]
                most += row.count - frame.slot - max(way.count for way in ways)
            if walk.counts[row.claim] + most > RESULTS_MAX:
                return False
        return all(
            self._is_settled(walk, number) for number in self._history_dependent_of(row.request)
        )

    def _excluded_ways(self, walk: Walk) -> frozenset[int]:
        """
        Return the ways to ask for "all" devices that fail without an error.

        The device with the error, or a device before it, is held.
        """
        holds = walk.holds
        return frozenset(
            way
            for way, reached in self._devices_before_error.items()
            if any(map(holds.__getitem__, reached))
        )

    def plan(self, request: int, excluded: frozenset[int] = frozenset()) -> Sequence[Group] | None:
        """
        Return the demands from this request up to the next one that can fail.

        Some ways to ask for "all" devices are excluded; None if a request has no other.
        """
        key = request, excluded
        if key not in self._plans:
            demands = self._demands(request, excluded)
            self._plans[key] = None if demands is None else self._bounds.plan(demands)
        return self._plans[key]

    def _demands(self, request: int, excluded: frozenset[int]) -> list[Demand] | None:
        demands: list[Demand] = []
        for number in range(request, len(self._requests)):
            ways = tuple(way for way in self._requests[number] if id(way) not in excluded)
            if not ways:
                return None
            if any(map(self._facts.has_failing_selector, ways)):
                # Until a constraint can break, "all" fails like any other request.
                safe = self._facts.safe_prefix_length.get(id(ways[0]))
                if len(ways) == 1 and safe:
                    demands.append(Demand(number, ways, safe, 0, safe))
                return demands
            need = min(_least_count(way) for way in ways)
            if need > 0:
                demands.append(Demand(number, ways, need))
        return demands

    # Lists that remember.

    def _history_dependent_of(self, request: int) -> Iterator[int]:
        history_dependent = self._facts.history_dependent
        return (number for number in self._facts.ruled_by[request] if number in history_dependent)

    def _traces(self, walk: Walk, frame: Frame) -> tuple[Values | None, ...]:
        if not self._facts.history_dependent:
            return ()
        return tuple(
            _shared_values(walk, number) for number in self._history_dependent_of(frame.row.request)
        )

    def _restore_traces(self, walk: Walk, request: int, traces: tuple[Values | None, ...]) -> None:
        """Leave behind what walking through the same state left behind before."""
        for number, shared in zip(self._history_dependent_of(request), traces, strict=True):
            state = walk.states[number]
            if shared is not None and isinstance(state, MatchState):
                state.shared = shared

    def _is_settled(self, walk: Walk, number: int) -> bool:
        """Return whether no device can narrow down what the constraint's devices have in common."""
        shared = _shared_values(walk, number)
        if shared is None or len(shared) == 1:
            return True
        known = self._settled.get((number, shared))
        if known is None:
            members = self._problem.columns[number].members
            known = all(each >= shared or each.isdisjoint(shared) for each in members)
            self._settled[number, shared] = known
        return known


def _shared_values(walk: Walk, number: int) -> Values | None:
    state = walk.states[number]
    return state.shared if isinstance(state, MatchState) and state.count else None


def _least_count(way: RequestRow) -> int:
    # "All" of nothing fails, like a demand for one device that does not exist.
    return 1 if way.ask.takes_all and not way.all_devices else way.count
