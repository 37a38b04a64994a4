"""
PostFilter: what is done for pods and gangs that fit nowhere.

If pods of lower priority are in the way, as few and as little of them as possible go. Room is kept
for those in whose favour that is, and, where the profile has ResourceReservation, for a gang that
waits: what fits of it now is not given to those who come later. A gang that would not even fit into
an empty cluster is kept nothing, and whoever is kept something loses it after a while for good.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from dryrack.base.text import listed
from dryrack.kinds.paths import get
from dryrack.placement import (
    GangPlaced,
    Member,
    MemberPlaced,
    NoPreemption,
    Preemptor,
    Reservation,
    Simulation,
    is_backfill,
    no_victims,
    place_gang_now,
    preempt_anywhere,
    preempt_for_pod,
)
from dryrack.scheduler.preemption import disruption_budgets

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from dryrack.client.informer import Name
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw
    from dryrack.placement import (
        DisruptionGroup,
        Gang,
        GangRefused,
        Occupant,
        Preemption,
        Profile,
        Unplaced,
    )
    from dryrack.scheduler.cluster_view import View
    from dryrack.scheduler.demands import Demands
    from dryrack.scheduler.gang_table import GangTable
    from dryrack.scheduler.preemption import Evictions
    from dryrack.scheduler.queue import Rank

# As long as kubenexus keeps a reservation, unless its arguments say otherwise (ttlSeconds).
RESERVATION_SECONDS = 1800.0
# Victims have their grace period, and their claims have to be released.
_NOMINATION_SECONDS = 300.0
NEVER = "not eligible due to preemptionPolicy=Never."
_LEAVING = "not eligible due to a terminating pod on the nominated node."
# What DynamicResources says where it deallocates no claim: there is none, or it would be in vain.
_CLAIMS = ("no new claims to deallocate", "still not schedulable")


@dataclass(frozen=True, slots=True)
class Help:
    """Who goes, if anybody, and what is said beside the refusal."""

    message: str = ""
    preemption: Preemption | None = None
    # For how long room is kept for it, if it is: then it has to be decided again.
    keeps_seconds: float | None = None

    def beside(self, refusal: str) -> str:
        """The refusal with what is said about preemption."""
        told = self.message
        if self.preemption is not None:
            names = ["/".join(victim.occupant.name) for victim in self.preemption.victims]
            told = f"preemption: the scheduler deletes pods of lower priority: {listed(names)}"
        return f"{refusal.rstrip('.')}. {told}" if told else refusal


class PostFilter:
    """Decides about victims and reservations on the scheduler's books."""

    def __init__(
        self, view: View, table: GangTable, evictions: Evictions, clock: Timekeeper
    ) -> None:
        self._view = view
        self._table = table
        self._clock = clock
        self._evictions = evictions
        # Those whose reservation has run out: they get no other.
        self._spent: set[Hashable] = set()

    def begin(self, unit: Hashable, rank: Rank, pods: Sequence[Raw], profile: Profile) -> None:
        """A decision about these pods begins: the books show what is kept from them."""
        kept = self._view.reservations
        if not len(kept):
            return
        expired = kept.expire(self._clock.now())
        self._spent.update(expired)
        may_go_again = profile.has("Backfill") and all(map(_is_backfill, pods))
        kept.bind(unit, self._order(rank), may_go_again=may_go_again)
        if expired:
            self._view.wake()

    def done(self, unit: Hashable) -> None:
        """It is placed, or gone: nothing is kept for it."""
        self._evictions.forget(unit)
        self._spent.discard(unit)
        if self._view.reservations.drop(unit):
            self._view.wake()

    def nominated(self, unit: Hashable) -> Mapping[tuple[str, str], str]:
        """The node where room is kept, for each pod of the unit for which it is."""
        kept = self._view.reservations.of(unit)
        return {} if kept is None else {each.occupant.name: each.node for each in kept.plan}

    def leaving(self) -> frozenset[Name]:
        """Pods that were sent away; caches may not show it yet."""
        return self._evictions.leaving()

    async def evict(self, unit: Hashable, preemption: Preemption, pods: Sequence[Raw]) -> None:
        """Sends the victims away in favour of these pods."""
        await self._evictions.evict(unit, preemption, pods)

    def for_pod(
        self, name: Name, wanted: Demands, rank: Rank, *, profile: Profile, refused: Unplaced
    ) -> Help:
        """A pod that fits nowhere; what is said is what kube-scheduler's plugins say."""
        if not profile.has("DefaultPreemption") or refused.unresolvable is None:
            return Help()
        found = self._pod_preemption(name, wanted, rank, profile, refused.unresolvable)
        if found.preemption is not None or not profile.has("DynamicResources"):
            return found
        has_claims = bool(wanted.names or wanted.extended)
        return replace(found, message=f"{_CLAIMS[has_claims]}, {found.message}")

    def _pod_preemption(
        self, name: Name, wanted: Demands, rank: Rank, profile: Profile, unresolvable: int
    ) -> Help:
        priority = wanted.pod.spec.priority or 0
        refusal = self._ineligible(name, wanted.pod.spec.preemption_policy)
        if refusal:
            return Help(f"preemption: {refusal}")
        if not self._has_below(priority):
            return self._unhelpful(name, no_victims(self._view.cluster, unresolvable))
        preemptor = Preemptor(priority, group_of=self._group_of(), started=self._started)
        member = Member(wanted.pod, wanted.unallocated, wanted.allocated, wanted.extended)
        budgets = disruption_budgets(self._view.budgets.all())
        found = preempt_for_pod(member, self._view.cluster, preemptor, profile, budgets)
        if isinstance(found, NoPreemption):
            return self._unhelpful(name, found)
        preemption, placed = found
        kept = MemberPlaced(member, placed.node, placed.amounts, placed.given)
        self._keep(name, rank, (kept,), _NOMINATION_SECONDS)
        return Help(preemption=preemption)

    def _unhelpful(self, name: Name, found: NoPreemption) -> Help:
        """Clear the nominated node of a pod that no preemption helps, as kube-scheduler does."""
        if self._view.reservations.drop(name):
            self._view.wake()
        return Help(found.message)

    def for_gang(
        self,
        gang: Gang,
        members: Sequence[Member],
        bound: Sequence[Name],
        rank: Rank,
        *,
        profile: Profile,
        refused: GangRefused,
    ) -> Help:
        """A gang that does not fit."""
        place = partial(
            place_gang_now, gang, members, self._view.cluster, profile=profile, bound=len(bound)
        )
        found = self._gang_preemption(gang, members, bound, place, rank, profile)
        if found.preemption is None and not self._evictions.is_waiting(gang.key):
            self._reserve(gang, place, rank, profile, refused)
        kept = self._view.reservations.of(gang.key)
        left = None if kept is None else kept.expires - self._clock.now()
        return replace(found, keeps_seconds=left)

    def _gang_preemption(
        self,
        gang: Gang,
        members: Sequence[Member],
        bound: Sequence[Name],
        place: Callable[[], object],
        rank: Rank,
        profile: Profile,
    ) -> Help:
        yields = self._yielding(gang, profile)
        if not profile.has("GangPreemption") or not (
            self._has_below(gang.priority) or yields is not _nobody
        ):
            return Help()
        policies = {member.pod.spec.preemption_policy for member in members}
        refusal = self._ineligible(gang.key, "Never" if "Never" in policies else None)
        if refusal:
            return Help(f"preemption: {refusal}")
        preemptor = Preemptor(
            gang.priority, frozenset(bound), self._group_of(), yields, self._started
        )
        budgets = disruption_budgets(self._view.budgets.all())
        found = preempt_anywhere(
            self._view.cluster, preemptor, lambda: isinstance(place(), GangPlaced), budgets
        )
        if isinstance(found, NoPreemption):
            return Help(found.message)
        with Simulation(self._view.cluster) as simulation:
            for victim in found.victims:
                simulation.remove_pod(victim.key)
            outcome = place()
        assert isinstance(outcome, GangPlaced), "it was found to fit"
        self._keep(gang.key, rank, outcome.placements, _NOMINATION_SECONDS)
        return Help(preemption=found)

    def _yielding(self, gang: Gang, profile: Profile) -> Callable[[Occupant], bool]:
        """Backfill uses what is kept for a gang, and goes when the gang can come."""
        is_kept = self._view.reservations.of(gang.key) is not None
        if is_kept and profile.has("Backfill"):
            return _may_be_sent_away
        return _nobody

    def _reserve(
        self,
        gang: Gang,
        place: Callable[[], object],
        rank: Rank,
        profile: Profile,
        refused: GangRefused,
    ) -> None:
        """Keeps for a gang what fits of it now."""
        if not profile.has("ResourceReservation") or gang.key in self._spent:
            return
        kept = self._view.reservations.of(gang.key)
        if kept is None and not self._fits_when_empty(place):
            return
        seconds = profile.args.get("ResourceReservation", {}).get("ttlSeconds")
        until = RESERVATION_SECONDS if seconds is None else float(seconds)
        left = until if kept is None else kept.expires - self._clock.now()
        self._keep(gang.key, rank, refused.fitting, left)

    def _fits_when_empty(self, place: Callable[[], object]) -> bool:
        fleet = self._view.cluster.fleet
        with Simulation(self._view.cluster) as simulation:
            for state in fleet.states():
                for key in list(state.occupants):
                    simulation.remove_pod(key)
            return isinstance(place(), GangPlaced)

    def _keep(
        self, unit: Hashable, rank: Rank, plan: Sequence[MemberPlaced], seconds: float
    ) -> None:
        until = self._clock.now() + seconds
        self._view.reservations.put(Reservation(unit, self._order(rank), tuple(plan), until))

    def _order(self, rank: Rank) -> tuple[int, str]:
        """Those that starve come first, as in the queue."""
        starves = rank.starves_at is not None and rank.starves_at <= self._clock.now()
        return (-(2**31) if starves else -rank.priority, rank.created)

    def _has_below(self, priority: int) -> bool:
        """Whether any pod is on a node, or about to be, that may have to go."""
        numbers = self._view.cluster.fleet.priorities
        return any(count and each < priority for each, count in numbers.items())

    def _ineligible(self, unit: Hashable, policy: str | None) -> str:
        if policy == "Never":
            return NEVER
        return _LEAVING if self._evictions.is_waiting(unit) else ""

    def _group_of(self) -> Callable[[Hashable], DisruptionGroup | None]:
        return partial(self._table.disruption_group, leaving=self._evictions.leaving())

    def _started(self, pod: Occupant) -> str | None:
        found = self._view.pods.get(*pod.name)
        return None if found is None else found.get("status", {}).get("startTime")


def _nobody(_: Occupant) -> bool:
    return False


def _may_be_sent_away(pod: Occupant) -> bool:
    return is_backfill(pod.labels, pod.priority)


def _is_backfill(pod: Raw) -> bool:
    labels = get(pod["metadata"], "labels", {})
    return is_backfill(labels, pod["spec"].get("priority"))
