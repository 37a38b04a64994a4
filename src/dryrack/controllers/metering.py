"""What a controller's loop has done, in the names that controller-runtime uses."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dryrack.base.metrics import Registry

# The bounds of controller-runtime, so that its dashboards fit.
RECONCILE_BOUNDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5),
    *(0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0),
    *(6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
_CONTROLLER = ("controller",)


class Result(StrEnum):
    """What came of one key."""

    SUCCESS = "success"
    REQUEUE_AFTER = "requeue_after"
    """All is written; the key is looked at again by itself."""
    ERROR = "error"


class LoopMeter:
    """Counts for the loop of one controller."""

    def __init__(self, registry: Registry, name: str, workers: int) -> None:
        totals = registry.counter(
            "controller_runtime_reconcile_total",
            "Reconciliations by result.",
            ("controller", "result"),
        )
        self._totals = {result: totals.of(name, result) for result in Result}
        self._errors = registry.counter(
            "controller_runtime_reconcile_errors_total",
            "Reconciliations that failed and are retried.",
            _CONTROLLER,
        ).of(name)
        self._seconds = registry.histogram(
            "controller_runtime_reconcile_time_seconds",
            "Duration of a reconciliation with its writes.",
            _CONTROLLER,
            bounds=RECONCILE_BOUNDS,
        ).of(name)
        self._active = registry.gauge(
            "controller_runtime_active_workers", "Workers that are reconciling a key.", _CONTROLLER
        ).of(name)
        registry.gauge(
            "controller_runtime_max_concurrent_reconciles", "Number of workers.", _CONTROLLER
        ).of(name).set(workers)

    def began(self) -> None:
        self._active.add()

    def ended(self, result: Result | None, seconds: float) -> None:
        """None: it was cut off, and nothing came of it."""
        self._active.add(-1)
        if result is None:
            return
        self._totals[result].add()
        self._seconds.observe(seconds)
        if result is Result.ERROR:
            self._errors.add()
