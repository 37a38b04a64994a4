"""What people decide about a scheduler, in code or by a KubeSchedulerConfiguration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.base.durations import seconds_in
from dryrack.client.informer import Name
from dryrack.placement import profile_named
from dryrack.scheduler.claims.binding_conditions import TIMEOUT_SECONDS
from dryrack.scheduler.queue import BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_MIN
from dryrack.scheduler.reporting import DEFAULT_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dryrack.placement import Profile

# What pods call the scheduler of a whole cluster.
NAMES = (DEFAULT_NAME, "dryrack", "kubenexus-scheduler")
PLANS_LEASE = Name("kube-system", "dryrack-scheduler-gangs")


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings:
    """Who is scheduled, and how."""

    profiles: Mapping[str, Profile] = field(
        default_factory=lambda: {name: profile_named(name) for name in NAMES}
    )
    """By scheduler name: pods that have it are scheduled so, and told so in that name."""
    backoff_seconds: tuple[float, float] = (BACKOFF_SECONDS_MIN, BACKOFF_SECONDS_MAX)
    """How long what was refused waits at least: the first time, and at most."""
    plans_lease: Name = PLANS_LEASE
    """Which lease tells up to when gangs are settled; see `plan_watermark`."""

    @classmethod
    def of(cls, names: Iterable[str]) -> SchedulerSettings:
        """As kube-scheduler schedules, under these names."""
        return cls(profiles={name: profile_named(name) for name in names})

    def binding_timeout_seconds(self, scheduler: str) -> float:
        """Return how long devices with binding conditions may take to be ready, by profile."""
        args = self.profiles[scheduler].args.get("DynamicResources", {})
        return seconds_in(args.get("bindingTimeout", "")) or TIMEOUT_SECONDS
