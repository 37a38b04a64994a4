"""
Preemption in a what-if: find the pods of lower priority that a pod or a gang preempts.

The scheduler uses the same functions. A what-if deletes no pods; it continues as if the victims no
longer existed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.quota_usage.admission_kinds import PodDisruptionBudget
from dryrack.kinds.rules.int_or_percent import desired_healthy
from dryrack.placement.gangs.dialects import Membership, membership
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

    from dryrack.kinds.core import Pod
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
        said = ((pod.full_name, membership(pod)) for pod in world.pods)
        self._gangs = {pod: each for pod, each in said if isinstance(each, Membership)}
        # When the kubelet of its node has taken up each pod.
        self._starts = {
            (pod.metadata.namespace, pod.metadata.name): pod.status.start_time for pod in world.pods
        }
        # Pods that went already, which budgets count as disrupted.
        self._gone: list[Victim] = []

    def for_pod(self, member: Member, profile: Profile) -> tuple[Preemption, Placed] | None:
        """Return the least that has to go for a pod, and where the pod goes then."""
        spec = member.pod.spec
        priority = member.pod.spec.priority or 0
        is_able = profile.has("DefaultPreemption") and spec.preemption_policy != _NEVER
        if not is_able or not self._has_below(priority):
            return None
        preemptor = Preemptor(priority, group_of=self._group_of, started=self._start_time)
        found = preempt_for_pod(member, self._cluster, preemptor, profile, self._budgets())
        return found if isinstance(found, tuple) else None

    def for_gang(
        self, gang: Gang, members: Sequence[Member], profile: Profile, place: Callable[[], object]
    ) -> Preemption | None:
        """Return the least that has to go for a gang; `place` tries to place the gang."""
        if not profile.has("GangPreemption") or not self._has_below(gang.priority):
            return None
        if any(each.pod.spec.preemption_policy == _NEVER for each in members):
            return None
        bound = frozenset(pod.full_name for pod in gang.members if pod.spec.node_name)
        preemptor = Preemptor(gang.priority, bound, self._group_of, started=self._start_time)
        found = preempt_anywhere(
            self._cluster, preemptor, lambda: isinstance(place(), GangPlaced), self._budgets()
        )
        return found if isinstance(found, Preemption) else None

    def went(self, victims: Sequence[Victim]) -> None:
        """Count these pods as disrupted."""
        self._gone += victims

    def _start_time(self, pod: Occupant) -> str | None:
        return self._starts.get(pod.name)

    def _has_below(self, priority: int) -> bool:
        numbers = self._cluster.fleet.priorities
        return any(count and each < priority for each, count in numbers.items())

    def _group_of(self, pod: Hashable) -> DisruptionGroup | None:
        said = self._gangs.get(pod) if isinstance(pod, str) else None
        if said is None:
            return None
        members = [name for name, each in self._gangs.items() if each.key == said.key]
        definition = self._world.definitions.get(said.key.definition)
        return disruption_group(said.key, members, said.min_count, definition)

    def _budgets(self) -> list[DisruptionBudget]:
        return [
            self._budget(each)
            for each in self._world.facts
            if isinstance(each, PodDisruptionBudget)
        ]

    def _budget(self, each: PodDisruptionBudget) -> DisruptionBudget:
        namespace = each.metadata.namespace
        selector = each.spec.selector
        disrupted = frozenset(each.status.disrupted_pods)
        counted = DisruptionBudget(namespace, selector, 0, disrupted)
        allowed = each.status.disruptions_allowed
        if allowed is None:
            covered = [pod for pod in self._world.pods if counted.covers(Occupant.of(pod))]
            spec = each.spec
            healthy = sum(map(self._is_running, covered))
            allowed = healthy - desired_healthy(
                spec.max_unavailable, spec.min_available, len(covered)
            )
        else:
            allowed -= sum(counted.covers(victim.occupant) for victim in self._gone)
        return DisruptionBudget(namespace, selector, max(0, allowed), disrupted)

    def _is_running(self, pod: Pod) -> bool:
        return self._cluster.fleet.occupant(pod.full_name) is not None
