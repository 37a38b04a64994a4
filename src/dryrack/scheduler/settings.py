"""The settings of a scheduler, from code or from a KubeSchedulerConfiguration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.base.durations import seconds_in
from dryrack.client.informer import Name
from dryrack.kinds.releases import DEFAULT_RELEASE, Release
from dryrack.placement import profile_named
from dryrack.scheduler.claims.binding_conditions import TIMEOUT_SECONDS
from dryrack.scheduler.queue import BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_MIN
from dryrack.scheduler.reporting import DEFAULT_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dryrack.placement import Profile

# The schedulerName of pods that the scheduler of a virtual cluster schedules.
NAMES = (DEFAULT_NAME, "dryrack", "kubenexus-scheduler")
PLANS_LEASE = Name("kube-system", "dryrack-scheduler-gangs")


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings:
    """The pods that are scheduled, and the plugins that schedule them."""

    profiles: Mapping[str, Profile] = field(
        default_factory=lambda: {name: profile_named(name) for name in NAMES}
    )
    """Profiles by schedulerName; events name the scheduler like the pod does."""
    release: Release = DEFAULT_RELEASE
    """The release whose kube-scheduler decides in the same way."""
    backoff_seconds: tuple[float, float] = (BACKOFF_SECONDS_MIN, BACKOFF_SECONDS_MAX)
    """The back-off of a refused pod: the first, and the longest."""
    plans_lease: Name = PLANS_LEASE
    """The lease with the time until which plans are settled; see `plan_watermark`."""

    @classmethod
    def of(
        cls, names: Iterable[str] = NAMES, release: Release = DEFAULT_RELEASE
    ) -> SchedulerSettings:
        """Return the settings of the release's kube-scheduler, under these names."""
        profiles = {name: profile_named(name, release) for name in names}
        return cls(profiles=profiles, release=release)

    def binding_timeout_seconds(self, scheduler: str) -> float:
        """Return how long devices with binding conditions may take to be ready, by profile."""
        args = self.profiles[scheduler].args.get("DynamicResources", {})
        return seconds_in(args.get("bindingTimeout", "")) or TIMEOUT_SECONDS
