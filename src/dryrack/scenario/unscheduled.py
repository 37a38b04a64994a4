"""
Liveness: at rest no pod waits that would find a node if it were decided now.

The decision is made by the code of the scheduler, on the objects as they are. A scheduler that has
lost a pod out of its queue, or still counts what is free as taken, is found out so.
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
    """Whether it waits for the scheduler of a control plane, and for nothing else."""
    is_named = (pod.spec.scheduler_name or DEFAULT_SCHEDULER) in SchedulerSettings().profiles
    return is_named and not pod.spec.scheduling_gates


def unscheduled(objects: Iterable[KubernetesObject]) -> Iterator[Violation]:
    """Pods, and gangs, that would be placed if everybody who waits were served now."""
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
