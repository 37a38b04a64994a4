"""
What the scheduler has done, in the names that kube-scheduler uses.

People have dashboards for schedulers; a measure that means the same has the same name, labels and
bounds. A pod is known here from the moment it is queued until it is scheduled or gone.
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

# kube-scheduler's, each twice the one before.
ATTEMPT_BOUNDS = tuple(0.001 * 2**power for power in range(15))
LATENCY_BOUNDS = tuple(0.01 * 2**power for power in range(20))
ATTEMPTS_BOUNDS = tuple(float(2**power) for power in range(5))
# As kube-scheduler: pods with more are told together.
_ATTEMPTS_SHOWN_MAX = 15


class Result(StrEnum):
    """What came of one attempt."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


@dataclass(slots=True)
class _Life:
    """One pod that waits."""

    profile: str
    queued_at: float
    attempts: int = 0
    began_at: float | None = None
    is_over: bool = False


class SchedulingMeter:
    """Counts for one scheduler; without a registry nobody asks for the numbers."""

    def __init__(self, clock: Clock, registry: Registry | None = None) -> None:
        registry = registry or Registry()
        self._clock = clock
        self._lives: dict[Name, _Life] = {}
        self._attempts = registry.counter(
            "scheduler_schedule_attempts_total",
            "Attempts to schedule a pod, by what came of it.",
            ("result", "profile"),
        )
        self._attempt_seconds = registry.histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Time from the moment a pod is taken until it is bound or refused.",
            ("result", "profile"),
            bounds=ATTEMPT_BOUNDS,
        )
        self._attempts_needed = registry.histogram(
            "scheduler_pod_scheduling_attempts",
            "Attempts until a pod was scheduled.",
            bounds=ATTEMPTS_BOUNDS,
        ).of()
        self._latency = registry.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time from the moment a pod is queued until it is bound, by attempts.",
            ("attempts",),
            bounds=LATENCY_BOUNDS,
        )
        self._pending = registry.reading(
            "scheduler_pending_pods", "Pods that wait, by what they wait for.", ("queue",)
        )

    def read_queue(self, counts: Callable[[], Mapping[str, int]]) -> None:
        """Who waits is asked for when the numbers are."""
        self._pending.read_from(lambda: {(name,): float(n) for name, n in counts().items()})

    def queued(self, pod: Name, profile: str) -> None:
        """It is to be scheduled from now on, under the name of this scheduler."""
        if pod not in self._lives:
            self._lives[pod] = _Life(profile, self._clock.now())

    def began(self, pod: Name) -> None:
        """It is tried."""
        life = self._lives.get(pod)
        if life is not None:
            life.began_at = self._clock.now()

    def ended(self, pod: Name, result: Result) -> None:
        """What came of the attempt."""
        life = self._lives.get(pod)
        if life is None or life.began_at is None:
            return
        now = self._clock.now()
        life.attempts += 1
        self._attempts.of(result, life.profile).add()
        self._attempt_seconds.of(result, life.profile).observe(now - life.began_at)
        if result is Result.SCHEDULED:
            self._attempts_needed.observe(life.attempts)
            self._latency.of(_shown(life.attempts)).observe(now - life.queued_at)
            life.is_over = True
        self.left(pod)

    def left(self, pod: Name) -> None:
        """Nobody works on it now; if nothing was said of the attempt, nothing came of it."""
        life = self._lives.get(pod)
        if life is not None:
            life.began_at = None
            if life.is_over:
                del self._lives[pod]

    def gone(self, pod: Name) -> None:
        """It need not be scheduled any more; that is seen before an attempt ends that bound it."""
        life = self._lives.get(pod)
        if life is not None:
            life.is_over = True
            if life.began_at is None:
                del self._lives[pod]


def _shown(attempts: int) -> str:
    return str(attempts) if attempts < _ATTEMPTS_SHOWN_MAX else f"{_ATTEMPTS_SHOWN_MAX}+"
