"""Metrics of a plugin, with the names of dra-example-driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dryrack.base.metrics import Distribution, Family, Number, Registry

_PREFIX = "dra_example_driver"
_LABELS = ("driver", "result")
# The default bounds of Prometheus' libraries.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_RESULTS = ("success", "error")


def fatal_errors(registry: Registry) -> Number:
    """Return the counter of background errors that ended the plugin."""
    name = "fatal_background_errors_total"
    text = "Background errors that stopped the plugin."
    return registry.counter(f"{_PREFIX}_{name}", text).of()


class PluginMetrics:
    """Counts and durations of the calls that prepare and unprepare claims of one driver."""

    def __init__(self, registry: Registry, driver: str) -> None:
        self._driver = driver
        self._counts: dict[str, Family[Number]] = {}
        self._durations: dict[str, Family[Distribution]] = {}
        for verb in ("prepare", "unprepare"):
            name = f"{_PREFIX}_{verb}"
            self._counts[verb] = registry.counter(
                f"{name}_claims_total", f"Calls of the kubelet to {verb} a claim.", _LABELS
            )
            self._durations[verb] = registry.histogram(
                f"{name}_claim_duration_seconds",
                f"Duration of a call to {verb} a claim.",
                _LABELS,
                bounds=_SECONDS,
            )
            for result in _RESULTS:
                # It exists from the start, because a rate needs a zero to begin with.
                self._counts[verb].of(driver, result)

    def observe(self, verb: str, seconds: float, *, has_failed: bool) -> None:
        """Record one call."""
        result = _RESULTS[has_failed]
        self._counts[verb].of(self._driver, result).add()
        self._durations[verb].of(self._driver, result).observe(seconds)
