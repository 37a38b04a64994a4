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

A claim over its limit of results makes Kubernetes skip devices, and so mines, and what lists
would remember. No choice of devices brings such a claim back under the limit, so without either
of them in the claim itself skipping is the same as trying in vain. A claim with one of them is
*delicate*: it is cut only where it is known which of the two would happen.

Two constraints of 1.36 depend on more than what is chosen. Where the order of devices decides,
`Likeness` exchanges only neighbours. Lists under matchAttribute remember devices that were tried
in vain, as a set of members that only gets smaller until nothing is chosen under the constraint.
So a dead end is remembered together with what it left behind, a twin is one only if the sets
were the same, and bounds are asked where no device could make them smaller: elsewhere the walk
has to go on, though in vain, for what it leaves behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.allocation.demand.constraints import MatchState
from dryrack.allocation.demand.open_requests import Demand, Question
from dryrack.allocation.demand.requests import RESULTS_MAX
from dryrack.allocation.proof.bounds import Bounds
from dryrack.allocation.proof.problem_facts import (
    Survey,
    claims_after_the_first,
    compares_neighbours,
)
from dryrack.allocation.proof.symmetry import Likeness
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
    """Knows, for one problem that was surveyed, what need not be searched."""

    def __init__(self, survey: Survey) -> None:
        problem = survey.problem
        self._problem = problem
        self._survey = survey
        self._requests = problem.requests
        self._likeness = Likeness(problem, survey.slates)
        self._ordered = self._likeness
        if survey.last_ordered >= 0:
            self._ordered = Likeness(problem, survey.slates, self._devices_in_order())
        self._bounds = Bounds(problem, self._likeness)
        # Whether the walk may be cut below its root.
        self.cuts = not (survey.odd_amounts() or survey.repeats_names())
        self._plans: dict[tuple[int, frozenset[int]], Sequence[Group] | None] = {}
        # What has to be free for the mine of an ask for "all" devices to go off.
        self._traps = {
            id(way): way.all_devices[: survey.safe[id(way)] + 1]
            for way in survey.slates
            if way.ask.takes_all and not way.ask.admin and survey.has_mine(way)
        }
        self._dead: dict[Hashable, tuple[Ending, tuple[Values | None, ...]]] = {}
        self._settled: dict[tuple[int, Values], bool] = {}

    def refuted(self) -> bool:
        """Whether the bounds alone show that there is nothing to find, and no error either."""
        if not self._requests:
            return False
        # Nothing is held yet, so nothing is shut.
        root = Question(None, self.plan(0) or ())
        return self._bounds.impossible(Walk(self._problem), root)

    def claims_alone(self) -> Iterator[Walk]:
        """
        For each claim after the first a walk in which nothing is chosen before it.

        If one of them fails, what is chosen before need not be varied: there is nothing to find,
        and no error before it either. Only where lists remember what was tried in vain, a device
        that is out of the way may help.
        """
        if not self.cuts or self._survey.traced:
            return
        for requests in claims_after_the_first(self._requests):
            if not any(self._survey.mined[: requests.stop]):
                yield Walk(self._problem, self, within=requests)

    # What the walk asks.

    def foreseen(self, walk: Walk, frame: Frame) -> Ending | None:
        if self._begins_nothing(frame):
            return None
        if self._exceeds(walk, frame):
            return Ending.FAILED
        if frame.key is None:
            frame.key = self.key(walk, frame)
        known = self._dead.get(frame.key)
        if known is not None:
            return self._repeated(walk, frame, *known)
        barren = self._may_cut(walk, frame) and self._barren(walk, frame)
        return Ending.FAILED if barren else None

    def ended(self, walk: Walk, frame: Frame, ending: Ending) -> None:
        if frame.key is not None and len(self._dead) < _DEAD_ENDS_MAX:
            self._dead[frame.key] = ending, self._traces(walk, frame)

    def twin_key(self, walk: Walk, frame: Frame, device: int) -> Hashable:
        twin = self._like(frame.slate.request).twin_key(walk, frame, device)
        return (twin, self._traces(walk, frame)) if self._survey.traced else twin

    def _begins_nothing(self, frame: Frame) -> bool:
        """Whether nothing changed since the request was entered."""
        return frame.slot == 0 and len(self._requests[frame.slate.request]) == 1

    def _exceeds(self, walk: Walk, frame: Frame) -> bool:
        """Whether a claim will come to more results than allowed, however devices are chosen."""
        slate = frame.slate
        survey = self._survey
        if slate.claim in survey.mined_claims or survey.delicate[slate.claim]:
            return False
        least = survey.least_after[slate.request]
        if frame.slot >= 0:
            ways = self._requests[slate.request]
            least += slate.count - frame.slot - max(0, min(way.count for way in ways))
        return walk.counts[slate.claim] + least > RESULTS_MAX

    def key(self, walk: Walk, frame: Frame) -> Hashable:
        slate = frame.slate
        request = frame.slate.request
        own = slate.name_of if frame.slot >= 0 else -1
        ruled_by = self._survey.ruled_by[request]
        states = tuple([walk.states[number].key(own) for number in ruled_by])
        results = walk.counts[slate.claim] if self._survey.can_exceed[slate.claim] else 0
        if frame.slot < 0:
            return request, results, states, self._like(request).choices(walk, request)
        choices = self._like(request).choices_from(walk, slate, frame.cursor)
        return request, slate.sub, frame.slot, frame.cursor, results, states, choices

    def _like(self, request: int) -> Likeness:
        return self._ordered if request <= self._survey.last_ordered else self._likeness

    def _devices_in_order(self) -> set[int]:
        slates = self._survey.slates
        if not self._survey.traced:
            slates = [slate for slate in slates if compares_neighbours(self._problem, slate)]
        return {device for slate in slates for device in slate.order}

    # What follows from the rules alone.

    def _may_cut(self, walk: Walk, frame: Frame) -> bool:
        """Whether it is known how the frame ends, and what it leaves behind, if it is in vain."""
        slate = frame.slate
        survey = self._survey
        if survey.delicate[slate.claim]:
            most = survey.most_after[slate.request]
            if frame.slot >= 0:
                ways = self._requests[slate.request]
                most += slate.count - frame.slot - max(way.count for way in ways)
            if walk.counts[slate.claim] + most > RESULTS_MAX:
                return False
        return all(self._is_settled(walk, number) for number in self._traced_by(slate.request))

    def _barren(self, walk: Walk, frame: Frame) -> bool:
        if frame.slot >= 0 and self._survey.has_mine(frame.slate):
            return False
        question = self._question(walk, frame)
        return question is None or self._bounds.impossible(walk, question)

    def _question(self, walk: Walk, frame: Frame) -> Question | None:
        """
        What is demanded below the frame up to the next mine.

        None, if that is more than there can be.
        """
        slate = frame.slate
        request = frame.slate.request
        slot = frame.slot
        later = self.plan(request if slot < 0 else request + 1, self._shut(walk))
        if later is None:
            return None
        now = Demand(request, (slate,), slate.count - slot, frame.cursor) if slot >= 0 else None
        return Question(now, later)

    def _shut(self, walk: Walk) -> frozenset[int]:
        """
        The ways to ask for "all" devices that fail before the mine goes off.

        The mine, or a device before it, is held.
        """
        holds = walk.holds
        return frozenset(
            way for way, reached in self._traps.items() if any(map(holds.__getitem__, reached))
        )

    def plan(self, request: int, shut: frozenset[int] = frozenset()) -> Sequence[Group] | None:
        """
        What is demanded from this request up to the next mine.

        Some ways to ask for "all" devices are shut; None, if a request has no other.
        """
        key = request, shut
        if key not in self._plans:
            demands = self._later(request, shut)
            self._plans[key] = None if demands is None else self._bounds.plan(demands)
        return self._plans[key]

    def _later(self, request: int, shut: frozenset[int]) -> list[Demand] | None:
        """What requests need from this one up to the next mine."""
        demands: list[Demand] = []
        for number in range(request, len(self._requests)):
            ways = tuple(way for way in self._requests[number] if id(way) not in shut)
            if not ways:
                return None
            if any(map(self._survey.has_mine, ways)):
                return [*demands, *self._before_mine(number, ways)]
            need = min(_need(way) for way in ways)
            if need > 0:
                demands.append(Demand(number, ways, need))
        return demands

    def _before_mine(self, number: int, ways: tuple[RequestRow, ...]) -> Iterator[Demand]:
        """Until a constraint can break, "all" fails like any other request."""
        safe = self._survey.safe.get(id(ways[0]))
        if len(ways) == 1 and safe:
            yield Demand(number, ways, safe, 0, safe)

    # Lists that remember.

    def _traced_by(self, request: int) -> Iterator[int]:
        traced = self._survey.traced
        return (number for number in self._survey.ruled_by[request] if number in traced)

    def _traces(self, walk: Walk, frame: Frame) -> tuple[Values | None, ...]:
        if not self._survey.traced:
            return ()
        return tuple(_remembered(walk, number) for number in self._traced_by(frame.slate.request))

    def _repeated(
        self, walk: Walk, frame: Frame, ending: Ending, traces: tuple[Values | None, ...]
    ) -> Ending:
        for number, shared in zip(self._traced_by(frame.slate.request), traces, strict=True):
            state = walk.states[number]
            if shared is not None and isinstance(state, MatchState):
                state.shared = shared
        return ending

    def _is_settled(self, walk: Walk, number: int) -> bool:
        """Whether no device can narrow down what the constraint's devices have in common."""
        shared = _remembered(walk, number)
        if shared is None or len(shared) == 1:
            return True
        known = self._settled.get((number, shared))
        if known is None:
            members = self._problem.columns[number].members
            known = all(each >= shared or each.isdisjoint(shared) for each in members)
            self._settled[number, shared] = known
        return known


def _remembered(walk: Walk, number: int) -> Values | None:
    state = walk.states[number]
    return state.shared if isinstance(state, MatchState) and state.count else None


def _need(way: RequestRow) -> int:
    # "All" of nothing fails; one device that nobody has says the same.
    return 1 if way.ask.takes_all and not way.all_devices else way.count
