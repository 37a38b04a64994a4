"""Mutants of known bugs: each changes one function so that it does what the bug did."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace as changed

from dryrack.allocation import LiveAllocator
from dryrack.allocation.demand.requests import Ask, Draft
from dryrack.client.timekeeping import sleep
from dryrack.controllers.pods import drivers, running
from dryrack.controllers.pods.drivers import PrepareCalls
from dryrack.controllers.pods.lifecycle import Deleted, Event, Passed, Rebooted, Run, step
from dryrack.hardware import faults_of
from dryrack.hardware.catalogue.values import Model
from dryrack.hardware.pool_plan import DeleteSlice, UpdateSlice, plan_pools, pool_of
from dryrack.kubeletplugin import slices
from dryrack.kubeletplugin.virtual import VirtualDrivers
from dryrack.placement.active_plugins import ActivePlugins
from dryrack.placement.framework import PluginError
from dryrack.placement.gangs import search
from dryrack.placement.gangs.exact import ExactPlacement
from dryrack.placement.gangs.members import Member, PartialPlacement
from dryrack.placement.outcomes import Unplaced
from dryrack.scheduler import Scheduler
from dryrack.scheduler.demands import Demands
from dryrack.scheduler.queue import SchedulingQueue
from dryrack.scheduler.scheduler_cache import SchedulerCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import ResourceSlice

Patch = pytest.MonkeyPatch


def gives_without_noting(patch: Patch) -> None:
    """Count an allocation only when the watch shows it, not when it is decided."""
    assume = SchedulerCache.assume
    patch.setattr(
        SchedulerCache,
        "assume",
        lambda self, pod, node, occupant, _: assume(self, pod, node, occupant, {}),
    )


def waits_for_its_own_gang(patch: Patch) -> None:
    """Refuse a claim that another member of the gang is about to get."""
    decided = PartialPlacement.decide

    def blocked(self: PartialPlacement, member: Member, *args: Any) -> Any:
        if any(claim in self.given for claim in member.claims):
            return Unplaced("a claim is in the process of being allocated")
        return decided(self, member, *args)

    patch.setattr(PartialPlacement, "decide", blocked)
    patch.setattr(search, "place_exactly", lambda *_: ExactPlacement(()))


def places_pod_by_pod(patch: Patch) -> None:
    """Let each member take what suits itself."""
    patch.setattr(search, "place_exactly", lambda *_: ExactPlacement(()))


def restores_what_was_before(patch: Patch) -> None:
    """Cache the claim of a group as it was before the write for its first pod."""
    claim = SchedulerCache.claim

    def stale(self: SchedulerCache, namespace: str, name: str) -> Any:
        found = claim(self, namespace, name)
        users = () if found is None else found.status.reserved_for
        if found is None or all(each.resource != "podgroups" for each in users):
            return found
        return changed(found, status=changed(found.status, allocation=None))

    patch.setattr(SchedulerCache, "claim", stale)


def takes_all_there_are(patch: Patch) -> None:
    """Ignore the selectors of a request for all devices."""
    check = Draft.check

    def careless(self: Draft, *features: Any) -> Ask:
        ask = check(self, *features)
        return changed(ask, selectors=()) if ask.takes_all else ask

    patch.setattr(Draft, "check", careless)


def counts_no_slices(patch: Patch) -> None:
    """Treat every pool as complete."""
    put = LiveAllocator.put_slice

    def careless(self: LiveAllocator, each: ResourceSlice) -> Any:
        pool = changed(each.spec.pool, resource_slice_count=1)
        return put(self, changed(each, spec=changed(each.spec, pool=pool)))

    patch.setattr(LiveAllocator, "put_slice", careless)


def scores_new_claims_alone(patch: Patch) -> None:
    """Refuse to score a pod with an allocated claim and one that is not."""
    scores = ActivePlugins.device_scores

    def strict(self: ActivePlugins, node: Any, allocations: Any) -> Any:
        if len(allocations) < len(self.pod.wanted) + len(self.pod.allocated):
            raise PluginError("fewer allocations than claims")
        return scores(self, node, allocations)

    patch.setattr(ActivePlugins, "device_scores", strict)


def never_wakes(patch: Patch) -> None:
    """Never wake pods that did not fit."""
    patch.setattr(SchedulingQueue, "wake", lambda *_: None)


def counts_one_by_one(patch: Patch) -> None:
    """Decide slowly: each requested device takes a microsecond."""
    decision = Scheduler._decide

    async def thorough(self: Scheduler, name: Any) -> Any:
        decided = await decision(self, name)
        wanted = decided[1].unallocated if decided and isinstance(decided[1], Demands) else ()
        asks = [each.exactly for claim in wanted for each in claim.spec.devices.requests]
        await sleep(self._clock, sum(ask.count for ask in asks if ask) / 1e6)
        return decided

    patch.setattr(Scheduler, "_decide", thorough)


def trusts_what_it_wrote(patch: Patch) -> None:
    """Assume that a slice which was written once still exists."""
    written = set[str]()

    def trusting(wanted: Any, observed: Any) -> Any:
        if str(wanted) in written:
            return {}
        written.add(str(wanted))
        return plan_pools(wanted, observed)

    patch.setattr(slices, "plan_pools", trusting)


def publishes_nothing_in_particular(patch: Patch) -> None:
    """Publish a slice for a node without devices."""

    def empty(wanted: Any, observed: Any) -> Any:
        if wanted or not observed:
            return plan_pools(wanted, observed)
        [first, *rest] = observed
        emptied = UpdateSlice(first | {"spec": first["spec"] | {"devices": []}})
        return {pool_of(first): (emptied, *map(DeleteSlice, rest))}

    patch.setattr(slices, "plan_pools", empty)


def asks_the_driver_once(patch: Patch) -> None:
    """Do not call a driver again that was down once."""
    patch.setattr(drivers, "RETRY_SECONDS", None)
    patch.setattr(running, "faults_of", lambda *args: replace(faults_of(*args), next_expiry=None))


def publishes_names_alone(patch: Patch) -> None:
    """Publish devices without their attributes."""
    document = Model.document
    patch.setattr(Model, "document", lambda self, slot: document(self, slot) | {"attributes": {}})


def remembers_what_a_reboot_took(patch: Patch) -> None:
    """Count claims as prepared that a reboot has wiped."""

    def forgetful(run: Run, event: Event) -> Any:
        after, effects = step(run, event)
        if isinstance(event, Rebooted):
            after = replace(after, prepared_at=event.at)
        return after, effects

    patch.setattr(running, "step", forgetful)


def gives_nothing_back(patch: Patch) -> None:
    """Keep deleted claims prepared."""
    patch.setattr(VirtualDrivers, "unprepare", lambda *_: None)


def gives_back_for_everybody(patch: Patch) -> None:
    """Unprepare a shared claim when one of its pods ends."""

    def hasty(self: PrepareCalls, old: Raw | None, new: Raw | None) -> None:
        before, after = ((each or {}).get("status", {}).get("reservedFor") for each in (old, new))
        if len(after or ()) < len(before or ()):
            VirtualDrivers.unprepare(self._drivers, (new or old or {})["metadata"]["uid"])  # type: ignore[arg-type]

    patch.setattr(PrepareCalls, "on_claim", hasty)


def waits_for_claims_to_the_last(patch: Patch) -> None:
    """Ignore the deletion of a pod whose claims are not prepared."""

    def deaf(run: Run, event: Event) -> Any:
        is_missed = isinstance(event, Deleted) and run.prepared_at is None
        return step(run, Passed(event.at) if is_missed else event)

    patch.setattr(running, "step", deaf)


MUTANTS: dict[str, Callable[[Patch], None]] = {
    "01-device-twice": gives_without_noting,
    "02-gang-shares-a-claim": waits_for_its_own_gang,
    "03-gang-takes-what-another-needs": places_pod_by_pod,
    "04-claim-of-a-pod-group": restores_what_was_before,
    "05-all-takes-no-more": takes_all_there_are,
    "06-incomplete-pool": counts_no_slices,
    "07-claims-of-one-node-and-of-many": scores_new_claims_alone,
    "08-gang-waits-for-a-restart": never_wakes,
    "09-counts-of-tenants": counts_one_by_one,
    "11-slice-is-gone-for-good": trusts_what_it_wrote,
    "12-driver-dies-in-the-window": asks_the_driver_once,
    "13-slice-without-devices": publishes_nothing_in_particular,
    "14-attributes-of-the-class": publishes_names_alone,
    "16-reboot-wipes-cdi": remembers_what_a_reboot_took,
    "19-same-name-new-claim": gives_nothing_back,
    "20-another-pods-claim": gives_back_for_everybody,
    "21-stuck-terminating": waits_for_claims_to_the_last,
}
