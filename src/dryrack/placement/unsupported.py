"""
What a pod asks for that the scheduler does not honour yet, so that it can be told.

Only what would keep a pod from a node counts. A mere preference may go unmet on a real cluster,
too, so nobody is told of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.expansion.extended_resources import classes_by_resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dryrack.kinds.core import Pod
    from dryrack.kinds.resource import DeviceClass
    from dryrack.placement.demand import Amounts


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


def backed_by_devices(amounts: Amounts, classes: Iterable[DeviceClass]) -> tuple[str, ...]:
    """Extended resources for which Kubernetes would make a claim of a device class."""
    served = classes_by_resource(classes)
    wanted = sorted(each for each in amounts if isinstance(each, str) and each in served)
    return tuple(
        f"extended resource {each} of DeviceClass {served[each].metadata.name}" for each in wanted
    )


def may_preempt(pod: Pod, priorities: Mapping[int, int]) -> bool:
    """Whether pods of lower priority run, by the number of those that do per priority."""
    if pod.spec.preemption_policy == "Never":
        return False
    return any(count and each < (pod.spec.priority or 0) for each, count in priorities.items())
