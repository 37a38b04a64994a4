"""
Preemption in a what-if: find the pods of lower priority that a pod or a gang preempts.

The scheduler uses the same functions. A what-if deletes no pods; it continues as if the victims no
longer existed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dryrack.kinds.rules.int_or_percent import desired_healthy
from dryrack.placement.gangs.dialects import Dialect, Membership, membership
from dryrack.placement.gangs.search import GangPlaced
from dryrack.placement.occupant import Occupant
from dryrack.placement.preemption import (
    DisruptionBudget,
    Preemption,
    Preemptor,
    disruption_group,
    preempt_anywhere,
    preempt_for_pod,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from dryrack.placement.framework import Profile
    from dryrack.placement.gangs.dialects import Gang
    from dryrack.placement.gangs.members import Member
    from dryrack.placement.outcomes import Cluster, Placed
    from dryrack.placement.preemption import DisruptionGroup, Victim
    from dryrack.placement.whatif.world import World

_NEVER = "Never"


class Preempting:
    """Finds victims in a cluster that holds the pods of a world."""

    def __init__(self, world: World, cluster: Cluster) -> None:
        self._world = world
        self._cluster = cluster
        memberships = ((pod.full_name, membership(pod)) for pod in world.pods)
        self._gangs = {pod: each for pod, each in memberships if isinstance(each, Membership)}
        # When the kubelet started each pod.
        self._starts = {
            (pod.metadata.namespace, pod.metadata.name): pod.status.start_time for pod in world.pods
        }
        # Pods that were preempted, which budgets count as disrupted.
        self._gone: list[Victim] = []

    def for_pod(self, member: Member, profile: Profile) -> tuple[Preemption, Placed] | None:
        """Return the least victims for a pod, and its placement without them."""
        spec = member.pod.spec
        priority = member.pod.spec.priority or 0
        is_able = profile.has("DefaultPreemption") and spec.preemption_policy != _NEVER
        if not is_able or not self._has_below(priority):
            return None
        preemptor = Preemptor(
            priority,
            group_of=self._group_of,
            started=self._start_time,
            is_grouped=self._is_grouped,
        )
        outcome = preempt_for_pod(member, self._cluster, preemptor, profile, self._budgets())
        return outcome if isinstance(outcome, tuple) else None

    def for_gang(
        self, gang: Gang, members: Sequence[Member], profile: Profile, place: Callable[[], object]
    ) -> Preemption | None:
        """Return the least victims for a gang; `place` tries to place the gang."""
        if not profile.has("GangPreemption") or not self._has_below(gang.priority):
            return None
        if any(each.pod.spec.preemption_policy == _NEVER for each in members):
            return None
        bound = frozenset(pod.full_name for pod in gang.members if pod.spec.node_name)
        preemptor = Preemptor(
            gang.priority,
            bound,
            self._group_of,
            started=self._start_time,
            is_grouped=self._is_grouped,
        )
        outcome = preempt_anywhere(
            self._cluster, preemptor, lambda: isinstance(place(), GangPlaced), self._budgets()
        )
        return outcome if isinstance(outcome, Preemption) else None

    def count_victims(self, victims: Sequence[Victim]) -> None:
        """Count these pods as disrupted."""
        self._gone += victims

    def _start_time(self, pod: Occupant) -> str | None:
        return self._starts.get(pod.name)

    def _has_below(self, priority: int) -> bool:
        numbers = self._cluster.fleet.priorities
        return any(count and each < priority for each, count in numbers.items())

    def _group_of(self, pod: Hashable) -> DisruptionGroup | None:
        gang = self._gangs.get(pod) if isinstance(pod, str) else None
        if gang is None:
            return None
        members = [name for name, each in self._gangs.items() if each.key == gang.key]
        definition = self._world.definitions.get(gang.key.definition)
        return disruption_group(gang.key, members, gang.min_count, definition)

    def _is_grouped(self, pod: Hashable) -> bool:
        gang = self._gangs.get(pod) if isinstance(pod, str) else None
        return gang is not None and gang.key.dialect is Dialect.POD_GROUP

    def _budgets(self) -> list[DisruptionBudget]:
        """Return the disruption budgets; in files, computed from the pods that are placed."""
        fleet = self._cluster.fleet
        budgets = []
        for each in self._world.context.disruption_budgets:
            spec = each.spec
            disrupted = frozenset(each.status.disrupted_pods)
            budget = DisruptionBudget(each.metadata.namespace, spec.selector, 0, disrupted)
            allowed = each.status.disruptions_allowed
            if allowed is None:
                covered = [pod for pod in self._world.pods if budget.covers(Occupant.of(pod))]
                healthy = sum(fleet.occupant(pod.full_name) is not None for pod in covered)
                desired = desired_healthy(spec.max_unavailable, spec.min_available, len(covered))
                allowed = healthy - desired
            else:
                allowed -= sum(budget.covers(victim.occupant) for victim in self._gone)
            budgets.append(replace(budget, allowed=max(0, allowed)))
        return budgets
