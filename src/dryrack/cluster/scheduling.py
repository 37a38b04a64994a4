"""
Run the scheduler on an existing cluster, beside its own scheduler.

Pods choose it by `schedulerName`. Pods that another scheduler has bound count as well.
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
    """Return the usual name of the account, the rights and the lease."""
    first = next(iter(settings.profiles))
    return first if first.endswith(_SUFFIX) else f"{first}-{_SUFFIX}"


def engine(around: EngineContext, settings: SchedulerSettings) -> Scheduler:
    """Return the scheduler on shared caches."""
    return Scheduler(
        around.client,
        clock=around.clock,
        chance=around.chance,
        informers=around.informers,
        settings=settings,
        metrics=around.metrics,
    )
