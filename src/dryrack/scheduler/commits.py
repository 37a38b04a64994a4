"""
Commits: decisions in the books at once, then written, then known.

A decision may be about many pods, a gang: they are promised, reserved and bound as one plan. While
a plan is being written it counts as true, so that the next decision is made beside it.
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
from dryrack.scheduler.binding import Assignment, Plan, full_name
from dryrack.scheduler.claims.binding_conditions import unready
from dryrack.scheduler.claims.device_owners import DeviceOwners
from dryrack.scheduler.claims.group_claims import consumers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from dryrack.client.informer import Name
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import AllocationResult
    from dryrack.placement import Occupant
    from dryrack.scheduler.binding import Binder, Bound, Reserved
    from dryrack.scheduler.claims.binding_conditions import BindingConditions
    from dryrack.scheduler.claims.volume_binding import UnboundClaim, VolumeBinding
    from dryrack.scheduler.cluster_view import View
    from dryrack.scheduler.demands import Demands
    from dryrack.scheduler.reporting import Reporter

_ASK_AGAIN_SECONDS = 1.0
_NO_ANNOTATIONS: Mapping[str, str] = MappingProxyType({})
_PLAIN = nullcontext(_NO_ANNOTATIONS)


@dataclass(frozen=True, slots=True)
class Decided:
    """A pod and where it goes, with what its claims get that have nothing yet."""

    raw: Raw
    wanted: Demands
    node: str
    occupant: Occupant
    given: Mapping[str, AllocationResult]

    @property
    def name(self) -> Name:
        return name_of(self.raw)


class Commits:
    """Carries decisions out; `in_hand` are the pods that are being written."""

    def __init__(
        self,
        view: View,
        binder: Binder,
        *,
        clock: Timekeeper,
        reporter: Reporter,
        conditions: BindingConditions,
        volumes: VolumeBinding,
        slots: asyncio.Semaphore,
        group_of: Callable[[Raw], Raw | None],
        binding_timeout_of: Callable[[Raw], float],
    ) -> None:
        """
        Build it for one scheduler.

        `group_of` returns the PodGroup of a pod, `binding_timeout_of` how many seconds the devices
        of a pod may take to be ready.
        """
        self.in_hand: set[Name] = set()
        self._view = view
        self._binder = binder
        self._clock = clock
        self._reporter = reporter
        self._conditions = conditions
        self._volumes = volumes
        self._slots = slots
        self._group_of = group_of
        self._binding_timeout_of = binding_timeout_of
        self._owners = DeviceOwners(view.claims, clock)

    async def carry_out(
        self, decided: Sequence[Decided], marked: AbstractContextManager[Mapping[str, str]] = _PLAIN
    ) -> Bound:
        """
        Binds the pods, with all their claims; raises if none could be bound.

        `marked` lasts as long as pods are being bound, and is what they are annotated with.
        Whatever stands in the books because of it does so before anything is awaited.
        """
        for each in decided:
            self._view.promise(each.name, each.node, each.occupant, each.given)
            self.in_hand.add(each.name)
        plan = self._plan(decided)
        reserved: Reserved | None = None
        arrived: set[Name] = set()
        is_stopping = False
        waiting: Sequence[UnboundClaim] = ()
        try:
            waiting = self._volumes.assume((each.wanted.pod, each.node) for each in decided)
            plan = self._view.renamed(plan, await self._binder.extended.made(plan))
            reserved = await self._binder.reserve(plan)
            await self._binder.prepare(reserved, partial(self._ready, plan, waiting))
            with marked as annotations:
                bound = await self._binder.bind(reserved, self._view.obstacle, annotations)
            arrived = {name_of(each.pod) for each in bound.assignments}
        except asyncio.CancelledError:
            is_stopping = True
            raise
        finally:
            self._volumes.forget(waiting)
            for each in decided:
                if each.name not in arrived:
                    self._view.take_back(each.name)
                self.in_hand.discard(each.name)
            for full in plan.given.keys() - plan.claims.keys():
                # It was not made.
                self._view.settle(full, None)
            # Who stops has no use for the books, and may never be answered.
            for full, claim in () if is_stopping else plan.claims.items():
                await self._settle(claim, reserved.claim(full) if reserved else None)
        for assignment in bound.assignments:
            await self._reporter.scheduled(assignment.pod, assignment.node)
        return bound

    def _plan(self, decided: Sequence[Decided]) -> Plan:
        names = {"/".join(claim): None for each in decided for claim in each.wanted.names}
        claims = {name: known for name in names if (known := self._view.known(name))}
        assignments = []
        for each in decided:
            own = ["/".join(claim) for claim in each.wanted.names]
            users = consumers(
                each.raw, each.wanted.pod, filter(claims.get, own), self._group_of(each.raw)
            )
            extended = self._view.extended_claim(each.wanted.extended, each.node, each.given)
            assignments.append(Assignment(each.raw, each.node, users, extended))
        given = {name: it for each in decided for name, it in each.given.items()}
        return Plan(tuple(assignments), claims, given)

    async def _ready(
        self, plan: Plan, waiting: Sequence[UnboundClaim], claims: Sequence[Raw]
    ) -> None:
        await self._devices_ready(plan, claims)
        if waiting:
            for claim in claims:
                self._view.settle(full_name(claim), claim)
            await self._apart(self._volumes.bind(waiting))

    async def _devices_ready(self, plan: Plan, claims: Sequence[Raw]) -> None:
        """Wait for binding conditions; other pods may use the claims, and be bound, meanwhile."""
        await self._owners.confirm(each for each in claims if full_name(each) in plan.given)
        lacking = {full_name(claim) for claim in claims if unready(claim)}
        if not lacking:
            return
        for claim in claims:
            self._view.settle(full_name(claim), claim)
        for each in plan.assignments:
            if not lacking.isdisjoint(each.consumers):
                await self._reporter.nominate(each.pod, each.node)
                message = f"waiting for binding conditions for device on node {each.node}"
                await self._reporter.event(
                    each.pod, "BindingConditionsPending", message, type="Normal"
                )
        # All pods of a plan name the same scheduler.
        timeout_seconds = self._binding_timeout_of(plan.assignments[0].pod)
        await self._apart(self._conditions.ready(claims, timeout_seconds))

    async def _apart(self, wait: Awaitable[None]) -> None:
        """A wait that may be long keeps no other pod from being bound."""
        self._slots.release()
        try:
            await wait
        finally:
            await self._slots.acquire()

    async def _settle(self, claim: Raw, written: Raw | None) -> None:
        """Learns what became of a claim; until that is known, it counts as promised."""
        current = written
        while written is None:
            try:
                current = await self._binder.now(claim)
            except (ApiError, TransportError):
                await sleep(self._clock, _ASK_AGAIN_SECONDS)
                continue
            break
        self._view.settle(full_name(claim), current)
