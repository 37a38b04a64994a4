"""
PostFilter: preemption and reservations for pods and gangs that fit nowhere.

If pods of lower priority use the capacity, as few and as unimportant ones as possible are
preempted. What they release is reserved for the preemptor. If the profile has ResourceReservation,
the members of a waiting gang that fit now get a reservation, too, so that later pods cannot take
their place. A gang that would not fit into an empty cluster gets none. A reservation expires after
some time, and is not renewed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from dryrack.base.text import listed
from dryrack.kinds.paths import get
from dryrack.placement import (
    GangPlaced,
    GangRefused,
    Member,
    MemberPlaced,
    NoPreemption,
    Preemptor,
    Reservation,
    Simulation,
    count_members,
    group_texts,
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
        Occupant,
        Preemption,
        Profile,
        Unplaced,
    )
    from dryrack.scheduler.demands import Demands
    from dryrack.scheduler.gang_table import GangTable
    from dryrack.scheduler.preemption import Evictions
    from dryrack.scheduler.queue import Rank
    from dryrack.scheduler.scheduler_cache import SchedulerCache

# The default of kubenexus (argument ttlSeconds).
RESERVATION_SECONDS = 1800.0
# Victims have their grace period, and their claims have to be released.
_NOMINATION_SECONDS = 300.0
NEVER = "not eligible due to preemptionPolicy=Never."
_TERMINATING = "not eligible due to a terminating pod on the nominated node."


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """The pods to preempt, if there are any, and a message for the report."""

    message: str = ""
    preemption: Preemption | None = None
    # How long capacity stays reserved for the unit, if it is; then the unit is decided again.
    reserved_seconds: float | None = None

    def add_to(self, refusal: str) -> str:
        """Return the message of a refusal, followed by the result of preemption."""
        return f"{refusal.rstrip('.')}. {self.message}" if self.message else refusal


class PostFilter:
    """Chooses victims and makes reservations on the scheduler's cache."""

    def __init__(
        self, cache: SchedulerCache, table: GangTable, evictions: Evictions, clock: Timekeeper
    ) -> None:
        self._cache = cache
        self._table = table
        self._clock = clock
        self._evictions = evictions
        # Units whose reservation has expired: they get no other.
        self._spent: set[Hashable] = set()

    def begin_attempt(
        self, unit: Hashable, rank: Rank, pods: Sequence[Raw], profile: Profile
    ) -> None:
        """Before a decision about these pods, hide the capacity that is reserved for others."""
        reservations = self._cache.reservations
        if not len(reservations):
            return
        expired = reservations.expire(self._clock.now())
        self._spent.update(expired)
        may_go_again = profile.has("Backfill") and all(map(_is_backfill, pods))
        reservations.bind(unit, self._order(rank), may_go_again=may_go_again)
        if expired:
            self._cache.wake()

    def forget(self, unit: Hashable) -> None:
        """Drop the reservation of a unit that is placed or deleted."""
        self._evictions.forget(unit)
        self._spent.discard(unit)
        if self._cache.reservations.drop(unit):
            self._cache.wake()

    def nominated_nodes(self, unit: Hashable) -> Mapping[tuple[str, str], str]:
        """Return the node on which capacity is reserved for each pod of the unit."""
        reservation = self._cache.reservations.of(unit)
        if reservation is None:
            return {}
        return {each.occupant.name: each.node for each in reservation.plan}

    def victims(self) -> frozenset[Name]:
        """Return pods that were preempted and still exist; informers may not show it yet."""
        return self._evictions.victims()

    async def evict(
        self,
        unit: Hashable,
        preemption: Preemption,
        pods: Sequence[Raw],
        group: Raw | None = None,
    ) -> None:
        """Delete the victims in favour of these pods, or of their group."""
        await self._evictions.evict(unit, preemption, pods, group)

    def run_for_pod(
        self, name: Name, wanted: Demands, rank: Rank, *, profile: Profile, refused: Unplaced
    ) -> PostFilterResult:
        """Look for a preemption for a pod; the messages are those of kube-scheduler's plugins."""
        if not profile.has("DefaultPreemption") or refused.unresolvable is None:
            return PostFilterResult()
        result = self._preempt_for_pod(name, wanted, rank, profile, refused.unresolvable)
        if result.preemption is not None or not profile.has("DynamicResources"):
            return result
        has_claims = bool(wanted.names or wanted.extended)
        texts = self._cache.cluster.fleet.behaviour.no_deallocation_texts
        reasons = filter(None, (texts[has_claims], result.message))
        return replace(result, message=", ".join(reasons))

    def _preempt_for_pod(
        self, name: Name, wanted: Demands, rank: Rank, profile: Profile, unresolvable: int
    ) -> PostFilterResult:
        priority = wanted.pod.spec.priority or 0
        obstacle = self._find_ineligibility(name, wanted.pod.spec.preemption_policy)
        if obstacle:
            return PostFilterResult(f"preemption: {obstacle}")
        if not self._has_pods_below(priority):
            failure = no_victims(self._cache.cluster, unresolvable)
            return self._clear_nomination(name, failure)
        preemptor = Preemptor(
            priority,
            group_of=self._group_of(),
            started=self._start_time,
            is_grouped=self._table.is_in_native_group,
        )
        member = Member(wanted.pod, wanted.unallocated, wanted.allocated, wanted.extended)
        budgets = disruption_budgets(self._cache.budgets.all())
        result = preempt_for_pod(member, self._cache.cluster, preemptor, profile, budgets)
        if isinstance(result, NoPreemption):
            return self._clear_nomination(name, result)
        preemption, placed = result
        placement = MemberPlaced(member, placed.node, placed.amounts, placed.given)
        self._put_reservation(name, rank, (placement,), _NOMINATION_SECONDS)
        text = self._cache.cluster.fleet.behaviour.preemption_text
        message = text.format(node=placed.node, victims=len(preemption.victims))
        return PostFilterResult(message or _name_victims(preemption), preemption)

    def _clear_nomination(self, name: Name, failure: NoPreemption) -> PostFilterResult:
        """Clear the nominated node of a pod that no preemption helps, as kube-scheduler does."""
        if self._cache.reservations.drop(name):
            self._cache.wake()
        return PostFilterResult(failure.message)

    def run_for_gang(
        self,
        gang: Gang,
        members: Sequence[Member],
        bound: Sequence[Name],
        rank: Rank,
        *,
        profile: Profile,
        refused: GangRefused,
    ) -> PostFilterResult:
        """Look for a preemption for a gang, or else reserve the capacity that fits of it now."""
        place = partial(
            place_gang_now, gang, members, self._cache.cluster, profile=profile, bound=len(bound)
        )
        if group_texts(gang.key, self._cache.cluster.fleet.behaviour) is None:
            result = self._preempt_for_gang(gang, members, bound, place, rank, profile)
        else:
            result = self._preempt_for_group(gang, members, bound, place, rank, profile)
        if result.preemption is None and not self._evictions.is_waiting(gang.key):
            self._reserve(gang, place, rank, profile, refused)
        reservation = self._cache.reservations.of(gang.key)
        if reservation is None:
            return result
        return replace(result, reserved_seconds=reservation.expires - self._clock.now())

    def _preempt_for_group(
        self,
        gang: Gang,
        members: Sequence[Member],
        bound: Sequence[Name],
        place: Callable[[], GangPlaced | GangRefused],
        rank: Rank,
        profile: Profile,
    ) -> PostFilterResult:
        """Look for a preemption for a native group; the messages are those of kube-scheduler."""
        texts = group_texts(gang.key, self._cache.cluster.fleet.behaviour)
        assert texts is not None, "the release has messages about groups"
        outcomes: list[GangPlaced | GangRefused] = []

        def note() -> GangPlaced | GangRefused:
            outcomes.append(place())
            return outcomes[-1]

        result = self._preempt_for_gang(gang, members, bound, note, rank, profile)
        policies = {member.pod.spec.preemption_policy for member in members}
        if "Never" not in policies and not self._has_pods_below(gang.priority):
            return replace(result, message=texts.preemption + texts.no_victims)
        if result.preemption is not None:
            text = texts.found.format(victims=len(result.preemption.victims))
            return replace(result, message=texts.preemption + text)
        if self._evictions.is_waiting(gang.key):
            return replace(result, message=texts.preemption + texts.ongoing)
        # The first outcome is without any of the pods that may be preempted.
        if outcomes and isinstance(outcomes[0], GangRefused):
            text, _ = count_members(texts, gang, members, outcomes[0], len(bound))
        elif "Never" in policies:
            text = NEVER
        else:
            return replace(result, message=texts.deallocation)
        return replace(result, message=f"{texts.deallocation}, {texts.preemption}{text}")

    def _preempt_for_gang(
        self,
        gang: Gang,
        members: Sequence[Member],
        bound: Sequence[Name],
        place: Callable[[], GangPlaced | GangRefused],
        rank: Rank,
        profile: Profile,
    ) -> PostFilterResult:
        # Backfill pods use what is reserved for a gang, and are deleted when the gang can start.
        has_reservation = self._cache.reservations.of(gang.key) is not None
        preempts_backfill = has_reservation and profile.has("Backfill")
        if not profile.has("GangPreemption") or not (
            self._has_pods_below(gang.priority) or preempts_backfill
        ):
            return PostFilterResult()
        policies = {member.pod.spec.preemption_policy for member in members}
        obstacle = self._find_ineligibility(gang.key, "Never" if "Never" in policies else None)
        if obstacle:
            return PostFilterResult(f"preemption: {obstacle}")

        def yields(pod: Occupant) -> bool:
            return preempts_backfill and is_backfill(pod.labels, pod.priority)

        preemptor = Preemptor(
            gang.priority,
            frozenset(bound),
            self._group_of(),
            yields,
            self._start_time,
            self._table.is_in_native_group,
        )
        budgets = disruption_budgets(self._cache.budgets.all())
        preemption = preempt_anywhere(
            self._cache.cluster, preemptor, lambda: isinstance(place(), GangPlaced), budgets
        )
        if isinstance(preemption, NoPreemption):
            return PostFilterResult(preemption.message)
        with Simulation(self._cache.cluster) as simulation:
            for victim in preemption.victims:
                simulation.remove_pod(victim.key)
            outcome = place()
        assert isinstance(outcome, GangPlaced), "the gang fits without the victims"
        self._put_reservation(gang.key, rank, outcome.placements, _NOMINATION_SECONDS)
        return PostFilterResult(_name_victims(preemption), preemption)

    def _reserve(
        self,
        gang: Gang,
        place: Callable[[], object],
        rank: Rank,
        profile: Profile,
        refused: GangRefused,
    ) -> None:
        """Reserve the capacity for those members of a gang that fit now."""
        if not profile.has("ResourceReservation") or gang.key in self._spent:
            return
        reservation = self._cache.reservations.of(gang.key)
        if reservation is None and not self._fits_into_empty_cluster(place):
            return
        ttl_seconds = profile.args.get("ResourceReservation", {}).get("ttlSeconds")
        seconds = RESERVATION_SECONDS if ttl_seconds is None else float(ttl_seconds)
        if reservation is not None:
            seconds = reservation.expires - self._clock.now()
        self._put_reservation(gang.key, rank, refused.fitting, seconds)

    def _fits_into_empty_cluster(self, place: Callable[[], object]) -> bool:
        fleet = self._cache.cluster.fleet
        with Simulation(self._cache.cluster) as simulation:
            for state in fleet.states():
                for key in list(state.occupants):
                    simulation.remove_pod(key)
            return isinstance(place(), GangPlaced)

    def _put_reservation(
        self, unit: Hashable, rank: Rank, plan: Sequence[MemberPlaced], seconds: float
    ) -> None:
        until = self._clock.now() + seconds
        self._cache.reservations.put(Reservation(unit, self._order(rank), tuple(plan), until))

    def _order(self, rank: Rank) -> tuple[int, str]:
        """Return the sort key of a unit; starving gangs come first, as in the queue."""
        starves = rank.starves_at is not None and rank.starves_at <= self._clock.now()
        return (-(2**31) if starves else -rank.priority, rank.created)

    def _has_pods_below(self, priority: int) -> bool:
        """Return whether a pod of a lower priority is on a node, or about to be bound."""
        counts = self._cache.cluster.fleet.priorities
        return any(count and each < priority for each, count in counts.items())

    def _find_ineligibility(self, unit: Hashable, policy: str | None) -> str:
        if policy == "Never":
            return NEVER
        return _TERMINATING if self._evictions.is_waiting(unit) else ""

    def _group_of(self) -> Callable[[Hashable], DisruptionGroup | None]:
        return partial(self._table.disruption_group, victims=self._evictions.victims())

    def _start_time(self, pod: Occupant) -> str | None:
        raw = self._cache.pods.get(*pod.name)
        return None if raw is None else raw.get("status", {}).get("startTime")


def _name_victims(preemption: Preemption) -> str:
    names = ["/".join(victim.occupant.name) for victim in preemption.victims]
    return f"preemption: the scheduler deletes pods of lower priority: {listed(names)}"


def _is_backfill(pod: Raw) -> bool:
    labels = get(pod["metadata"], "labels", {})
    return is_backfill(labels, pod["spec"].get("priority"))
