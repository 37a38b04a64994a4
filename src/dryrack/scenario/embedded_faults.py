"""
Faults and invariants of a scenario in this process.

Every write to the store is checked. Invariants that hold only at rest are checked after all steps,
if there were faults and none is in force any more: first the check waits until no component writes
pods, claims and slices.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dryrack.client.endpoints import (
    CLAIMS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SLICES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from dryrack.client.timekeeping import sleep
from dryrack.cluster import DECISION_KINDS, read_snapshot
from dryrack.cluster.faults import (
    ClaimLeak,
    EngineCrash,
    FaultTargetError,
    HalfGeneration,
    KubeletRestart,
    NodeReboot,
    Subject,
    WatchLoss,
    read_healing,
    read_injection,
)
from dryrack.scenario.checkers import WATCHED, Checkers
from dryrack.scenario.invariants.at_rest import (
    find_miscounted_budgets,
    find_schedulable_pods,
    find_unprepared_claims,
    prepared_by,
)
from dryrack.scenario.invariants.offers import Offers
from dryrack.scenario.invariants.volumes import StoredVolumes

if TYPE_CHECKING:
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.cluster.faults import FaultInjector
    from dryrack.kubeletplugin import VirtualDrivers
    from dryrack.scenario.journal import Journal
    from dryrack.scheduler import SchedulerSettings
    from dryrack.store import Event, Store

# Longer than a pod that is deleted may take, a node counts as lost, and a refused pod waits.
_QUIET_SECONDS = 400.0
_LOOK_SECONDS = 20.0
# As long as an expectation has by default.
_TARGET_SECONDS_MAX = 30.0
_REST_SECONDS_MAX = 3600.0
_LASTING = (PODS.resource, CLAIMS.resource, SLICES.resource)
_MOMENTARY = (WatchLoss, EngineCrash, NodeReboot, KubeletRestart, HalfGeneration, ClaimLeak)


class InjectedFaults:
    """The faults of a scenario, and which of them are in force."""

    def __init__(
        self, injector: FaultInjector, journal: Journal, *, skips_missing: bool = False
    ) -> None:
        """Ignore faults of objects that do not exist if `skips_missing`."""
        self._injector = injector
        self._skips_missing = skips_missing
        self._journal = journal
        self._ends: dict[str, float] = {}
        self.has_failed = False

    @property
    def clock(self) -> Timekeeper:
        return self._injector.clock

    async def begin(self, words: str) -> None:
        self._journal.note(f"fail {words}")
        injection = read_injection(words)
        self.has_failed = True
        if not isinstance(injection.fault, _MOMENTARY):
            seconds = float("inf") if injection.seconds is None else injection.seconds
            self._ends[words] = self._injector.clock.now() + seconds
        # The target may not be published yet.
        clock = self._injector.clock
        latest = clock.now() + _TARGET_SECONDS_MAX
        while True:
            try:
                await self._injector.begin(injection)
            except FaultTargetError as error:
                if self._skips_missing:
                    self._journal.note(str(error))
                    return
                if clock.now() >= latest:
                    raise
                await sleep(clock, 1.0)
            else:
                return

    async def end(self, words: str) -> None:
        self._journal.note(f"end fault {words}")
        healing = read_healing(words)
        is_all = healing.subject is Subject.ALL
        for said in [*self._ends]:
            if is_all or said.split()[0] == str(healing.subject):
                del self._ends[said]
        await self._injector.end(healing)

    def is_well(self) -> bool:
        """Return whether no fault is in force."""
        return all(end <= self._injector.clock.now() for end in self._ends.values())


class StoreInvariants:
    """Checks every write to a store."""

    def __init__(
        self,
        store: Store,
        client: Client,
        faults: InjectedFaults,
        drivers: VirtualDrivers | None,
        scheduling: SchedulerSettings | None = None,
    ) -> None:
        self._client = client
        self._drivers = drivers
        self._scheduling = scheduling
        self._clock = clock = faults.clock
        self._faults = faults
        self._checkers = Checkers()
        self._offers = Offers()
        self._wrong = ""
        self._is_broken = asyncio.Event()
        self._written_at = clock.now()
        for resource in WATCHED:
            store.subscribe(resource, self._on_event)

    async def broken(self) -> str:
        await self._is_broken.wait()
        return self._wrong

    async def after_step(self) -> str:
        """Return "": every write is checked already."""
        return ""

    async def at_rest(self) -> str:
        if not self._faults.has_failed or not self._faults.is_well():
            return ""
        latest = self._clock.now() + _REST_SECONDS_MAX
        while self._clock.now() - self._written_at < _QUIET_SECONDS:
            if self._clock.now() > latest:
                return "not idle an hour after the last step: a component keeps writing"
            await sleep(self._clock, _LOOK_SECONDS)
            if self._wrong:
                return self._wrong
        pods = self._checkers.pods
        budgets, *storage = [
            (await self._client.list(each)).items
            for each in (POD_DISRUPTION_BUDGETS, VOLUME_CLAIMS, VOLUMES, STORAGE_CLASSES)
        ]
        stored = StoredVolumes(*storage, pods=pods)
        held = stored.held_pods()
        snapshot = await read_snapshot(self._client, DECISION_KINDS)
        objects = [each for each in snapshot.objects if each.metadata.uid not in held]
        found = [*self._checkers.at_rest(), *stored.violations()]
        found += find_schedulable_pods(objects, self._scheduling)
        found += find_miscounted_budgets(budgets, pods.values())
        if self._drivers is not None:
            prepared = prepared_by(self._drivers)
            found += find_unprepared_claims(prepared, pods, self._checkers.claims)
        return "\n".join(map(str, found))

    def _on_event(self, event: Event) -> None:
        resource = event.stored.key.resource
        old = None if event.previous is None else event.previous.object
        new = None if event.type.value == "DELETED" else event.stored.object
        now = self._clock.now()
        found = (
            *self._checkers.see(resource, old, new),
            *self._offers.see(resource, old, new, now),
        )
        if resource in _LASTING:
            self._written_at = now
        if found and not self._wrong:
            self._wrong = "\n".join(map(str, found))
            self._is_broken.set()
