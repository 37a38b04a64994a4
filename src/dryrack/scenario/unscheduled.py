"""
Liveness: at rest, no pod waits that could be scheduled now.

The code of the scheduler decides on the current objects. This finds a scheduler that has lost a pod
from its queue, or that counts free devices as taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.cluster import SeededChance
from dryrack.placement import Settings, World, what_if
from dryrack.scenario.invariants.violations import Invariant, Violation
from dryrack.scheduler import SchedulerSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dryrack.kinds.core import Pod
    from dryrack.kinds.meta import KubernetesObject

DEFAULT_SCHEDULER = "default-scheduler"


def _is_ours(pod: Pod) -> bool:
    """Return whether a pod waits only for the scheduler of a control plane."""
    is_named = (pod.spec.scheduler_name or DEFAULT_SCHEDULER) in SchedulerSettings().profiles
    return is_named and not pod.spec.scheduling_gates


def unscheduled(objects: Iterable[KubernetesObject]) -> Iterator[Violation]:
    """Return violations for pods and gangs that could be placed if all were tried now."""
    world = World.of(tuple(objects))
    waiting = [
        pod.full_name
        for pod in world.pods
        if not pod.spec.node_name and not pod.metadata.deletion_timestamp and _is_ours(pod)
    ]
    if not waiting:
        return
    found = what_if(world, Settings(chance=SeededChance()))
    for name in waiting:
        if name in found.nodes:
            message = f"is pending, although it fits on node {found.nodes[name]}"
            yield Violation(Invariant.NO_STARVATION, f"pod {name}", message)
