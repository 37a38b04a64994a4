"""Disruption budgets: how many pods of a kind may be missing at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import spec_of
from dryrack.kinds.rules.checks import selector_problems
from dryrack.kinds.rules.int_or_percent import at_most_all, count_or_percentage
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation.meta import Naming
from dryrack.kinds.validation.names import path_segment, path_segment_prefix
from dryrack.kinds.validation.problems import invalid, not_supported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


class BudgetRules(KindRules):
    """PodDisruptionBudget."""

    def __init__(self) -> None:
        # No other object is named after a budget, so any path segment is a valid name.
        naming = Naming(path_segment, path_segment_prefix)
        super().__init__(namespaced=True, has_status=True, naming=naming)

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        spec = spec_of(obj)
        bounds = [key for key in ("minAvailable", "maxUnavailable") if spec.get(key) is not None]
        if len(bounds) > 1:
            yield invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
        for key in bounds:
            yield from count_or_percentage(f"spec.{key}", spec[key])
            yield from at_most_all(f"spec.{key}", spec[key])
        yield from selector_problems("spec.selector", spec.get("selector"))
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None and policy not in _POLICIES:
            yield not_supported("spec.unhealthyPodEvictionPolicy", policy, _POLICIES)
