"""
The scheduler on a cluster that is somebody else's, beside the scheduler that is there.

Pods choose it by `schedulerName`. All that is bound counts, whoever has bound it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.client.endpoints import (
    CLAIMS,
    CLASSES,
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICES,
    SLICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from dryrack.cluster.attached import Need
from dryrack.scheduler import Scheduler

if TYPE_CHECKING:
    from dryrack.controllers import EngineContext
    from dryrack.scheduler import SchedulerSettings

COMMAND = "dryrack schedule"
# What it cannot do without.
NEEDS = tuple(
    Need(each)
    for each in (
        *(PODS, NODES, CLAIMS, SLICES, CLASSES, NAMESPACES, POD_DISRUPTION_BUDGETS),
        *(VOLUME_CLAIMS, VOLUMES, STORAGE_CLASSES),
        *(SERVICES, REPLICATION_CONTROLLERS, REPLICA_SETS, STATEFUL_SETS),
    )
)
_SUFFIX = "scheduler"


def account_of(settings: SchedulerSettings) -> str:
    """What its account, its rights and its lease are called, where nobody says otherwise."""
    first = next(iter(settings.profiles))
    return first if first.endswith(_SUFFIX) else f"{first}-{_SUFFIX}"


def engine(around: EngineContext, settings: SchedulerSettings) -> Scheduler:
    """The scheduler, on shared caches."""
    return Scheduler(
        around.client,
        clock=around.clock,
        chance=around.chance,
        informers=around.informers,
        settings=settings,
        metrics=around.metrics,
    )
