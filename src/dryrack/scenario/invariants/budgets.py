"""
PodDisruptionBudgets: at rest, each allows as many evictions as its pods justify.

A wrong count allows too many evictions at once, or none for ever. Budgets whose controller reports
that it could not count are skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.decode import decode
from dryrack.kinds.meta import LabelSelector
from dryrack.kinds.paths import get, status_of
from dryrack.kinds.selectors import matches_labels
from dryrack.scenario.invariants.violations import Invariant, Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dryrack.kinds.raw import Raw


def miscounted(budgets: Iterable[Raw], pods: Iterable[Raw]) -> Iterator[Violation]:
    """Return violations for the budgets whose status does not match their pods."""
    present = tuple(pods)
    for budget in budgets:
        metadata = budget["metadata"]
        status = status_of(budget)
        if any(each.get("reason") == "SyncFailed" for each in get(status, "conditions", ())):
            continue
        counted = {key: status.get(key, 0) for key in _COUNTS}
        for key, wanted in _counts(budget, present).items():
            if counted[key] != wanted:
                subject = f"budget {metadata.get('namespace', '')}/{metadata['name']}"
                message = f"{key} is {counted[key]}, and should be {wanted}"
                yield Violation(Invariant.BUDGETS, subject, message)


_COUNTS = ("observedGeneration", "currentHealthy", "disruptionsAllowed")


def _counts(budget: Raw, pods: Iterable[Raw]) -> Mapping[str, int]:
    """Return the counts that do not depend on the expected number of pods."""
    status = status_of(budget)
    healthy = sum(_is_healthy(pod) for pod in pods if _covers(budget, pod))
    spare = max(0, healthy - status.get("desiredHealthy", 0))
    return {
        "observedGeneration": budget["metadata"].get("generation", 0),
        "currentHealthy": healthy,
        "disruptionsAllowed": spare if status.get("expectedPods") else 0,
    }


def _covers(budget: Raw, pod: Raw) -> bool:
    if pod["metadata"].get("namespace") != budget["metadata"].get("namespace"):
        return False
    selector = get(budget, "spec.selector")
    labels = get(pod["metadata"], "labels", {})
    return selector is not None and matches_labels(decode(selector, LabelSelector), labels)


def _is_healthy(pod: Raw) -> bool:
    conditions = get(pod, "status.conditions", ())
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return is_ready and "deletionTimestamp" not in pod["metadata"]
