"""
What a pod asks for that the scheduler does not honour yet, so that it can be told.

Only what would keep a pod from a node counts. A mere preference may go unmet on a real cluster,
too, so nobody is told of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.core import Pod


def unsupported(pod: Pod) -> tuple[str, ...]:
    """Fields of a pod that decided nothing."""
    found = []
    affinity = pod.spec.affinity
    for name, part in (
        ("podAffinity", affinity.pod_affinity if affinity else None),
        ("podAntiAffinity", affinity.pod_anti_affinity if affinity else None),
    ):
        if part is not None and part.required_during_scheduling_ignored_during_execution:
            found.append(f"required {name}")
    spread = pod.spec.topology_spread_constraints
    if any(each.when_unsatisfiable == "DoNotSchedule" for each in spread):
        found.append("topologySpreadConstraints with DoNotSchedule")
    return tuple(found)


def may_preempt(pod: Pod, priorities: Mapping[int, int]) -> bool:
    """Whether pods of lower priority run, by the number of those that do per priority."""
    if pod.spec.preemption_policy == "Never":
        return False
    return any(count and each < (pod.spec.priority or 0) for each, count in priorities.items())
