"""
Bugs that others had, each a scenario that holds here, and that a planted mutant makes fail.

A mutant changes one function so that it does what the bug did. The number of a scenario is that of
the bug in `docs/internals/known-bugs.md`, which tells of those that have none, and why.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
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
from dryrack.scenario import EmbeddedRun, load_scenario, run_in_virtual_time
from dryrack.scheduler import Scheduler
from dryrack.scheduler.demands import Demands
from dryrack.scheduler.queue import SchedulingQueue
from dryrack.scheduler.scheduler_cache import SchedulerCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.kinds.resource import ResourceSlice
    from dryrack.scenario import Outcome

Raw = dict[str, Any]
Patch = pytest.MonkeyPatch
MUSEUM = Path(__file__).parent / "museum"


def gives_without_noting(patch: Patch) -> None:
    """What was decided counts when the watch tells of it, and not before."""
    assume = SchedulerCache.assume
    patch.setattr(
        SchedulerCache,
        "assume",
        lambda self, pod, node, occupant, _: assume(self, pod, node, occupant, {}),
    )


def waits_for_its_own_gang(patch: Patch) -> None:
    """A claim that another member is about to have is not to be had."""
    decided = PartialPlacement.decide

    def blocked(self: PartialPlacement, member: Member, *args: Any) -> Any:
        if any(claim in self.given for claim in member.claims):
            return Unplaced("a claim is in the process of being allocated")
        return decided(self, member, *args)

    patch.setattr(PartialPlacement, "decide", blocked)
    patch.setattr(search, "place_exactly", lambda *_: ExactPlacement(()))


def places_pod_by_pod(patch: Patch) -> None:
    """Each member takes what suits itself."""
    patch.setattr(search, "place_exactly", lambda *_: ExactPlacement(()))


def restores_what_was_before(patch: Patch) -> None:
    """The claim of a group is remembered as it was before it was written to for the first pod."""
    claim = SchedulerCache.claim

    def stale(self: SchedulerCache, namespace: str, name: str) -> Any:
        found = claim(self, namespace, name)
        users = () if found is None else found.status.reserved_for
        if found is None or all(each.resource != "podgroups" for each in users):
            return found
        return changed(found, status=changed(found.status, allocation=None))

    patch.setattr(SchedulerCache, "claim", stale)


def takes_all_there_are(patch: Patch) -> None:
    """Selectors of a request for all devices are not asked."""
    check = Draft.check

    def careless(self: Draft, *features: Any) -> Ask:
        ask = check(self, *features)
        return changed(ask, selectors=()) if ask.takes_all else ask

    patch.setattr(Draft, "check", careless)


def counts_no_slices(patch: Patch) -> None:
    """A pool is as complete as what there is of it."""
    put = LiveAllocator.put_slice

    def careless(self: LiveAllocator, each: ResourceSlice) -> Any:
        pool = changed(each.spec.pool, resource_slice_count=1)
        return put(self, changed(each, spec=changed(each.spec, pool=pool)))

    patch.setattr(LiveAllocator, "put_slice", careless)


def scores_new_claims_alone(patch: Patch) -> None:
    """Who has a claim that is allocated already cannot be scored with one that is not."""
    scores = ActivePlugins.device_scores

    def strict(self: ActivePlugins, node: Any, allocations: Any) -> Any:
        if len(allocations) < len(self.pod.wanted) + len(self.pod.allocated):
            raise PluginError("fewer allocations than claims")
        return scores(self, node, allocations)

    patch.setattr(ActivePlugins, "device_scores", strict)


def never_wakes(patch: Patch) -> None:
    """Who did not fit is not told that something is free."""
    patch.setattr(SchedulingQueue, "wake", lambda *_: None)


def counts_one_by_one(patch: Patch) -> None:
    """Each device that is asked for takes a microsecond, in which nobody else is decided."""
    decision = Scheduler._decide

    async def thorough(self: Scheduler, name: Any) -> Any:
        decided = await decision(self, name)
        wanted = decided[1].unallocated if decided and isinstance(decided[1], Demands) else ()
        asks = [each.exactly for claim in wanted for each in claim.spec.devices.requests]
        await sleep(self._clock, sum(ask.count for ask in asks if ask) / 1e6)
        return decided

    patch.setattr(Scheduler, "_decide", thorough)


def trusts_what_it_wrote(patch: Patch) -> None:
    """What was once written as it is wanted is taken to be there."""
    written = set[str]()

    def trusting(wanted: Any, observed: Any) -> Any:
        if str(wanted) in written:
            return {}
        written.add(str(wanted))
        return plan_pools(wanted, observed)

    patch.setattr(slices, "plan_pools", trusting)


def publishes_nothing_in_particular(patch: Patch) -> None:
    """A node that has no devices has a slice all the same."""

    def empty(wanted: Any, observed: Any) -> Any:
        if wanted or not observed:
            return plan_pools(wanted, observed)
        [first, *rest] = observed
        emptied = UpdateSlice(first | {"spec": first["spec"] | {"devices": []}})
        return {pool_of(first): (emptied, *map(DeleteSlice, rest))}

    patch.setattr(slices, "plan_pools", empty)


def asks_the_driver_once(patch: Patch) -> None:
    """A driver that was not there is not asked again, neither by and by nor when it is back."""
    patch.setattr(drivers, "RETRY_SECONDS", None)
    patch.setattr(running, "faults_of", lambda *args: replace(faults_of(*args), next_expiry=None))


def publishes_names_alone(patch: Patch) -> None:
    """Devices without what their vendor says of them."""
    document = Model.document
    patch.setattr(Model, "document", lambda self, slot: document(self, slot) | {"attributes": {}})


def remembers_what_a_reboot_took(patch: Patch) -> None:
    """What was prepared before a reboot counts as prepared after it."""

    def forgetful(run: Run, event: Event) -> Any:
        after, effects = step(run, event)
        if isinstance(event, Rebooted):
            after = replace(after, prepared_at=event.at)
        return after, effects

    patch.setattr(running, "step", forgetful)


def gives_nothing_back(patch: Patch) -> None:
    """What is prepared stays so when its claim is gone."""
    patch.setattr(VirtualDrivers, "unprepare", lambda *_: None)


def gives_back_for_everybody(patch: Patch) -> None:
    """Whoever leaves a claim takes its devices along."""

    def hasty(self: PrepareCalls, old: Raw | None, new: Raw | None) -> None:
        before, after = ((each or {}).get("status", {}).get("reservedFor") for each in (old, new))
        if len(after or ()) < len(before or ()):
            VirtualDrivers.unprepare(self._drivers, (new or old or {})["metadata"]["uid"])  # type: ignore[arg-type]

    patch.setattr(PrepareCalls, "on_claim", hasty)


def waits_for_claims_to_the_last(patch: Patch) -> None:
    """A pod whose claims are not prepared does not hear that it is deleted."""

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


def played(name: str) -> Outcome:
    return run_in_virtual_time(load_scenario(MUSEUM / f"{name}.yaml"), EmbeddedRun())


def test_every_exhibit_has_its_mutant() -> None:
    """And every mutant its exhibit."""
    assert sorted(path.stem for path in MUSEUM.glob("*.yaml")) == sorted(MUTANTS)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_bug_is_not_here(name: str) -> None:
    """The scenario holds."""
    assert played(name).failures == ()


@pytest.mark.parametrize("name", MUTANTS)
def test_the_bug_would_be_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the mutant it does not: an invariant is broken, or what is expected does not come."""
    MUTANTS[name](monkeypatch)
    assert not played(name).held
