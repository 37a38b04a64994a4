"""
The cycle of a gang: it waits for its members, is decided whole, and is written as one plan.

Nothing is written before the decision is whole, so no other client ever sees devices that are held
by a gang which is not going to run. What a plan could not finish is taken up again from what the
cluster shows, as after a restart: members that wait are placed beside those that are bound, with
what is reserved for them, then without it. If that is not possible, the gang is dissolved: its
bound members are deleted and told why, because half a gang keeps what it cannot use.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from dryrack.client.endpoints import PODS
from dryrack.client.errors import ApiError, NotFoundError, TransportError
from dryrack.client.informer import name_of
from dryrack.client.timekeeping import seconds_of
from dryrack.placement import (
    Dialect,
    Flaw,
    GangPlaced,
    GangRefused,
    Member,
    Unfinished,
    place_gang,
)
from dryrack.scheduler.binding import REFUSALS, OvertakenError
from dryrack.scheduler.claims import UnusableClaimError
from dryrack.scheduler.claims.stale_claims import free, in_the_way, let_go
from dryrack.scheduler.cluster_view import helped_by_changes
from dryrack.scheduler.commits import Decided
from dryrack.scheduler.demands import Demands, Waiting, demands
from dryrack.scheduler.metering import Result
from dryrack.scheduler.post_filter import Help
from dryrack.scheduler.reporting import UntoldError, scheduler_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw
    from dryrack.placement import Gang, GangKey, Profile
    from dryrack.scheduler.binding import Binder
    from dryrack.scheduler.cluster_view import View
    from dryrack.scheduler.commits import Commits
    from dryrack.scheduler.gang_table import GangState, GangTable
    from dryrack.scheduler.group_objects import GroupObjects
    from dryrack.scheduler.metering import GangMeter
    from dryrack.scheduler.plan_watermark import PlanWatermark
    from dryrack.scheduler.post_filter import PostFilter
    from dryrack.scheduler.queue import SchedulingQueue, Unit
    from dryrack.scheduler.reporting import Reporter
    from dryrack.scheduler.searches import LongSearches

# Members of one gang are created one after the other; nobody is told that some are missing before
# no further one came for this long.
GATHERING_SECONDS = 1.0
_logger = logging.getLogger(__name__)

# Another scheduler may be about to finish what looks unfinished here.
FINISHING_SECONDS = 5.0
# What the coscheduling plugin waits for a gang, if nobody says otherwise.
TIMEOUT_SECONDS = 60


class _Report(Enum):
    """How members learn that their gang is not placed."""

    REFUSAL = auto()
    ERROR = auto()
    NONE = auto()
    """As in kube-scheduler, whose PreEnqueue holds pods back without a word."""


@dataclass(frozen=True, slots=True)
class _Waits:
    """Why nothing is decided yet; it is reported if there is a message."""

    message: str = ""
    claim: str = ""
    report: _Report = _Report.REFUSAL


@dataclass(frozen=True, slots=True)
class _Placed:
    """The members that are to be bound."""

    decided: tuple[Decided, ...]


_Outcome = _Placed | _Waits | GangRefused


class GangCycle:
    """Decides about gangs and carries it out; the queue hands each gang to one worker at a time."""

    def __init__(
        self,
        table: GangTable,
        view: View,
        *,
        groups: GroupObjects,
        client: Client,
        clock: Timekeeper,
        binder: Binder,
        commits: Commits,
        queue: SchedulingQueue[Unit],
        searches: LongSearches,
        reporter: Reporter,
        profiles: Mapping[str, Profile],
        deciding: asyncio.Lock,
        post_filter: PostFilter,
        meter: GangMeter,
        watermark: PlanWatermark,
    ) -> None:
        self._table = table
        self._groups = groups
        self._view = view
        self._client = client
        self._clock = clock
        self._binder = binder
        self._commits = commits
        self._queue = queue
        self._searches = searches
        self._reporter = reporter
        self._profiles = profiles
        self._deciding = deciding
        self._post_filter = post_filter
        self._meter = meter
        self._watermark = watermark

    def changed(self, key: GangKey) -> None:
        """
        A member, or what defines the gang, has changed.

        While members are still missing it is not looked at for each that comes, and once it is
        whole they are pods like any others.
        """
        self._watermark.seen(self._table.newest_plan)
        if key in self._table.whole:
            return
        if self._table.is_complete(key) or key in self._table.unfinished:
            self._queue.add(key)
        else:
            self._queue.add_after(key, GATHERING_SECONDS)

    async def schedule(self, key: GangKey) -> None:
        """One attempt; raises what another attempt may put right."""
        try:
            await self._attempt(key)
        except (OvertakenError, UnusableClaimError, *REFUSALS) as error:
            await self._groups.failed(key, str(error))
            raise

    async def _attempt(self, key: GangKey) -> None:
        await self._watermark.known()
        async with self._deciding:
            state = self._table.state(key, self._post_filter.leaving())
            if state is None:
                self._queue.drop(key)
                self._searches.forget(key)
                self._post_filter.done(key)
                self._meter.gone(key)
            outcome = None
            if state is not None and self._is_ours(key, state):
                self._meter.began(key, scheduler_of((*state.pending, *state.bound)[0]))
                state, outcome = await self._outcome(key, state)
        if key in self._table.whole:
            self._meter.gone(key)
            await self._groups.scheduled(key)
        if state is None or outcome is None:
            return
        # Whatever stands in the books because of it does so before anything is awaited.
        if isinstance(outcome, _Placed):
            await self._carry_out(key, state, outcome.decided)
        elif isinstance(outcome, GangRefused):
            await self._refused(key, state, outcome)
        else:
            if outcome.claim:
                self._queue.park_for(key, outcome.claim)
            if outcome.message:
                await self._give_up(key, state, outcome.message, outcome.report)

    async def _refused(self, key: GangKey, state: GangState, outcome: GangRefused) -> None:
        """The gang waits; others may have to go for it."""
        for each in outcome.lacking:
            stale = in_the_way(each.member, each)
            if stale:
                await free(stale, each.member.pod, view=self._view, binder=self._binder)
        found = self._help(key, state, outcome)
        self._view.hope(key, state.pending)
        if found.keeps_seconds is None:
            self._queue.park_backed_off(key, helped_by_changes(state.pending, outcome))
        else:
            # What becomes free has to come to it before others.
            self._queue.park(key)
            self._queue.add_after(key, found.keeps_seconds)
        if found.preemption is not None:
            await self._post_filter.evict(key, found.preemption, state.pending)
        is_error = any(each.is_error for each in outcome.lacking)
        message = self._in_time(key, state, found.beside(outcome.message))
        await self._give_up(key, state, message, _Report.ERROR if is_error else _Report.REFUSAL)

    def _help(self, key: GangKey, state: GangState, outcome: GangRefused) -> Help:
        gang = state.gang
        found = self._members(key, state)
        if isinstance(gang, Flaw) or isinstance(found, _Waits):
            return Help()
        return self._post_filter.for_gang(
            gang,
            tuple(member for member, _, _ in found.values()),
            tuple(map(name_of, state.bound)),
            self._table.rank(key),
            profile=self._profiles[scheduler_of(state.pending[0])],
            refused=outcome,
        )

    def _is_ours(self, key: GangKey, state: GangState) -> bool:
        """Whether there is something to do for this scheduler, or to find out."""
        left = () if key in self._table.whole else state.bound
        return any(map(self._reporter.speaks_for, (*state.pending, *left)))

    async def _outcome(self, key: GangKey, state: GangState) -> tuple[GangState, _Outcome | None]:
        """What is to become of the gang; nothing yet, if that takes a long search."""
        while True:
            if state.bound and self._groups.was_scheduled(key):
                self._table.whole.add(key)
            self._table.judge(key, state, self._watermark.is_open)
            if key in self._table.whole:
                for raw in state.pending:
                    self._queue.add(name_of(raw))
                return state, None
            found = self._members(key, state)
            if isinstance(found, _Waits):
                return state, found
            gang = state.gang
            assert not isinstance(gang, Flaw), "a gang with a flaw waits"
            profile = self._profiles[scheduler_of(state.pending[0])]
            self._post_filter.begin(key, self._table.rank(key), state.pending, profile)
            outcome = place_gang(
                gang,
                tuple(member for member, _, _ in found.values()),
                self._view.cluster,
                profile=profile,
                bound=len(state.bound),
                searches_left=self._searches.left(key),
            )
            if not isinstance(outcome, Unfinished):
                self._searches.forget(key)
                return state, _decided(outcome, found)
            if outcome.search is not None:
                self._searches.wait(key, outcome.search)
                return state, None
            await asyncio.sleep(0)
            current = self._table.state(key, self._post_filter.leaving())
            if current is None:
                return state, None
            state = current

    def _members(
        self, key: GangKey, state: GangState
    ) -> dict[str, tuple[Member, Raw, Demands]] | _Waits:
        """The members that can be placed, if they are enough."""
        gang = state.gang
        if isinstance(gang, Flaw):
            return _Waits(gang.message)
        names = {scheduler_of(raw) for raw in state.pending}
        if len(names) > 1:
            named = ", ".join(sorted(names))
            return _Waits(
                f"{key}: its pods name different schedulers: {named}; give all of them the same "
                f"spec.schedulerName"
            )
        if gang.too_few:
            return self._gathering(key, gang)
        found: dict[str, tuple[Member, Raw, Demands]] = {}
        waits: Waiting | None = None
        for raw in state.pending:
            wanted = demands(state.pods[name_of(raw)], self._view)
            if isinstance(wanted, Waiting):
                waits = waits or wanted
                continue
            member = Member(wanted.pod, wanted.unallocated, wanted.allocated, wanted.extended)
            found[member.name] = (member, raw, wanted)
        if waits is not None and len(state.bound) + len(found) < gang.min_count:
            # A claim that has yet to be made is told by a change of its pod.
            report = _Report.NONE if waits.is_gated else _Report.REFUSAL
            return _Waits(f"{key}: {waits.message}" if waits.message else "", waits.claim, report)
        return found

    def _gathering(self, key: GangKey, gang: Gang) -> _Waits:
        left = self._table.grown_at(key) + GATHERING_SECONDS - self._clock.now()
        if left > 0:
            self._queue.add_after(key, left)
            return _Waits()
        return _Waits(gang.too_few)

    async def _carry_out(self, key: GangKey, state: GangState, decided: Sequence[Decided]) -> None:
        try:
            bound = await self._commits.carry_out(decided, self._watermark.plan())
        except UnusableClaimError as error:
            for each in decided:
                await self._reporter.failed(each.raw, error.report)
            raise
        self._post_filter.done(key)
        for assignment in bound.assignments:
            self._table.arrived(assignment.pod)
        assert not isinstance(state.gang, Flaw), "a gang with a flaw is not placed"
        if len(state.bound) + len(bound.assignments) >= state.gang.min_count:
            self._table.whole.add(key)
            self._table.unfinished.pop(key, None)
            self._meter.ended(key, Result.SCHEDULED, len(bound.assignments))
            _logger.info("gang scheduled", extra={"gang": str(key), "pods": len(bound.assignments)})
            await self._groups.scheduled(key)
            for name in self._table.pending(key):
                self._queue.add(name)
            return
        self._table.unfinished.setdefault(key, self._clock.now())
        _, failure = bound.failures[0]
        raise OvertakenError(f"{key}: {len(bound.failures)} pods could not be bound: {failure}")

    async def _give_up(self, key: GangKey, state: GangState, message: str, report: _Report) -> None:
        """Release what is held for a gang that is not placed now, and report why."""
        held = self._reserved(key, state)
        for claim, uids in held:
            await let_go(claim, uids, view=self._view, binder=self._binder)
        if held:
            # What was held may be just what the gang lacks.
            self._queue.add(key)
            return
        if key in self._table.unfinished:
            await self._dissolve(key, state, message)
            return
        if report is _Report.NONE:
            return
        is_error = report is _Report.ERROR
        self._meter.ended(key, Result.ERROR if is_error else Result.UNSCHEDULABLE)
        nominated = self._post_filter.nominated(key)
        untold = None
        try:
            await (self._groups.failed if is_error else self._groups.refused)(key, message)
        except (ApiError, TransportError) as error:
            untold = UntoldError(f"{key}: {error}")
        for raw in filter(self._reporter.speaks_for, state.pending):
            try:
                if is_error:
                    await self._reporter.failed(raw, message)
                else:
                    await self._reporter.refused(raw, message, nominated.get(name_of(raw), ""))
            except UntoldError as error:
                untold = error
        if untold is not None:
            raise untold

    def _in_time(self, key: GangKey, state: GangState, message: str) -> str:
        """The message with what there is to say about the time that the gang has waited."""
        gang = state.gang
        assert not isinstance(gang, Flaw), "a gang with a flaw is not refused"
        timeout = gang.timeout_seconds
        if timeout is None and key.dialect in (Dialect.LABELS, Dialect.COSCHEDULING):
            timeout = TIMEOUT_SECONDS
        if timeout is None:
            return message
        left = seconds_of(gang.created) + timeout - self._clock.now()
        if left > 0:
            self._queue.add_after(key, left)
            return message
        return f"{message.rstrip('.')}. Timed out after {timeout} s; tried again when things change"

    async def _dissolve(self, key: GangKey, state: GangState, message: str) -> None:
        """Half a gang that cannot be finished goes."""
        left = self._table.unfinished[key] + FINISHING_SECONDS - self._clock.now()
        if left > 0:
            self._queue.add_after(key, left)
            return
        number = len(state.bound)
        told = f"{key} cannot start completely; its {number} bound pods are deleted: {message}"
        for raw in filter(self._reporter.speaks_for, state.bound):
            await self._reporter.event(raw, "GangDissolved", told, type="Warning")
            await self._delete(raw)
        for raw in filter(self._reporter.speaks_for, state.pending):
            await self._reporter.refused(raw, told)

    async def _delete(self, pod: Raw) -> None:
        metadata = pod["metadata"]
        try:
            await self._client.delete(
                PODS, metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"]
            )
        except NotFoundError:
            return

    def _reserved(self, key: GangKey, state: GangState) -> list[tuple[Raw, list[str]]]:
        """
        Claims that are held for members that are not bound, each with those members.

        What is held for the group as a whole is held for nobody as long as no member is bound.
        """
        group = None if state.bound else self._groups.object(key)
        found: dict[str, tuple[Raw, list[str]]] = {}
        for raw in state.pending:
            users = [raw, *(() if group is None else (group,))]
            for uid in (each["metadata"]["uid"] for each in users):
                for claim in self._view.held_for(state.pods[name_of(raw)], uid):
                    _, uids = found.setdefault("/".join(name_of(claim)), (claim, []))
                    uids.append(uid)
        return list(found.values())


def _decided(
    outcome: GangPlaced | GangRefused, members: Mapping[str, tuple[Member, Raw, Demands]]
) -> _Placed | GangRefused:
    if isinstance(outcome, GangRefused):
        return outcome
    decided = []
    for each in outcome.placements:
        _, raw, wanted = members[each.member.name]
        decided.append(Decided(raw, wanted, each.node, each.occupant, each.given))
    return _Placed(tuple(decided))
