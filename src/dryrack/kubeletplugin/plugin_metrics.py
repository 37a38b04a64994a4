"""What a plugin counts, under the names that dra-example-driver has for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dryrack.base.metrics import Distribution, Family, Number, Registry

_PREFIX = "dra_example_driver"
_LABELS = ("driver", "result")
# Those that Prometheus' libraries have where nobody says otherwise.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_RESULTS = ("success", "error")


def fatal_errors(registry: Registry) -> Number:
    """Errors beside the kubelet's calls that ended the plugin."""
    name = "fatal_background_errors_total"
    text = "Background errors that stopped the plugin."
    return registry.counter(f"{_PREFIX}_{name}", text).of()


class PluginMetrics:
    """How often one driver prepared and unprepared claims, and how long it took."""

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
                # There from the start: a rate needs a zero to begin with.
                self._counts[verb].of(driver, result)

    def observe(self, verb: str, seconds: float, *, has_failed: bool) -> None:
        """A claim was prepared, or unprepared, or could not be."""
        result = _RESULTS[has_failed]
        self._counts[verb].of(self._driver, result).add()
        self._durations[verb].of(self._driver, result).observe(seconds)
