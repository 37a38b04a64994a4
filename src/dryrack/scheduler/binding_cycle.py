"""
The binding cycle: write the decisions that were made, and undo them where a write fails.

Several pods, a gang, are one plan: they are assumed, reserved, and bound together. While a plan is
being written the scheduler's cache shows it as true, so that the next decision takes it into
account.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from dryrack.client.errors import ApiError, TransportError
from dryrack.client.informer import name_of
from dryrack.client.timekeeping import sleep
from dryrack.kinds.expansion.pod_claims import (
    consumer_of_group,
    consumer_of_pod,
    entries_of_group,
    named_claim,
)
from dryrack.scheduler.binding import Assignment, Plan, full_name
from dryrack.scheduler.claims.binding_conditions import find_unready_devices
from dryrack.scheduler.claims.device_owners import DeviceOwners

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from dryrack.client.informer import Name
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import AllocationResult
    from dryrack.placement import Occupant
    from dryrack.scheduler.binding import Binder, Bound, Reserved
    from dryrack.scheduler.binding_plugins import BindingPlugins
    from dryrack.scheduler.claims.binding_conditions import BindingConditions
    from dryrack.scheduler.claims.volume_binding import UnboundClaim, VolumeBinding
    from dryrack.scheduler.demands import Demands
    from dryrack.scheduler.reporting import Reporter
    from dryrack.scheduler.scheduler_cache import SchedulerCache

_RETRY_SECONDS = 1.0
_NO_ANNOTATIONS: Mapping[str, str] = MappingProxyType({})
_UNMARKED = nullcontext(_NO_ANNOTATIONS)


@dataclass(frozen=True, slots=True)
class Decision:
    """A pod, its node, and the allocations of those of its claims that had none."""

    raw: Raw
    wanted: Demands
    node: str
    occupant: Occupant
    given: Mapping[str, AllocationResult]

    @property
    def name(self) -> Name:
        return name_of(self.raw)


class BindingCycle:
    """Carries decisions out; `pods` are those that are being written."""

    def __init__(
        self,
        cache: SchedulerCache,
        binder: Binder,
        *,
        clock: Timekeeper,
        reporter: Reporter,
        conditions: BindingConditions,
        volumes: VolumeBinding,
        slots: asyncio.Semaphore,
        group_of: Callable[[Raw], Raw | None],
        binding_timeout_of: Callable[[Raw], float],
        plugins: BindingPlugins,
    ) -> None:
        """
        Build it for one scheduler.

        `group_of` returns the PodGroup of a pod, `binding_timeout_of` how many seconds the devices
        of a pod may take to be ready.
        """
        self.pods: set[Name] = set()
        self._cache = cache
        self._binder = binder
        self._clock = clock
        self._reporter = reporter
        self._conditions = conditions
        self._volumes = volumes
        self._slots = slots
        self._group_of = group_of
        self._binding_timeout_of = binding_timeout_of
        self._plugins = plugins
        self._owners = DeviceOwners(cache.claims, clock)

    async def run(
        self,
        decisions: Sequence[Decision],
        marked: AbstractContextManager[Mapping[str, str]] = _UNMARKED,
    ) -> Bound:
        """
        Assume the decisions, then reserve claims and bind pods; raise if no pod could be bound.

        Plugins reserve and permit all pods before the first write.

        `marked` is entered while pods are being bound, and returns their annotations. The cache
        shows the decisions before this function awaits anything.
        """
        for each in decisions:
            self._cache.assume(each.name, each.node, each.occupant, each.given)
            self.pods.add(each.name)
        try:
            await self._plugins.admit(decisions, self._wait_without_slot)
        except BaseException:
            # No write has begun, so the claims are as they were last read.
            for each in decisions:
                self._cache.forget_pod(each.name)
                self.pods.discard(each.name)
                for full in each.given:
                    self._cache.settle_claim(full, self._cache.find_claim(full))
            raise
        plan = self._make_plan(decisions)
        reserved: Reserved | None = None
        bound_pods: set[Name] = set()
        is_stopping = False
        volumes: Sequence[UnboundClaim] = ()
        try:
            volumes = self._volumes.assume((each.wanted.pod, each.node) for each in decisions)
            plan = self._cache.rename_claims(plan, await self._binder.extended.create_claims(plan))
            reserved = await self._binder.reserve(plan)
            prepare = partial(self._wait_until_ready, plan, volumes, decisions)
            await self._binder.prepare(reserved, prepare)
            with marked as annotations:
                bound = await self._binder.bind(reserved, self._cache.find_obstacle, annotations)
            bound_pods = {name_of(each.pod) for each in bound.assignments}
        except asyncio.CancelledError:
            is_stopping = True
            raise
        finally:
            self._plugins.unreserve([each for each in decisions if each.name not in bound_pods])
            self._volumes.forget(volumes)
            for each in decisions:
                if each.name not in bound_pods:
                    self._cache.forget_pod(each.name)
                self.pods.discard(each.name)
            for full in plan.given.keys() - plan.claims.keys():
                # The claim for extended resources was not created.
                self._cache.settle_claim(full, None)
            # A scheduler that stops does not use its cache again, and may never get an answer.
            for full, claim in () if is_stopping else plan.claims.items():
                await self._settle(claim, reserved.claim(full) if reserved else None)
        for assignment in bound.assignments:
            await self._reporter.report_scheduled(assignment.pod, assignment.node)
        await self._plugins.post_bind([each for each in decisions if each.name in bound_pods])
        return bound

    def _make_plan(self, decisions: Sequence[Decision]) -> Plan:
        names = {"/".join(claim): None for each in decisions for claim in each.wanted.names}
        claims = {name: raw for name in names if (raw := self._cache.find_claim(name))}
        assignments = []
        for each in decisions:
            own = ["/".join(claim) for claim in each.wanted.names]
            # A claim has at most 256 consumers; one that is reserved for a PodGroup is open to all
            # pods of the group.
            users = dict.fromkeys(filter(claims.get, own), consumer_of_pod(each.raw))
            group = self._group_of(each.raw)
            if group is not None:
                for name in self._claims_of_group(each, group) & users.keys():
                    users[name] = consumer_of_group(group)
            extended = self._cache.extended_claim(each.wanted.extended, each.node, each.given)
            assignments.append(Assignment(each.raw, each.node, users, extended))
        given = {name: it for each in decisions for name, it in each.given.items()}
        return Plan(tuple(assignments), claims, given)

    @staticmethod
    def _claims_of_group(decision: Decision, group: Raw) -> frozenset[str]:
        """Return the claims of a pod that belong to its group, as "ns/name"."""
        pod = decision.wanted.pod
        entries = entries_of_group(decision.raw, group)
        claims = [each for each in pod.spec.resource_claims if each.name in entries]
        names = [named_claim(pod, each) for each in claims]
        return frozenset(f"{decision.name.namespace}/{name}" for name in names if name)

    async def _wait_until_ready(
        self,
        plan: Plan,
        volumes: Sequence[UnboundClaim],
        decisions: Sequence[Decision],
        claims: Sequence[Raw],
    ) -> None:
        """
        Wait until devices have their binding conditions, volumes are bound, and plugins are done.

        Meanwhile the cache shows the claims as written, so that other pods may use them.
        """
        await self._owners.confirm(each for each in claims if full_name(each) in plan.given)
        unready = {full_name(claim) for claim in claims if find_unready_devices(claim)}
        if unready:
            for claim in claims:
                self._cache.settle_claim(full_name(claim), claim)
            for each in plan.assignments:
                if not unready.isdisjoint(each.consumers):
                    await self._reporter.nominate(each.pod, each.node)
                    message = f"waiting for binding conditions for device on node {each.node}"
                    await self._reporter.record_event(
                        each.pod, "BindingConditionsPending", message, type="Normal"
                    )
            # All pods of a plan name the same scheduler.
            timeout_seconds = self._binding_timeout_of(plan.assignments[0].pod)
            await self._wait_without_slot(self._conditions.wait_until_met(claims, timeout_seconds))
        if volumes:
            for claim in claims:
                self._cache.settle_claim(full_name(claim), claim)
            await self._wait_without_slot(self._volumes.bind(volumes))
        await self._plugins.pre_bind(decisions)

    async def _wait_without_slot(self, wait: Awaitable[None]) -> None:
        """Let other pods be bound during a wait that may be long."""
        self._slots.release()
        try:
            await wait
        finally:
            await self._slots.acquire()

    async def _settle(self, claim: Raw, written: Raw | None) -> None:
        """Read the claim unless its last write is known; until then the cache assumes it."""
        current = written
        while written is None:
            try:
                current = await self._binder.read_claim(claim)
            except (ApiError, TransportError):
                await sleep(self._clock, _RETRY_SECONDS)
                continue
            break
        self._cache.settle_claim(full_name(claim), current)
