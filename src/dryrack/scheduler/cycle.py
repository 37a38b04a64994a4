"""
The cycle of the plain scheduler: one pod at a time is decided, many are written at once.

A decision is made on one state of the cluster, and its promises are in the books before the next
one begins. What it takes to come to one may be long: that is done in turns, between other work,
each of which begins with the cluster as it is (see `placement.decide`); for a long search the pod
steps aside (see `searches`). What cannot be placed waits until something changes that could help.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from dryrack.allocation import LiveAllocator
from dryrack.client.endpoints import TAINT_RULES
from dryrack.client.errors import ApiError, ForbiddenError, NotFoundError, TransportError
from dryrack.client.informer import Informers, Name, name_of
from dryrack.client.supervision import current_component
from dryrack.client.timekeeping import sleep
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.raw import Raw
from dryrack.placement import (
    NATIVE_DIALECTS,
    Flaw,
    GangKey,
    Membership,
    Occupant,
    Placed,
    Unfinished,
    Unplaced,
    decide,
    place_on,
)
from dryrack.scheduler.binding import REFUSALS, Binder, OvertakenError
from dryrack.scheduler.claims import UnusableClaimError
from dryrack.scheduler.claims.binding_conditions import BindingConditions
from dryrack.scheduler.claims.stale_claims import free, in_the_way, let_go
from dryrack.scheduler.claims.volume_binding import VolumeBinding
from dryrack.scheduler.cluster_view import View, helped_by_changes
from dryrack.scheduler.commits import Commits, Decided
from dryrack.scheduler.coscheduling import CoschedulingStatuses
from dryrack.scheduler.demands import Demands, Waiting, demands
from dryrack.scheduler.gang_cycle import GangCycle
from dryrack.scheduler.gang_table import GangTable
from dryrack.scheduler.group_objects import GroupObjects
from dryrack.scheduler.metering import GangMeter, Result, SchedulingMeter
from dryrack.scheduler.plan_watermark import PlanWatermark
from dryrack.scheduler.post_filter import Help, PostFilter
from dryrack.scheduler.preemption import Evictions
from dryrack.scheduler.queue import Rank, SchedulingQueue, Unit
from dryrack.scheduler.reporting import Reporter, UntoldError, scheduler_of
from dryrack.scheduler.searches import LongSearches
from dryrack.scheduler.settings import SchedulerSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.base.metrics import Registry
    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.placement import Profile

_Decision = tuple[Raw, Demands | Waiting, Placed | Unplaced | None]

_logger = logging.getLogger(__name__)

_ASK_AGAIN_SECONDS = 1.0
# Writes in flight: enough to hide the time each of them waits, few enough to be undone quickly.
BINDINGS_MAX = 32


class Scheduler:
    """An engine: built, then run until it is cancelled."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Timekeeper,
        chance: Chance,
        informers: Informers | None = None,
        allocator: LiveAllocator | None = None,
        settings: SchedulerSettings | None = None,
        metrics: Registry | None = None,
    ) -> None:
        """
        `informers` are somebody else's, who runs them; else it has its own.

        `allocator` hands devices out, if not as the reference release does. What is done is
        counted in `metrics`.
        """
        settings = settings or SchedulerSettings()
        self._client = client
        self._clock = clock
        self._meter, self._gang_meter = SchedulingMeter(clock, metrics), GangMeter(clock, metrics)
        self._profiles = settings.profiles
        self._reporter = Reporter(client, clock, chance, names=self._profiles, meter=self._meter)
        binder = self._binder = Binder(client, clock)
        self._own = None if informers else Informers(client, clock=clock, chance=chance)
        self._queue: SchedulingQueue[Unit] = SchedulingQueue(
            clock, self._rank_of, settings.backoff_seconds
        )
        self._meter.read_queue(self._pending)
        self._slots = asyncio.Semaphore(BINDINGS_MAX)
        self._deciding = asyncio.Lock()
        self._buggy: set[Unit] = set()
        """Pods and gangs whose last attempt ended in an unexpected exception."""
        self._searches = LongSearches(self._queue.add)
        reading = informers or self._own
        assert reading is not None, "without shared readings, the scheduler has its own"
        self._view = View(reading, allocator or LiveAllocator(chance=chance), self._queue)
        self._queue.on_flush = self._view.refresh
        self._view.cluster.fleet.volumes.are_stored = True
        self._commits = Commits(
            self._view,
            binder,
            clock=clock,
            reporter=self._reporter,
            conditions=BindingConditions(self._view.claims, clock),
            volumes=VolumeBinding(client, reading, self._view.cluster.fleet, clock),
            slots=self._slots,
            group_of=lambda pod: self._groups.of_pod(pod),
            binding_timeout_of=lambda pod: settings.binding_timeout_seconds(scheduler_of(pod)),
        )
        self._build_gangs(reading, settings)
        self._view.pods.listen(self._pod_changed)

    def _build_gangs(self, informers: Informers, settings: SchedulerSettings) -> None:
        """All that has to do with gangs, and with those who make way."""
        client = self._client
        clock = self._clock
        self._table = GangTable(clock, self._reads_gang)
        self._coscheduling = CoschedulingStatuses(client, clock, self._view.pods)
        self._groups = GroupObjects(
            client,
            clock=clock,
            informers=informers,
            changed=self._definition_changed,
            seen=self._coscheduling.seen,
        )
        self._table.definitions = self._groups.definitions
        self._watermark = PlanWatermark(
            client, clock, settings.plans_lease, self._table.oldest_open
        )
        evictions = Evictions(client, clock, self._view, self._reporter)
        self._post_filter = PostFilter(self._view, self._table, evictions, clock)
        self._gangs = GangCycle(
            self._table,
            self._view,
            groups=self._groups,
            client=client,
            clock=clock,
            binder=self._binder,
            commits=self._commits,
            queue=self._queue,
            searches=self._searches,
            reporter=self._reporter,
            profiles=self._profiles,
            deciding=self._deciding,
            post_filter=self._post_filter,
            meter=self._gang_meter,
            watermark=self._watermark,
        )

    async def run(self) -> None:
        if await self._serves_taint_rules():
            self._view.follow_taint_rules()
        async with asyncio.TaskGroup() as group:
            if self._own is not None:
                group.create_task(self._own.run(), name="scheduler informers")
            for informer in self._view.reads:
                await informer.synced.wait()
            await self._groups.known()
            group.create_task(self._searches.run(), name="scheduler searches")
            group.create_task(self._watermark.run(), name="gang plans")
            group.create_task(self._coscheduling.run(self._groups), name="podgroup statuses")
            await self._serve(group)

    def lacking(self) -> tuple[str, ...]:
        """What it reads is in the shared caches, all of it."""
        return ()

    async def _serves_taint_rules(self) -> bool:
        """
        Where they are no part of the API, no device has a taint by one.

        Who waits for a kind that there is not waits for ever, so it is asked until that is known.
        """
        while True:
            try:
                await self._client.list(TAINT_RULES)
            except NotFoundError:
                return False
            except ForbiddenError as error:
                _logger.warning("taint rules: %s; assumed to be served", error)
            except (ApiError, TransportError) as error:
                _logger.info("taint rules: %s; asked again", error)
                await sleep(self._clock, _ASK_AGAIN_SECONDS)
                continue
            return True

    async def _serve(self, group: asyncio.TaskGroup) -> None:
        while True:
            unit = await self._queue.take()
            await self._slots.acquire()
            group.create_task(self._attempt(unit), name=f"schedule {_shown(unit)}")

    async def _attempt(self, unit: Unit) -> None:
        pods = self._table.pending(unit) if isinstance(unit, GangKey) else (unit,)
        for pod in pods:
            self._meter.began(pod)
        try:
            if isinstance(unit, GangKey):
                await self._gangs.schedule(unit)
            else:
                await self._schedule(unit)
        except (ApiError, TransportError, OvertakenError, UnusableClaimError) as error:
            _logger.info("%s: %s; retrying", _shown(unit), error)
            for pod in pods:
                self._meter.ended(pod, Result.ERROR)
            if isinstance(unit, GangKey):
                self._gang_meter.ended(unit, Result.ERROR)
            if isinstance(error, REFUSALS):
                await self._failed(pods, f"{_shown(unit)} could not be bound: {error}")
            self._queue.retry(unit)
        except UntoldError as error:
            _logger.info("%s: the condition or event was not written: %s", _shown(unit), error)
            self._queue.retry_backed_off(unit)
        except Exception as error:
            component = current_component()
            if component is None:
                raise
            # One pod that cannot be decided must not stop the scheduler for all the others.
            component.fail_for(_shown(unit), error)
            self._buggy.add(unit)
            for pod in pods:
                self._meter.ended(pod, Result.ERROR)
            await self._failed(pods, f"internal error of the scheduler: {type(error).__name__}")
            self._queue.retry_backed_off(unit)
        else:
            self._queue.forget(unit)
            if unit in self._buggy and (component := current_component()) is not None:
                self._buggy.discard(unit)
                component.recover(_shown(unit))
        finally:
            for pod in pods:
                self._meter.left(pod)
            self._queue.done(unit)
            self._slots.release()

    async def _failed(self, pods: Sequence[Name], message: str) -> None:
        """Report an error of the scheduler or the server to pods, if the server accepts that."""
        try:
            for raw in (self._view.pods.get(*name) for name in pods):
                if raw is not None and self._is_ours(raw):
                    await self._reporter.failed(raw, message)
        except UntoldError as error:
            _logger.info("%s; the condition or event was not written: %s", message, error)

    async def _schedule(self, name: Name) -> None:
        async with self._deciding:
            decision = await self._decision(name)
        if decision is None:
            return
        # Whatever stands in the books because of it does so before anything is awaited.
        raw, wanted, outcome = decision
        if isinstance(wanted, Waiting):
            if wanted.claim:
                self._queue.park_for(name, wanted.claim)
            # One that has yet to be made is told by a change of the pod.
            if wanted.message:
                await self._let_go(raw)
                if not wanted.is_gated:
                    await self._refuse(raw, wanted.message)
        elif isinstance(outcome, Placed):
            try:
                await self._commits.carry_out([_decided(raw, wanted, outcome)])
                self._post_filter.done(name)
            except UnusableClaimError as error:
                await self._reporter.failed(raw, error.report)
                raise
        elif outcome is not None:
            await self._unplaced(raw, wanted, outcome)

    async def _unplaced(self, raw: Raw, wanted: Demands, outcome: Unplaced) -> None:
        """A pod that fits nowhere waits; others may have to go for it."""
        name = name_of(raw)
        stale = in_the_way(wanted, outcome)
        profile = self._profiles[scheduler_of(raw)]
        rank = self._rank_of(name)
        found = Help()
        if not stale:
            found = self._post_filter.for_pod(name, wanted, rank, profile=profile, refused=outcome)
        self._queue.park(name, helped_by_changes([raw], outcome))
        self._view.hope(name, [raw])
        if stale:
            await free(stale, wanted.pod, view=self._view, binder=self._binder)
        if found.preemption is not None:
            await self._post_filter.evict(name, found.preemption, (raw,))
        if outcome.is_error:
            await self._reporter.failed(raw, outcome.message)
        else:
            await self._refuse(raw, found.beside(outcome.message))

    async def _let_go(self, raw: Raw) -> None:
        """
        What an attempt that ended in the middle has left reserved for a pod that cannot be placed.

        A claim that is being deleted waits for the pod, which waits for it to go.
        """
        uid = raw["metadata"]["uid"]
        held = self._view.held_for(decode(raw, Pod), uid)
        if held and await self._binder.is_unbound(raw):
            for claim in held:
                await let_go(claim, [uid], view=self._view, binder=self._binder)

    async def _decision(self, name: Name) -> _Decision | None:
        """What is to become of the pod; nothing yet, if that takes a long search."""
        while True:
            raw = self._view.pods.get(*name)
            if raw is None or not self._is_ours(raw) or name in self._commits.in_hand:
                return None
            gang = self._table.of(name)
            if isinstance(gang, Flaw):
                return raw, Waiting(message=gang.message), None
            if gang is not None and gang not in self._table.whole:
                self._queue.add(gang)
                return None
            wanted = demands(decode(raw, Pod), self._view)
            if isinstance(wanted, Waiting):
                return raw, wanted, None
            profile = self._profiles[scheduler_of(raw)]
            self._post_filter.begin(name, self._rank_of(name), (raw,), profile)
            outcome = self._on_nominated_node(name, wanted, profile) or decide(
                wanted.pod,
                wanted.unallocated,
                wanted.allocated,
                self._view.cluster,
                extended=wanted.extended,
                profile=profile,
                searches_left=self._searches.left(name),
            )
            if not isinstance(outcome, Unfinished):
                self._searches.forget(name)
                return raw, wanted, outcome
            if outcome.search is not None:
                self._searches.wait(name, outcome.search)
                return None
            await asyncio.sleep(0)

    def _on_nominated_node(self, name: Name, wanted: Demands, profile: Profile) -> Placed | None:
        """Return the pod on the node where others made way for it, if it fits there by now."""
        node = self._post_filter.nominated(name).get(name)
        if node is None or self._view.cluster.fleet.get(node) is None:
            return None
        outcome = place_on(
            node,
            wanted.pod,
            wanted.unallocated,
            wanted.allocated,
            self._view.cluster,
            extended=wanted.extended,
            profile=profile,
        )
        return outcome if isinstance(outcome, Placed) else None

    async def _refuse(self, pod: Raw, message: str) -> None:
        name = name_of(pod)
        nominated = self._post_filter.nominated(name).get(name, "")
        await self._reporter.refused(pod, message, nominated)

    def _is_ours(self, pod: Raw) -> bool:
        return self._reporter.speaks_for(pod) and _is_schedulable(pod)

    def _pending(self) -> dict[str, int]:
        """How many wait, by queue; a pod with gates is in none."""
        pods = filter(self._reporter.speaks_for, self._view.pods.all())
        gated = sum("schedulingGates" in pod["spec"] for pod in pods)
        return {**self._queue.counts(self._size), "gated": gated}

    def _size(self, unit: Unit) -> int:
        return len(self._table.pending(unit)) if isinstance(unit, GangKey) else 1

    def _pod_changed(self, old: Raw | None, new: Raw | None) -> None:
        name = name_of(new or old or {})
        gangs = self._table.change(old, new)
        if new is None or not self._is_ours(new):
            self._queue.drop(name)
            self._searches.forget(name)
            self._meter.gone(name)
            self._post_filter.done(name)
        elif old is None or _asks(old) != _asks(new):
            self._meter.queued(name, scheduler_of(new))
            if self._table.is_alone(name):
                self._queue.add(name)
        if old is None or new is None or _counts(old) != _counts(new):
            for gang in gangs:
                self._gangs.changed(gang)

    def _reads_gang(self, pod: Raw, said: Membership | Flaw) -> bool:
        """Whether what a pod says about its gang counts, as its profile has it."""
        profile = self._profiles.get(scheduler_of(pod))
        is_native = isinstance(said, Membership) and said.key.dialect in NATIVE_DIALECTS
        plugin = "GangScheduling" if is_native else "Coscheduling"
        return profile is None or profile.has(plugin)

    def _definition_changed(self, definition: GangKey) -> None:
        for key in self._table.keys(definition):
            self._gangs.changed(key)

    def _rank_of(self, unit: Unit) -> Rank:
        if isinstance(unit, GangKey):
            return self._table.rank(unit)
        pod = self._view.pods.get(*unit)
        if pod is None:
            return Rank(0, "")
        return Rank(pod["spec"].get("priority", 0), pod["metadata"]["creationTimestamp"])


def _shown(unit: Unit) -> str:
    return str(unit) if isinstance(unit, GangKey) else f"pod {'/'.join(unit)}"


def _decided(raw: Raw, wanted: Demands, placed: Placed) -> Decided:
    occupant = Occupant.of(wanted.pod, amounts=placed.amounts)
    return Decided(raw, wanted, placed.node, occupant, placed.given)


def _is_schedulable(pod: Raw) -> bool:
    spec = pod["spec"]
    is_placed = spec.get("nodeName") or "deletionTimestamp" in pod["metadata"]
    return not (is_placed or spec.get("schedulingGates"))


def _asks(pod: Raw) -> tuple[Any, ...]:
    """What about a pod decides where it goes; its other changes are our own refusals."""
    status = pod.get("status", {})
    return pod["spec"], pod["metadata"].get("labels"), status.get("resourceClaimStatuses")


def _counts(pod: Raw) -> tuple[Any, ...]:
    """What about a pod matters to the others of its gang."""
    has_failed = pod.get("status", {}).get("phase") == "Failed"
    return *_asks(pod), "deletionTimestamp" in pod["metadata"], has_failed
