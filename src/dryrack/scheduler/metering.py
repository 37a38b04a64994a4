"""
The metrics of the scheduler, with the names of kube-scheduler.

A metric that means the same has the same name, labels, and bounds, so that dashboards for
kube-scheduler work. Metrics of gangs that only kubenexus has keep its names. A pod is counted from
the moment when it is queued until it is scheduled or deleted, a gang from its first attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dryrack.base.metrics import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dryrack.base.ports import Clock
    from dryrack.client.informer import Name
    from dryrack.placement import GangKey

# kube-scheduler's, each twice the one before.
ATTEMPT_BOUNDS = tuple(0.001 * 2**power for power in range(15))
LATENCY_BOUNDS = tuple(0.01 * 2**power for power in range(20))
ATTEMPTS_BOUNDS = tuple(float(2**power) for power in range(5))
VICTIM_BOUNDS = tuple(float(2**power) for power in range(7))
SIZE_BOUNDS = tuple(float(2**power) for power in range(11))
# As in kube-scheduler, pods with more attempts share one label value.
_ATTEMPTS_SHOWN_MAX = 15


class Result(StrEnum):
    """The result of one attempt."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


@dataclass(slots=True)
class _Life:
    """A pending pod or gang."""

    profile: str
    queued_at: float
    attempts: int = 0
    began_at: float | None = None
    is_over: bool = False


class SchedulingMeter:
    """Counts pods for one scheduler; without a registry the numbers are not exposed."""

    def __init__(self, clock: Clock, registry: Registry | None) -> None:
        registry = registry or Registry()
        self._clock = clock
        self._lives: dict[Name, _Life] = {}
        self._attempts = registry.counter(
            "scheduler_schedule_attempts_total",
            "Attempts to schedule a pod, by result.",
            ("result", "profile"),
        )
        self._attempt_seconds = registry.histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Duration of an attempt to schedule a pod.",
            ("result", "profile"),
            bounds=ATTEMPT_BOUNDS,
        )
        self._attempts_needed = registry.histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts until a pod was scheduled.",
            bounds=ATTEMPTS_BOUNDS,
        ).of()
        self._latency = registry.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time from queueing a pod until it is bound, by number of attempts.",
            ("attempts",),
            bounds=LATENCY_BOUNDS,
        )
        self._preemptions = registry.counter(
            "scheduler_preemption_attempts_total", "Number of preemptions."
        ).of()
        self._victims = registry.histogram(
            "scheduler_preemption_victims",
            "Number of pods that one preemption deletes.",
            bounds=VICTIM_BOUNDS,
        ).of()
        self._pending = registry.reading(
            "scheduler_pending_pods", "Pending pods by scheduling queue.", ("queue",)
        )

    def read_queue(self, counts: Callable[[], Mapping[str, int]]) -> None:
        """Count pending pods when the metrics are read."""
        self._pending.read_from(lambda: {(name,): float(n) for name, n in counts().items()})

    def count_preemption(self, victims: int) -> None:
        """Count one preemption with its victims."""
        self._preemptions.add()
        self._victims.observe(victims)

    def add(self, pod: Name, profile: str) -> None:
        """Count a pod as pending from now on, for the profile of this name."""
        if pod not in self._lives:
            self._lives[pod] = _Life(profile, self._clock.now())

    def start_attempt(self, pod: Name) -> None:
        life = self._lives.get(pod)
        if life is not None:
            life.began_at = self._clock.now()

    def finish_attempt(self, pod: Name, result: Result) -> None:
        """Count the attempt with its result."""
        life = self._lives.get(pod)
        if life is None or life.began_at is None:
            return
        now = self._clock.now()
        life.attempts += 1
        self._attempts.of(result, life.profile).add()
        self._attempt_seconds.of(result, life.profile).observe(now - life.began_at)
        if result is Result.SCHEDULED:
            self._attempts_needed.observe(life.attempts)
            is_many = life.attempts >= _ATTEMPTS_SHOWN_MAX
            attempts = f"{_ATTEMPTS_SHOWN_MAX}+" if is_many else str(life.attempts)
            self._latency.of(attempts).observe(now - life.queued_at)
            life.is_over = True
        self.end_attempt(pod)

    def end_attempt(self, pod: Name) -> None:
        """End an attempt; if it has no result by now, it is not counted."""
        life = self._lives.get(pod)
        if life is not None:
            life.began_at = None
            if life.is_over:
                del self._lives[pod]

    def remove(self, pod: Name) -> None:
        """Forget a pod that is bound or deleted, once the attempt that bound it has ended."""
        life = self._lives.get(pod)
        if life is not None:
            life.is_over = True
            if life.began_at is None:
                del self._lives[pod]


class GangMeter:
    """Counts gangs for one scheduler."""

    def __init__(self, clock: Clock, registry: Registry | None) -> None:
        registry = registry or Registry()
        self._clock = clock
        self._lives: dict[GangKey, _Life] = {}
        self._attempts = registry.counter(
            "scheduler_podgroup_schedule_attempts_total",
            "Attempts to schedule a gang, by result.",
            ("result", "profile"),
        )
        self._attempt_seconds = registry.histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            "Duration of an attempt to schedule a gang.",
            ("result", "profile"),
            bounds=ATTEMPT_BOUNDS,
        )
        self._latency = registry.histogram(
            "kubenexus_gang_completion_latency_seconds",
            "Time from the first attempt to schedule a gang until its required pods are bound.",
            bounds=LATENCY_BOUNDS,
        ).of()
        self._size = registry.histogram(
            "kubenexus_pod_group_size", "Number of pods that a gang binds.", bounds=SIZE_BOUNDS
        ).of()
        registry.reading(
            "kubenexus_waiting_gangs", "Gangs that had an attempt and are not bound."
        ).read_from(lambda: {(): float(len(self._lives))})

    def start_attempt(self, gang: GangKey, profile: str) -> None:
        """Start an attempt for the profile of this name."""
        now = self._clock.now()
        self._lives.setdefault(gang, _Life(profile, now)).began_at = now

    def finish_attempt(self, gang: GangKey, result: Result, size: int = 0) -> None:
        """Count the attempt with its result, and with the number of pods that were bound."""
        life = self._lives.get(gang)
        if life is None or life.began_at is None:
            return
        now = self._clock.now()
        self._attempts.of(result, life.profile).add()
        self._attempt_seconds.of(result, life.profile).observe(now - life.began_at)
        life.began_at = None
        if result is Result.SCHEDULED:
            self._latency.observe(now - life.queued_at)
            self._size.observe(size)
            del self._lives[gang]

    def remove(self, gang: GangKey) -> None:
        """Forget a gang that has no members, or needs no scheduling any more."""
        self._lives.pop(gang, None)
