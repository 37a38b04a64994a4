"""Deployments, ReplicaSets and ReplicationControllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.rules.checks import non_negative
from dryrack.kinds.rules.int_or_percent import at_most_all, count_or_percentage, is_zero
from dryrack.kinds.rules.json_edit import set_defaults, set_missing
from dryrack.kinds.rules.workloads.templates import (
    TEMPLATE,
    WorkloadRules,
    endless,
    is_selector,
    labels_of,
    mismatch,
    selector_needed,
    template_problems,
)
from dryrack.kinds.validation.problems import FieldProblem, Reason, forbidden, invalid, required

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw

_ROLLING = "RollingUpdate"


class ReplicaSetRules(WorkloadRules):
    """ReplicaSet."""

    def defaults(self, spec: Raw) -> Raw:
        return set_defaults(spec, {"replicas": 1})

    def spec_problems(self, spec: Raw) -> Iterator[FieldProblem]:
        yield from non_negative("spec.replicas", spec.get("replicas"))
        yield from non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        yield from _selector_and_template(spec)


def _selector_and_template(spec: Raw) -> Iterator[FieldProblem]:
    """Check the selector and, if it is valid, the template."""
    yield from selector_needed(spec, "deployment")
    selector = spec.get("selector")
    if not is_selector(selector):
        yield invalid("spec.selector", selector, "invalid label selector")
        return
    yield from mismatch(spec)
    yield from template_problems(spec)
    yield from endless(spec, "ReplicaSet")


class ReplicationControllerRules(WorkloadRules):
    """ReplicationController: a ReplicaSet whose selector is a map of labels."""

    def default(self, obj: Raw) -> Raw:
        made = super().default(obj)
        labels = labels_of(made["spec"])
        if labels and not get(made, "metadata.labels"):
            made = {**made, "metadata": {**get(made, "metadata", {}), "labels": labels}}
        return made

    def defaults(self, spec: Raw) -> Raw:
        labels = labels_of(spec)
        made = set_defaults(spec, {"replicas": 1})
        return {**made, "selector": labels} if labels and not spec.get("selector") else made

    def spec_problems(self, spec: Raw) -> Iterator[FieldProblem]:
        yield from non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        selector = get(spec, "selector", {})
        if not selector:
            yield required("spec.selector")
        yield from non_negative("spec.replicas", spec.get("replicas"))
        labels = labels_of(spec) or {}
        if not selector.items() <= labels.items():
            detail = "`selector` does not match template `labels`"
            yield invalid(f"{TEMPLATE}.metadata.labels", labels, detail)
        yield from template_problems(spec)
        yield from endless(spec, "ReplicationController")


class DeploymentRules(WorkloadRules):
    """Deployment."""

    def defaults(self, spec: Raw) -> Raw:
        made = set_defaults(
            spec, {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}
        )
        return {**made, "strategy": _strategy(get(spec, "strategy", {}))}

    def spec_problems(self, spec: Raw) -> Iterator[FieldProblem]:
        yield from non_negative("spec.replicas", spec.get("replicas"))
        yield from _selector_and_template(spec)
        yield from _strategy_problems(get(spec, "strategy", {}))
        for key in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
            yield from non_negative(f"spec.{key}", spec.get(key))
        deadline = spec.get("progressDeadlineSeconds")
        if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
            detail = "must be greater than minReadySeconds"
            yield invalid("spec.progressDeadlineSeconds", deadline, detail)


def _strategy(given: Raw) -> Raw:
    made = set_defaults(given, {"type": _ROLLING})
    if made["type"] != _ROLLING:
        return made
    defaults = {"maxUnavailable": "25%", "maxSurge": "25%"}
    rolling = set_missing(get(made, "rollingUpdate", {}), defaults)
    return {**made, "rollingUpdate": rolling}


def _strategy_problems(given: Raw) -> Iterator[FieldProblem]:
    at = "spec.strategy"
    kind = given.get("type")
    rolling = given.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            yield forbidden(f"{at}.rollingUpdate", detail)
    elif kind == _ROLLING:
        yield from _rolling_update(f"{at}.rollingUpdate", rolling or {})
    else:
        known = 'supported values: "Recreate", "RollingUpdate"'
        yield FieldProblem(Reason.NOT_SUPPORTED, at, given, known)


def _rolling_update(at: str, given: Raw) -> Iterator[FieldProblem]:
    missing = given.get("maxUnavailable", 0)
    surge = given.get("maxSurge", 0)
    yield from count_or_percentage(f"{at}.maxUnavailable", missing)
    yield from count_or_percentage(f"{at}.maxSurge", surge)
    if is_zero(missing) and is_zero(surge):
        yield invalid(f"{at}.maxUnavailable", missing, "may not be 0 when `maxSurge` is 0")
    yield from at_most_all(f"{at}.maxUnavailable", missing)
