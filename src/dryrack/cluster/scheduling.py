"""
The scheduler on a cluster that is somebody else's, beside the scheduler that is there.

Pods choose it by `schedulerName`. All that is bound counts, whoever has bound it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.client.endpoints import CLAIMS, CLASSES, NODES, PODS, SLICES, VOLUME_CLAIMS
from dryrack.cluster.attached import Need
from dryrack.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.controllers import EngineContext
    from dryrack.placement import Profile

COMMAND = "dryrack schedule"
# What it cannot do without.
NEEDS = tuple(Need(each) for each in (PODS, NODES, CLAIMS, SLICES, CLASSES, VOLUME_CLAIMS))
_SUFFIX = "scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """What people decide about scheduling."""

    profiles: Mapping[str, Profile]
    """By what pods call it, the first of which it goes by itself."""

    @property
    def account(self) -> str:
        """What its account, its rights and its lease are called, where nobody says otherwise."""
        first = next(iter(self.profiles))
        return first if first.endswith(_SUFFIX) else f"{first}-{_SUFFIX}"


def engine(around: EngineContext, options: ScheduleOptions) -> Scheduler:
    """The scheduler, on shared caches."""
    return Scheduler(
        around.client,
        clock=around.clock,
        chance=around.chance,
        informers=around.informers,
        profiles=options.profiles,
        metrics=around.metrics,
    )
