"""
The scheduling cycle: decide about one pod or gang at a time, and write many decisions at once.

Each decision is made on one state of the cache, which shows the decision before the next one
begins. A decision that takes long is made in steps, with other work in between; each step begins
with the cluster as it is then (see `placement.decide`). For a long search for devices the pod lets
other pods go first (see `searches`). A pod that fits nowhere waits until a change could help it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from dryrack.allocation import LiveAllocator
from dryrack.client.discovery import newest_version
from dryrack.client.endpoints import TAINT_RULES
from dryrack.client.errors import ApiError, ForbiddenError, NotFoundError, TransportError
from dryrack.client.informer import Informers, Name, name_of
from dryrack.client.supervision import current_component
from dryrack.client.timekeeping import sleep
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.raw import Raw
from dryrack.kinds.releases import SCHEDULING
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
from dryrack.scheduler.binding_cycle import BindingCycle, Decision
from dryrack.scheduler.binding_plugins import BindingPlugins, RejectionError
from dryrack.scheduler.claims import UnusableClaimError
from dryrack.scheduler.claims.binding_conditions import BindingConditions
from dryrack.scheduler.claims.stale_claims import (
    find_stale_claim,
    release_claim,
    release_stale_claim,
)
from dryrack.scheduler.claims.volume_binding import VolumeBinding
from dryrack.scheduler.coscheduling import CoschedulingStatuses
from dryrack.scheduler.demands import Demands, Waiting, collect_demands
from dryrack.scheduler.gang_cycle import GangCycle
from dryrack.scheduler.gang_table import GangTable
from dryrack.scheduler.group_objects import GroupObjects
from dryrack.scheduler.metering import GangMeter, Result, SchedulingMeter
from dryrack.scheduler.plan_watermark import PlanWatermark
from dryrack.scheduler.post_filter import PostFilter, PostFilterResult
from dryrack.scheduler.preemption import Evictions
from dryrack.scheduler.queue import Rank, SchedulingQueue, Unit
from dryrack.scheduler.reporting import Reporter, ReportError, scheduler_of
from dryrack.scheduler.scheduler_cache import SchedulerCache, find_helpful_changes
from dryrack.scheduler.searches import LongSearches
from dryrack.scheduler.settings import SchedulerSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.base.metrics import Registry
    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.placement import Profile

_Attempt = tuple[Raw, Demands | Waiting, Placed | Unplaced | None]

_logger = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0
# The number of decisions that are written at a time: enough to hide the latency of each write, few
# enough to be undone quickly.
BINDINGS_MAX = 32


class Scheduler:
    """Schedules pods and gangs until `run` is cancelled."""

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
        Build it, with its own informers unless the caller shares and runs some.

        `allocator` replaces the one of the settings' release.
        """
        settings = settings or SchedulerSettings()
        self._client = client
        self._clock = clock
        self._meter = SchedulingMeter(clock, metrics)
        self._gang_meter = GangMeter(clock, metrics)
        self._profiles = settings.profiles
        self._reporter = Reporter(client, clock, chance, names=self._profiles, meter=self._meter)
        bind_retry_seconds = SCHEDULING[settings.release].bind_retry_seconds
        binder = self._binder = Binder(client, clock, bind_retry_seconds)
        self._queue: SchedulingQueue[Unit] = SchedulingQueue(
            clock, self._rank_of, settings.backoff_seconds
        )
        self._meter.read_queue(self._count_pending)
        self._slots = asyncio.Semaphore(BINDINGS_MAX)
        self._deciding = asyncio.Lock()
        self._failing: set[Unit] = set()
        """Pods and gangs whose last attempt ended in an unexpected exception."""
        self._searches = LongSearches(self._queue.add)
        self._own_informers = None if informers else Informers(client, clock=clock, chance=chance)
        informers = informers or self._own_informers
        assert informers is not None, "a scheduler without shared informers has its own"
        release = settings.release
        allocator = allocator or LiveAllocator(release=release, chance=chance)
        self._cache = SchedulerCache(informers, allocator, self._queue, release)
        self._queue.on_flush = self._cache.forget_refusals
        self._cache.cluster.fleet.volumes.are_stored = True
        plugins = BindingPlugins(
            self._cache, client, clock, profiles=self._profiles, reporter=self._reporter
        )
        self._queue.on_change = plugins.notify
        self._binding_cycle = BindingCycle(
            self._cache,
            binder,
            clock=clock,
            reporter=self._reporter,
            conditions=BindingConditions(self._cache.claims, clock),
            volumes=VolumeBinding(client, informers, self._cache.cluster.fleet, clock),
            slots=self._slots,
            group_of=lambda pod: self._groups.find_for_pod(pod),
            binding_timeout_of=lambda pod: settings.binding_timeout_seconds(scheduler_of(pod)),
            plugins=plugins,
        )
        self._build_gangs(informers, settings)
        self._cache.pods.listen(self._on_pod)

    def _build_gangs(self, informers: Informers, settings: SchedulerSettings) -> None:
        """Build the parts for gangs and for preemption."""
        client = self._client
        clock = self._clock
        self._table = GangTable(clock, self._is_gang_enabled)
        self._coscheduling = CoschedulingStatuses(client, clock, self._cache.pods)
        self._groups = GroupObjects(
            client,
            clock=clock,
            informers=informers,
            on_definition=self._on_definition,
            on_object=self._coscheduling.on_group,
        )
        self._table.definitions = self._groups.definitions
        self._watermark = PlanWatermark(
            client, clock, settings.plans_lease, self._table.oldest_open_plan
        )
        evictions = Evictions(client, clock, self._cache, self._reporter)
        self._post_filter = PostFilter(self._cache, self._table, evictions, clock)
        self._gangs = GangCycle(
            self._table,
            self._cache,
            groups=self._groups,
            client=client,
            clock=clock,
            binder=self._binder,
            binding_cycle=self._binding_cycle,
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
        rules = await self._find_taint_rules()
        if rules is not None:
            self._cache.watch_taint_rules(rules)
        async with asyncio.TaskGroup() as group:
            if self._own_informers is not None:
                group.create_task(self._own_informers.run(), name="scheduler informers")
            for informer in self._cache.informers:
                await informer.synced.wait()
            await self._groups.wait_until_known()
            group.create_task(self._searches.run(), name="scheduler searches")
            group.create_task(self._watermark.run(), name="gang plans")
            group.create_task(self._coscheduling.run(self._groups), name="podgroup statuses")
            while True:
                unit = await self._queue.take()
                await self._slots.acquire()
                group.create_task(self._attempt(unit), name=f"schedule {_describe(unit)}")

    def lacking(self) -> tuple[str, ...]:
        """Return no kinds: everything that the scheduler reads is in the shared informers."""
        return ()

    async def _find_taint_rules(self) -> Endpoint | None:
        """
        Return the served version of DeviceTaintRules, or None; retry until the server answers.

        An informer for a kind that is not served would never be synced.
        """
        while True:
            rules = TAINT_RULES
            try:
                rules = await newest_version(self._client, TAINT_RULES)
                await self._client.list(rules)
            except NotFoundError:
                return None
            except ForbiddenError as error:
                _logger.warning("taint rules: %s; assumed to be served", error)
            except (ApiError, TransportError) as error:
                _logger.info("taint rules: %s; asked again", error)
                await sleep(self._clock, _RETRY_SECONDS)
                continue
            return rules

    async def _attempt(self, unit: Unit) -> None:
        """Make one attempt for a unit from the queue; return the unit to it if that fails."""
        pods = self._table.pending_members(unit) if isinstance(unit, GangKey) else (unit,)
        for pod in pods:
            self._meter.start_attempt(pod)
        try:
            if isinstance(unit, GangKey):
                await self._gangs.schedule(unit)
            else:
                await self._schedule_pod(unit)
        except (ApiError, TransportError, OvertakenError, UnusableClaimError) as error:
            _logger.info("%s: %s; retrying", _describe(unit), error)
            for pod in pods:
                self._meter.finish_attempt(pod, Result.ERROR)
            if isinstance(unit, GangKey):
                self._gang_meter.finish_attempt(unit, Result.ERROR)
            if isinstance(error, REFUSALS):
                message = f"{_describe(unit)} could not be bound: {error}"
                await self._report_error(pods, message)
            self._queue.retry(unit)
        except (RejectionError, ReportError) as error:
            # A plugin failed, or the condition or event was not written.
            _logger.info("%s: %s; retrying after a delay", _describe(unit), error)
            self._queue.retry_backed_off(unit)
        except Exception as error:
            component = current_component()
            if component is None:
                raise
            # One pod that cannot be decided must not stop the scheduler for all the others.
            component.fail_for(_describe(unit), error)
            self._failing.add(unit)
            for pod in pods:
                self._meter.finish_attempt(pod, Result.ERROR)
            message = f"internal error of the scheduler: {type(error).__name__}"
            await self._report_error(pods, message)
            self._queue.retry_backed_off(unit)
        else:
            self._queue.forget(unit)
            if unit in self._failing and (component := current_component()) is not None:
                self._failing.discard(unit)
                component.recover(_describe(unit))
        finally:
            for pod in pods:
                self._meter.end_attempt(pod)
            self._queue.done(unit)
            self._slots.release()

    async def _report_error(self, pods: Sequence[Name], message: str) -> None:
        """Report an error of the scheduler or the server to pods, if the server accepts that."""
        try:
            for raw in (self._cache.pods.get(*name) for name in pods):
                if raw is not None and self._is_schedulable(raw):
                    await self._reporter.report_error(raw, message)
        except ReportError as error:
            _logger.info("%s; the condition or event was not written: %s", message, error)

    async def _schedule_pod(self, name: Name) -> None:
        """Decide about a pod, then assume, reserve, and bind, or report why the pod waits."""
        async with self._deciding:
            attempt = await self._decide(name)
        if attempt is None:
            return
        # The cache shows the decision before anything is awaited: see the steps of `BindingCycle`.
        raw, wanted, outcome = attempt
        if isinstance(wanted, Waiting):
            if wanted.claim:
                self._queue.park_until_claim(name, wanted.claim)
            # If a claim has yet to be created, the pod changes once that is done.
            if wanted.message:
                await self._release_claims(raw)
                if not wanted.is_gated:
                    await self._report_unschedulable(raw, wanted.message)
        elif isinstance(outcome, Placed):
            occupant = Occupant.of(wanted.pod, amounts=outcome.amounts)
            decision = Decision(raw, wanted, outcome.node, occupant, outcome.given)
            try:
                await self._binding_cycle.run([decision])
                self._post_filter.forget(name)
            except UnusableClaimError as error:
                await self._reporter.report_error(raw, error.report)
                raise
            except RejectionError as error:
                if not error.is_retried:
                    self._queue.park_backed_off(name, error.changes)
                # A pod that waited for a permission has a nominated node.
                raw = self._cache.pods.get(*name) or raw
                if error.is_error:
                    await self._reporter.report_error(raw, str(error))
                else:
                    await self._report_unschedulable(raw, str(error))
                if error.is_retried:
                    raise
        elif outcome is not None:
            await self._handle_refusal(raw, wanted, outcome)

    async def _decide(self, name: Name) -> _Attempt | None:
        """Return the pod with its claims and its node; None if there is nothing to do yet."""
        while True:
            raw = self._cache.pods.get(*name)
            if raw is None or not self._is_schedulable(raw) or name in self._binding_cycle.pods:
                return None
            gang = self._table.find_gang(name)
            if isinstance(gang, Flaw):
                return raw, Waiting(message=gang.message), None
            if gang is not None and gang not in self._table.complete:
                self._queue.add(gang)
                return None
            wanted = collect_demands(decode(raw, Pod), self._cache)
            if isinstance(wanted, Waiting):
                return raw, wanted, None
            profile = self._profiles[scheduler_of(raw)]
            self._post_filter.begin_attempt(name, self._rank_of(name), (raw,), profile)
            outcome = self._place_on_nominated_node(name, wanted, profile) or decide(
                wanted.pod,
                wanted.unallocated,
                wanted.allocated,
                self._cache.cluster,
                extended=wanted.extended,
                profile=profile,
                searches_left=self._searches.searches_left(name),
            )
            if not isinstance(outcome, Unfinished):
                self._searches.forget(name)
                return raw, wanted, outcome
            if outcome.search is not None:
                self._searches.wait(name, outcome.search)
                return None
            await asyncio.sleep(0)

    def _place_on_nominated_node(
        self, name: Name, wanted: Demands, profile: Profile
    ) -> Placed | None:
        """Return the pod on the node that preemption freed for it, if it fits there by now."""
        node = self._post_filter.nominated_nodes(name).get(name)
        if node is None or self._cache.cluster.fleet.get(node) is None:
            return None
        outcome = place_on(
            node,
            wanted.pod,
            wanted.unallocated,
            wanted.allocated,
            self._cache.cluster,
            extended=wanted.extended,
            profile=profile,
        )
        return outcome if isinstance(outcome, Placed) else None

    async def _handle_refusal(self, raw: Raw, wanted: Demands, outcome: Unplaced) -> None:
        """Park a pod that fits nowhere, after it freed its stale claim or preempted others."""
        name = name_of(raw)
        stale = find_stale_claim(wanted, outcome)
        profile = self._profiles[scheduler_of(raw)]
        rank = self._rank_of(name)
        result = PostFilterResult()
        if not stale:
            result = self._post_filter.run_for_pod(
                name, wanted, rank, profile=profile, refused=outcome
            )
        self._queue.park(name, find_helpful_changes([raw], outcome, profile))
        self._cache.park_until_pod(name, [raw])
        if stale:
            await release_stale_claim(stale, wanted.pod, cache=self._cache, binder=self._binder)
        if result.preemption is not None:
            await self._post_filter.evict(name, result.preemption, (raw,))
        if outcome.is_error:
            await self._reporter.report_error(raw, outcome.message)
        else:
            await self._report_unschedulable(raw, result.add_to(outcome.message))

    async def _release_claims(self, raw: Raw) -> None:
        """
        Release claims that an interrupted attempt has reserved for a pod that is not placed now.

        Otherwise a claim that is being deleted and the pod would wait for each other.
        """
        uid = raw["metadata"]["uid"]
        reserved = self._cache.claims_reserved_for(decode(raw, Pod), uid)
        if reserved and await self._binder.is_unbound(raw):
            for claim in reserved:
                await release_claim(claim, [uid], cache=self._cache, binder=self._binder)

    async def _report_unschedulable(self, pod: Raw, message: str) -> None:
        name = name_of(pod)
        node = self._post_filter.nominated_nodes(name).get(name, "")
        await self._reporter.report_unschedulable(pod, message, node)

    def _is_schedulable(self, pod: Raw) -> bool:
        """Return whether this scheduler has to find a node for the pod now."""
        spec = pod["spec"]
        is_placed = spec.get("nodeName") or "deletionTimestamp" in pod["metadata"]
        is_ready = not (is_placed or spec.get("schedulingGates"))
        return is_ready and self._reporter.is_responsible_for(pod)

    def _count_pending(self) -> dict[str, int]:
        """Return the number of waiting pods by queue; a pod with gates is in none of the queues."""
        pods = filter(self._reporter.is_responsible_for, self._cache.pods.all())
        gated = sum("schedulingGates" in pod["spec"] for pod in pods)

        def count_pods(unit: Unit) -> int:
            return len(self._table.pending_members(unit)) if isinstance(unit, GangKey) else 1

        return {**self._queue.counts(count_pods), "gated": gated}

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        name = name_of(new or old or {})
        gangs = self._table.update(old, new)
        if new is None or not self._is_schedulable(new):
            self._queue.drop(name)
            self._searches.forget(name)
            self._meter.remove(name)
            self._post_filter.forget(name)
        elif old is None or _scheduling_fields(old) != _scheduling_fields(new):
            self._meter.add(name, scheduler_of(new))
            if self._table.is_scheduled_alone(name):
                self._queue.add(name)
        if old is None or new is None or _gang_fields(old) != _gang_fields(new):
            for gang in gangs:
                self._gangs.on_change(gang)

    def _is_gang_enabled(self, pod: Raw, membership: Membership | Flaw) -> bool:
        """Return whether the profile of a pod has the plugin that schedules its gang."""
        profile = self._profiles.get(scheduler_of(pod))
        is_native = isinstance(membership, Membership) and membership.key.dialect in NATIVE_DIALECTS
        plugin = "GangScheduling" if is_native else "Coscheduling"
        return profile is None or profile.has(plugin)

    def _on_definition(self, definition: GangKey) -> None:
        for key in self._table.find_gangs(definition):
            self._gangs.on_change(key)

    def _rank_of(self, unit: Unit) -> Rank:
        if isinstance(unit, GangKey):
            return self._table.rank(unit)
        pod = self._cache.pods.get(*unit)
        if pod is None:
            return Rank(0, "")
        return Rank(pod["spec"].get("priority", 0), pod["metadata"]["creationTimestamp"])


def _describe(unit: Unit) -> str:
    return str(unit) if isinstance(unit, GangKey) else f"pod {'/'.join(unit)}"


def _scheduling_fields(pod: Raw) -> tuple[Any, ...]:
    """Return the fields of a pod that decide its node; other changes are our own reports."""
    status = pod.get("status", {})
    return pod["spec"], pod["metadata"].get("labels"), status.get("resourceClaimStatuses")


def _gang_fields(pod: Raw) -> tuple[Any, ...]:
    """Return the fields of a pod that matter to the other members of its gang."""
    has_failed = pod.get("status", {}).get("phase") == "Failed"
    return *_scheduling_fields(pod), "deletionTimestamp" in pod["metadata"], has_failed
