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
has to go on, though in vain, for what it leaves behind. That little can be exchanged there is
made up for by a relaxed walk: see `relaxation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.allocation.bounds import Bounds
from dryrack.allocation.constraints import MatchState
from dryrack.allocation.demands import Demand
from dryrack.allocation.likeness import Likeness
from dryrack.allocation.relaxation import Relaxation, RelaxedWalk
from dryrack.allocation.requests import RESULTS_MAX
from dryrack.allocation.search import Ending, Walk
from dryrack.allocation.survey import Survey, claims_after_the_first, compares_neighbours

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from dryrack.allocation.constraints import Values
    from dryrack.allocation.demands import Group
    from dryrack.allocation.problem import Problem, Slate
    from dryrack.allocation.search import Frame

# Dead ends are strings of some hundred bytes; this bounds them to about a hundred megabytes.
_DEAD_ENDS_MAX = 300_000

# A claim that is hopeless by itself mostly is so at once.
_ALONE_DEAD_ENDS_MAX = 100


class RelaxedProof:
    """Knows what need not be searched where only choices count, not their order."""

    def __init__(self, survey: Survey, likeness: Likeness, bounds: Bounds) -> None:
        self._survey = survey
        self._requests = survey.problem.requests
        self._likeness = likeness
        self._bounds = bounds
        self._plans: dict[int, Sequence[Group]] = {}
        self._dead: dict[Hashable, tuple[Ending, tuple[Values | None, ...]]] = {}

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
        return self._like(frame.slate.request).twin_key(walk, frame, device)

    def _begins_nothing(self, frame: Frame) -> bool:
        """Whether nothing changed since the request was entered."""
        return frame.slot == 0 and len(self._requests[frame.slate.request]) == 1

    def _exceeds(self, walk: Walk, frame: Frame) -> bool:
        """Whether a claim will come to more results than allowed, however devices are chosen."""
        slate = frame.slate
        if frame.slot >= 0 or slate.claim in self._survey.mined_claims:
            return False
        return walk.counts[slate.claim] + self._survey.least_after[slate.request] > RESULTS_MAX

    def key(self, walk: Walk, frame: Frame) -> Hashable:
        slate, request = frame.slate, frame.slate.request
        own = slate.name_of if frame.slot >= 0 else -1
        ruled_by = self._survey.ruled_by[request]
        states = tuple([walk.states[number].key(own) for number in ruled_by])
        results = walk.counts[slate.claim] if self._survey.can_exceed[slate.claim] else 0
        if frame.slot < 0:
            return request, results, states, self._like(request).choices(walk, request)
        choices = self._like(request).choices_from(walk, slate, frame.cursor)
        return request, slate.sub, frame.slot, frame.cursor, results, states, choices

    def _like(self, request: int) -> Likeness:
        return self._likeness

    # What follows from the rules alone.

    def _traces(self, walk: Walk, frame: Frame) -> tuple[Values | None, ...]:
        """What constraints remember of devices that were tried in vain."""
        return ()

    def _repeated(
        self, walk: Walk, frame: Frame, ending: Ending, traces: tuple[Values | None, ...]
    ) -> Ending:
        """Leave the walk as it was left when the same was walked through before."""
        return ending

    def _may_cut(self, walk: Walk, frame: Frame) -> bool:
        return True

    def _barren(self, walk: Walk, frame: Frame) -> bool:
        slate, request = frame.slate, frame.slate.request
        if frame.slot < 0:
            if self._blocked(walk, request):
                return True
            return self._bounds.impossible(walk, None, self.plan(request))
        if self._survey.mined[request] and self._survey.has_mine(slate):
            return False
        now = Demand(request, (slate,), slate.count - frame.slot, frame.cursor)
        return self._bounds.impossible(walk, now, self.plan(request + 1))

    def _blocked(self, walk: Walk, request: int) -> bool:
        """
        Whether the next mine is one of "all" devices, and it or a device before it is held.

        Then the request fails before the mine goes off.
        """
        mine = self._survey.horizon[request]
        if mine == len(self._requests) or len(self._requests[mine]) > 1:
            return False
        [way] = self._requests[mine]
        if not way.ask.takes_all or way.ask.admin:
            return False
        reached = self._survey.safe[id(way)] + 1
        return any(walk.holds[device] for device in way.all_devices[:reached])

    def plan(self, request: int) -> Sequence[Group]:
        """What is demanded from this request up to the next mine; it never changes."""
        plan = self._plans.get(request)
        if plan is None:
            plan = self._plans[request] = self._bounds.plan(self._later(request))
        return plan

    def _later(self, request: int) -> Iterator[Demand]:
        """What requests need from this one up to the next mine."""
        horizon, safe = self._survey.horizon, self._survey.safe
        end = horizon[request] if request < len(horizon) else request
        for number in range(request, end):
            ways = self._requests[number]
            need = min(_need(way) for way in ways)
            if need > 0:
                yield Demand(number, ways, need)
        if end < len(self._requests) and len(self._requests[end]) == 1:
            [way] = self._requests[end]
            if way.ask.takes_all and safe[id(way)]:
                # Until a constraint can break, "all" fails like any other request.
                yield Demand(end, (way,), safe[id(way)], 0, safe[id(way)])


class SearchProof(RelaxedProof):
    """Knows, for one problem, what need not be searched. Completes the problem's table."""

    def __init__(self, problem: Problem) -> None:
        survey = Survey(problem)
        plain = Likeness(problem, survey.slates)
        super().__init__(survey, plain, Bounds(problem, plain))
        self._problem = problem
        # Whether the walk may be cut below its root.
        self.cuts = not (survey.odd_amounts() or survey.repeats_names())
        self._ordered = plain
        self._relaxed: RelaxedProof = self
        self._relaxation: Relaxation | None = None
        self._settled: dict[tuple[int, Values], bool] = {}
        if survey.last_ordered >= 0:
            self._ordered = Likeness(problem, survey.slates, self._devices_in_order())
            self._relaxed = RelaxedProof(survey, plain, self._bounds)
            self._relaxation = Relaxation(survey, self._relaxed)

    def refuted(self) -> bool:
        """Whether the bounds alone show that there is nothing to find, and no error either."""
        if not self._problem.requests:
            return False
        return self._bounds.impossible(Walk(self._problem), None, self.plan(0)) or (
            self.cuts and any(map(self._refuted_alone, self._claims_before_mines()))
        )

    def _claims_before_mines(self) -> Iterator[range]:
        """The requests of each claim after the first, as long as none so far has a mine."""
        for requests in claims_after_the_first(self._requests):
            if not any(self._survey.mined[: requests.stop]):
                yield requests

    def _refuted_alone(self, requests: range) -> bool:
        """
        Whether these requests have no solution even if nothing is chosen before them.

        Then what is chosen before them need not be varied.
        """
        walk = RelaxedWalk(self._survey, self._relaxed, within=requests)
        return walk.run(_ALONE_DEAD_ENDS_MAX) is Ending.FAILED

    # Where order decides.

    def _devices_in_order(self) -> set[int]:
        slates = self._survey.slates
        if not self._survey.traced:
            slates = [slate for slate in slates if compares_neighbours(self._problem, slate)]
        return {device for slate in slates for device in slate.order}

    def _like(self, request: int) -> Likeness:
        return self._ordered if request <= self._survey.last_ordered else self._likeness

    def twin_key(self, walk: Walk, frame: Frame, device: int) -> Hashable:
        twin = super().twin_key(walk, frame, device)
        return (twin, self._traces(walk, frame)) if self._survey.traced else twin

    def _exceeds(self, walk: Walk, frame: Frame) -> bool:
        return not self._survey.delicate[frame.slate.claim] and super()._exceeds(walk, frame)

    def _may_cut(self, walk: Walk, frame: Frame) -> bool:
        """Whether it is known how the frame ends, and what it leaves behind, if it is in vain."""
        slate, survey = frame.slate, self._survey
        if survey.delicate[slate.claim]:
            most = survey.most_after[slate.request]
            if frame.slot >= 0:
                most += slate.count - frame.slot - max(w.count for w in self._ways(slate))
            if walk.counts[slate.claim] + most > RESULTS_MAX:
                return False
        return all(self._is_settled(walk, number) for number in self._traced_by(slate.request))

    def _ways(self, slate: Slate) -> Sequence[Slate]:
        return self._requests[slate.request]

    def _barren(self, walk: Walk, frame: Frame) -> bool:
        if super()._barren(walk, frame):
            return True
        if self._relaxation is None or frame.slate.request > self._survey.last_ordered:
            return False
        return self._relaxation.barren(walk, frame, self._relaxed.key)

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


def _need(way: Slate) -> int:
    # "All" of nothing fails; one device that nobody has says the same.
    return 1 if way.ask.takes_all and not way.all_devices else way.count
