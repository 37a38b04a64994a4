"""
The scheduling cycle of a gang: wait for its members, decide about all of them, write one plan.

Nothing is written before all members have a node, so that no device is allocated to a gang which
cannot start. If a plan is written only in part, the next attempt starts from the state of the
cluster, as after a restart: it places the pending members beside the bound ones, with the claims
that are reserved for them, then without those. If that is not possible, the gang is dissolved: its
bound members get an event and are deleted, because they would use devices without being able to
work.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
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
    GroupReport,
    Member,
    find_group_problem,
    group_texts,
    place_gang,
    report_group,
)
from dryrack.scheduler.binding import REFUSALS, OvertakenError
from dryrack.scheduler.binding_cycle import Decision
from dryrack.scheduler.binding_plugins import RejectionError
from dryrack.scheduler.claims import UnusableClaimError
from dryrack.scheduler.claims.stale_claims import (
    find_stale_claim,
    release_claim,
    release_stale_claim,
)
from dryrack.scheduler.demands import Demands, Waiting, collect_demands
from dryrack.scheduler.metering import Result
from dryrack.scheduler.post_filter import PostFilterResult
from dryrack.scheduler.reporting import ReportError, scheduler_of
from dryrack.scheduler.scheduler_cache import find_helpful_changes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.releases import GroupTexts
    from dryrack.placement import Gang, GangKey, Profile
    from dryrack.scheduler.binding import Binder
    from dryrack.scheduler.binding_cycle import BindingCycle
    from dryrack.scheduler.gang_table import GangState, GangTable
    from dryrack.scheduler.group_objects import GroupObjects
    from dryrack.scheduler.metering import GangMeter
    from dryrack.scheduler.plan_watermark import PlanWatermark
    from dryrack.scheduler.post_filter import PostFilter
    from dryrack.scheduler.queue import SchedulingQueue, Unit
    from dryrack.scheduler.reporting import Reporter
    from dryrack.scheduler.scheduler_cache import SchedulerCache
    from dryrack.scheduler.searches import LongSearches

# Members of one gang are created one after the other; missing members are reported only after no
# further one was created for this long.
GATHERING_SECONDS = 1.0
_logger = logging.getLogger(__name__)

# Another scheduler may be about to bind the rest of a gang that is bound only in part.
FINISHING_SECONDS = 5.0
# The timeout of the coscheduling plugin for a gang that sets none.
TIMEOUT_SECONDS = 60


class _Report(Enum):
    """The kind of report to members whose gang is not placed."""

    UNSCHEDULABLE = auto()
    ERROR = auto()
    NONE = auto()
    """As in kube-scheduler, whose PreEnqueue holds pods back without a report."""


@dataclass(frozen=True, slots=True)
class _Waits:
    """The reason why nothing can be decided yet; it is reported if there is a message."""

    message: str = ""
    claim: str = ""
    report: _Report = _Report.UNSCHEDULABLE


@dataclass(frozen=True, slots=True)
class _Placed:
    """The members that are to be bound, with their nodes."""

    decisions: tuple[Decision, ...]


_Outcome = _Placed | _Waits | GangRefused


class GangCycle:
    """Schedules gangs; the queue gives each gang to one worker at a time."""

    def __init__(
        self,
        table: GangTable,
        cache: SchedulerCache,
        *,
        groups: GroupObjects,
        client: Client,
        clock: Timekeeper,
        binder: Binder,
        binding_cycle: BindingCycle,
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
        self._cache = cache
        self._client = client
        self._clock = clock
        self._binder = binder
        self._binding_cycle = binding_cycle
        self._queue = queue
        self._searches = searches
        self._reporter = reporter
        self._profiles = profiles
        self._deciding = deciding
        self._post_filter = post_filter
        self._meter = meter
        self._watermark = watermark

    def on_change(self, key: GangKey) -> None:
        """
        Queue a gang after a change of a member or of its definition.

        A gang whose members are still being created is not tried for each of them, and pods that
        are added to a complete gang are scheduled one by one.
        """
        self._watermark.note_plan(self._table.newest_plan)
        if key in self._table.complete:
            return
        if self._table.has_enough_members(key) or key in self._table.unfinished:
            self._queue.add(key)
        else:
            self._queue.add_after(key, GATHERING_SECONDS)

    async def schedule(self, key: GangKey) -> None:
        """Make one attempt; raise an error that another attempt may correct."""
        try:
            await self._attempt(key)
        except (OvertakenError, UnusableClaimError, *REFUSALS) as error:
            await self._groups.report_error(key, str(error))
            raise

    async def _attempt(self, key: GangKey) -> None:
        """Decide about all members, then bind them as one plan, or report why they wait."""
        await self._watermark.load()
        async with self._deciding:
            state = self._table.state(key, self._post_filter.victims())
            if state is None:
                self._queue.drop(key)
                self._searches.forget(key)
                self._post_filter.forget(key)
                self._meter.remove(key)
            outcome = None
            if state is not None and self._is_responsible_for(key, state):
                scheduler = scheduler_of((*state.pending, *state.bound)[0])
                self._meter.start_attempt(key, scheduler)
                state, outcome = await self._decide(key, state)
        if key in self._table.complete:
            self._meter.remove(key)
            await self._groups.report_scheduled(key)
        if state is None or outcome is None:
            return
        # The cache shows the decision before anything is awaited: see the steps of `BindingCycle`.
        if isinstance(outcome, _Placed):
            await self._bind(key, state, outcome.decisions)
        elif isinstance(outcome, GangRefused):
            await self._handle_refusal(key, state, outcome)
        else:
            if outcome.claim:
                self._queue.park_until_claim(key, outcome.claim)
            if outcome.message:
                await self._release_and_report(key, state, outcome.message, outcome.report)

    def _is_responsible_for(self, key: GangKey, state: GangState) -> bool:
        bound = () if key in self._table.complete else state.bound
        return any(map(self._reporter.is_responsible_for, (*state.pending, *bound)))

    async def _decide(self, key: GangKey, state: GangState) -> tuple[GangState, _Outcome | None]:
        """Return the decision on the gang; None if there is nothing to decide now."""
        while True:
            if state.bound and self._groups.was_scheduled(key):
                self._table.complete.add(key)
            self._table.update_progress(key, state, self._watermark.is_open)
            if key in self._table.complete:
                for raw in state.pending:
                    self._queue.add(name_of(raw))
                return state, None
            members = self._collect_members(key, state)
            if isinstance(members, _Waits):
                return state, members
            gang = state.gang
            assert not isinstance(gang, Flaw), "a gang with a flaw waits"
            profile = self._profiles[scheduler_of(state.pending[0])]
            self._post_filter.begin_attempt(key, self._table.rank(key), state.pending, profile)
            outcome = place_gang(
                gang,
                tuple(member for member, _, _ in members.values()),
                self._cache.cluster,
                profile=profile,
                bound=len(state.bound),
                searches_left=self._searches.searches_left(key),
            )
            if isinstance(outcome, GangPlaced):
                self._searches.forget(key)
                decisions = []
                for each in outcome.placements:
                    _, raw, wanted = members[each.member.name]
                    decisions.append(Decision(raw, wanted, each.node, each.occupant, each.given))
                return state, _Placed(tuple(decisions))
            if isinstance(outcome, GangRefused):
                self._searches.forget(key)
                return state, outcome
            if outcome.search is not None:
                self._searches.wait(key, outcome.search)
                return state, None
            await asyncio.sleep(0)
            current = self._table.state(key, self._post_filter.victims())
            if current is None:
                return state, None
            state = current

    def _collect_members(
        self, key: GangKey, state: GangState
    ) -> dict[str, tuple[Member, Raw, Demands]] | _Waits:
        """Return the members that can be placed, if they are enough."""
        gang = state.gang
        if isinstance(gang, Flaw):
            return _Waits(gang.message)
        texts = self._group_texts(key)
        if texts is not None:
            pods = [state.pods[name_of(raw)] for raw in (*state.pending, *state.bound)]
            problem = find_group_problem(texts, gang, pods)
            if problem:
                return _Waits(problem, report=_Report.ERROR)
        names = {scheduler_of(raw) for raw in state.pending}
        if len(names) > 1:
            schedulers = ", ".join(sorted(names))
            return _Waits(
                f"{key}: its pods name different schedulers: {schedulers}; give all of them the "
                f"same spec.schedulerName"
            )
        if gang.too_few:
            left = self._table.grown_at(key) + GATHERING_SECONDS - self._clock.now()
            if left > 0:
                self._queue.add_after(key, left)
                return _Waits()
            return _Waits(gang.too_few)
        members: dict[str, tuple[Member, Raw, Demands]] = {}
        waits: Waiting | None = None
        for raw in state.pending:
            wanted = collect_demands(state.pods[name_of(raw)], self._cache)
            if isinstance(wanted, Waiting):
                waits = waits or wanted
                continue
            member = Member(wanted.pod, wanted.unallocated, wanted.allocated, wanted.extended)
            members[member.name] = (member, raw, wanted)
        if waits is not None and len(state.bound) + len(members) < gang.min_count:
            # If a claim has yet to be created, its pod changes once that is done.
            report = _Report.NONE if waits.is_gated else _Report.UNSCHEDULABLE
            return _Waits(f"{key}: {waits.message}" if waits.message else "", waits.claim, report)
        return members

    async def _bind(self, key: GangKey, state: GangState, decisions: Sequence[Decision]) -> None:
        try:
            bound = await self._binding_cycle.run(decisions, self._watermark.mark_plan())
        except UnusableClaimError as error:
            for each in decisions:
                await self._reporter.report_error(each.raw, error.report)
            raise
        except RejectionError as error:
            # One member is rejected, so none of them is bound.
            if not error.is_retried:
                self._queue.park_backed_off(key, error.changes)
            # Pods that waited for a permission have a nominated node.
            state = self._table.state(key, self._post_filter.victims()) or state
            report = _Report.ERROR if error.is_error else _Report.UNSCHEDULABLE
            await self._release_and_report(key, state, f"{key}: {error}", report)
            if error.is_retried:
                raise
            return
        self._post_filter.forget(key)
        for assignment in bound.assignments:
            self._table.mark_bound(assignment.pod)
        assert not isinstance(state.gang, Flaw), "a gang with a flaw is not placed"
        if len(state.bound) + len(bound.assignments) >= state.gang.min_count:
            self._table.complete.add(key)
            self._table.unfinished.pop(key, None)
            self._meter.finish_attempt(key, Result.SCHEDULED, len(bound.assignments))
            _logger.info("gang scheduled", extra={"gang": str(key), "pods": len(bound.assignments)})
            await self._groups.report_scheduled(key)
            for name in self._table.pending_members(key):
                self._queue.add(name)
            return
        self._table.unfinished.setdefault(key, self._clock.now())
        _, failure = bound.failures[0]
        raise OvertakenError(f"{key}: {len(bound.failures)} pods could not be bound: {failure}")

    async def _handle_refusal(self, key: GangKey, state: GangState, outcome: GangRefused) -> None:
        """Park a gang that does not fit, after it freed a stale claim or preempted others."""
        for each in outcome.lacking:
            stale = find_stale_claim(each.member, each)
            if stale:
                await release_stale_claim(
                    stale, each.member.pod, cache=self._cache, binder=self._binder
                )
        gang = state.gang
        assert not isinstance(gang, Flaw), "a gang with a flaw is not refused"
        members = self._collect_members(key, state)
        texts = self._group_texts(key)
        result = PostFilterResult()
        if not isinstance(members, _Waits):
            result = self._post_filter.run_for_gang(
                gang,
                tuple(member for member, _, _ in members.values()),
                tuple(map(name_of, state.bound)),
                self._table.rank(key),
                profile=self._profiles[scheduler_of(state.pending[0])],
                refused=outcome,
            )
        self._cache.park_until_pod(key, state.pending)
        if result.reserved_seconds is None:
            profile = self._profiles[scheduler_of(state.pending[0])]
            changes = find_helpful_changes(state.pending, outcome, profile)
            self._queue.park_backed_off(key, changes)
        else:
            # Released capacity has to go to this gang first, so it is tried without back-off.
            self._queue.park(key)
            self._queue.add_after(key, result.reserved_seconds)
        if result.preemption is not None:
            group = None if texts is None else self._groups.find_object(key)
            await self._post_filter.evict(key, result.preemption, state.pending, group)
        report = GroupReport(result.add_to(outcome.message))
        if texts is not None and not isinstance(members, _Waits):
            report = report_group(
                texts,
                gang,
                tuple(member for member, _, _ in members.values()),
                outcome,
                bound=len(state.bound),
                preemption=result.message,
                is_preempting=result.preemption is not None,
            )
        message = self._add_timeout(key, gang, report.message)
        is_error = any(each.is_error for each in outcome.lacking)
        kind = _Report.ERROR if is_error else _Report.UNSCHEDULABLE
        await self._release_and_report(key, state, message, kind, report.pods)

    def _group_texts(self, key: GangKey) -> GroupTexts | None:
        return group_texts(key, self._cache.cluster.fleet.behaviour)

    def _add_timeout(self, key: GangKey, gang: Gang, message: str) -> str:
        """Return the message with that of the gang's timeout; retry the gang when it is over."""
        timeout = gang.timeout_seconds
        if timeout is None and key.dialect in (Dialect.LABELS, Dialect.COSCHEDULING):
            timeout = TIMEOUT_SECONDS
        if timeout is None:
            return message
        left = seconds_of(gang.created) + timeout - self._clock.now()
        if left > 0:
            self._queue.add_after(key, left)
            return message
        message = message.rstrip(".")
        return f"{message}. Timed out after {timeout} s; tried again when things change"

    async def _release_and_report(
        self,
        key: GangKey,
        state: GangState,
        message: str,
        report: _Report,
        of_pods: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """
        Release the claims of pending members, or else report why the gang is not placed.

        `of_pods` are the messages of pods that have another one than the gang, by their names.
        """
        reserved = self._find_reserved_claims(key, state)
        for claim, uids in reserved:
            await release_claim(claim, uids, cache=self._cache, binder=self._binder)
        if reserved:
            # The gang may lack just the devices of these claims.
            self._queue.add(key)
            return
        if key in self._table.unfinished:
            await self._dissolve(key, state, message)
            return
        if report is _Report.NONE:
            return
        is_error = report is _Report.ERROR
        self._meter.finish_attempt(key, Result.ERROR if is_error else Result.UNSCHEDULABLE)
        nodes = self._post_filter.nominated_nodes(key)
        report_group = self._groups.report_error if is_error else self._groups.report_unschedulable
        failure = None
        try:
            await report_group(key, message)
        except (ApiError, TransportError) as error:
            failure = ReportError(f"{key}: {error}")
        for raw in filter(self._reporter.is_responsible_for, state.pending):
            try:
                if is_error:
                    await self._reporter.report_error(raw, message)
                else:
                    node = nodes.get(name_of(raw), "")
                    own = of_pods.get("/".join(name_of(raw)), message)
                    await self._reporter.report_unschedulable(raw, own, node)
            except ReportError as error:
                failure = error
        if failure is not None:
            raise failure

    async def _dissolve(self, key: GangKey, state: GangState, reason: str) -> None:
        """Delete the bound members of a gang that cannot be completed."""
        left = self._table.unfinished[key] + FINISHING_SECONDS - self._clock.now()
        if left > 0:
            self._queue.add_after(key, left)
            return
        number = len(state.bound)
        message = f"{key} cannot start completely; its {number} bound pods are deleted: {reason}"
        for raw in filter(self._reporter.is_responsible_for, state.bound):
            await self._reporter.record_event(raw, "GangDissolved", message, type="Warning")
            metadata = raw["metadata"]
            with suppress(NotFoundError):
                await self._client.delete(
                    PODS, metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"]
                )
        for raw in filter(self._reporter.is_responsible_for, state.pending):
            await self._reporter.report_unschedulable(raw, message)

    def _find_reserved_claims(self, key: GangKey, state: GangState) -> list[tuple[Raw, list[str]]]:
        """
        Return the claims that are reserved for pending members, each with its consumers.

        While no member is bound, they include the claims that are reserved for the whole group.
        """
        group = None if state.bound else self._groups.find_object(key)
        claims: dict[str, tuple[Raw, list[str]]] = {}
        for raw in state.pending:
            consumers = [raw] if group is None else [raw, group]
            for uid in (each["metadata"]["uid"] for each in consumers):
                for claim in self._cache.claims_reserved_for(state.pods[name_of(raw)], uid):
                    _, uids = claims.setdefault("/".join(name_of(claim)), (claim, []))
                    uids.append(uid)
        return list(claims.values())
