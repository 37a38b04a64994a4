"""
Horizontal pod autoscalers in their two versions, stored as autoscaling/v2.

Version v1 has one metric, the utilization of CPU. Reading a v2 object as v1 moves the other
metrics into an annotation; writing it as v1 restores them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.strategy import Strategy
from dryrack.kinds.paths import get, spec_of, status_of
from dryrack.kinds.rules.json_edit import set_missing, update_at, with_metadata, with_value, without
from dryrack.kinds.rules.kind_rules import KindRules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw

NEWER = "dryrack.dev/autoscaling-v2"
_GOAL_PERCENT = 80
_GOAL = "targetCPUUtilizationPercentage"
_USED = "currentCPUUtilizationPercentage"


class AutoscalerStrategy(Strategy):
    """autoscaling/v2, as it is stored."""

    def __init__(self) -> None:
        super().__init__(KindRules(namespaced=True, has_status=True))

    def default(self, obj: Raw, write: Write) -> Raw:
        defaults = {"minReplicas": 1, "metrics": _cpu("target", _GOAL_PERCENT)}
        return update_at(obj, "spec", lambda spec: set_missing(spec, defaults))

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        new = super().prepare_create(obj, write)
        counts = self.rules.behaviour.counts_generations_of_autoscalers
        return with_metadata(new, "generation", 1) if counts else new

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        new = super().prepare_update(obj, old, write)
        counts = self.rules.behaviour.counts_generations_of_autoscalers
        if not counts or spec_of(new) == spec_of(old):
            return new
        return with_metadata(new, "generation", (old["metadata"].get("generation") or 0) + 1)


class OldAutoscalerStrategy(AutoscalerStrategy):
    """autoscaling/v1."""

    def default(self, obj: Raw, write: Write) -> Raw:
        has_others = bool(_newer(obj).get("metrics"))
        goal = {} if has_others else {_GOAL: _GOAL_PERCENT}
        return update_at(obj, "spec", lambda spec: set_missing(spec, {"minReplicas": 1, **goal}))

    def to_storage(self, obj: Raw) -> Raw:
        newer = _newer(obj)
        spec = dict(spec_of(obj))
        status = dict(status_of(obj))
        goal = spec.pop(_GOAL, None)
        used = status.pop(_USED, None)
        spec |= _present("metrics", _cpu("target", goal) + newer.get("metrics", []))
        spec |= _present("behavior", newer.get("behavior"))
        measured = _cpu("current", used) + newer.get("currentMetrics", [])
        status["currentMetrics"] = measured or None
        status |= _present("conditions", newer.get("conditions"))
        annotated = without(get(obj["metadata"], "annotations", {}), NEWER)
        meta = with_value(obj["metadata"], "annotations", annotated or None)
        return {
            **obj,
            "apiVersion": "autoscaling/v2",
            "metadata": meta,
            "spec": spec,
            "status": status,
        }

    def from_storage(self, obj: Raw) -> Raw:
        spec = dict(spec_of(obj))
        status = dict(status_of(obj))
        goal, metrics = _split("target", spec.pop("metrics", None) or ())
        used, measured = _split("current", status.pop("currentMetrics", None) or ())
        newer = _present("metrics", metrics) | _present("behavior", spec.pop("behavior", None))
        newer |= _present("currentMetrics", measured)
        newer |= _present("conditions", status.pop("conditions", None))
        meta = obj["metadata"]
        if newer:
            annotations = get(meta, "annotations", {})
            text = json.dumps(newer, separators=(",", ":"), sort_keys=True)
            meta = {**meta, "annotations": {**annotations, NEWER: text}}
        return {
            **obj,
            "apiVersion": "autoscaling/v1",
            "metadata": meta,
            "spec": with_value(spec, _GOAL, goal),
            "status": with_value(status, _USED, used),
        }


def _newer(obj: Raw) -> Raw:
    """Return what the annotation keeps; nothing if a client has spoilt it."""
    try:
        found = json.loads(get(obj["metadata"], "annotations", {}).get(NEWER) or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _present(key: str, value: Any) -> Raw:
    return {key: value} if value else {}


def _cpu(place: str, percent: int | None) -> list[Raw]:
    if percent is None:
        return []
    kind = {"type": "Utilization"} if place == "target" else {}
    amount = {**kind, "averageUtilization": percent}
    return [{"type": "Resource", "resource": {"name": "cpu", place: amount}}]


def _split(place: str, metrics: Sequence[Raw]) -> tuple[int | None, list[Raw]]:
    """The utilization of CPU, if it is among the metrics, and the others."""
    for index, each in enumerate(metrics):
        resource = get(each, "resource", {})
        percent = (resource.get(place) or {}).get("averageUtilization")
        if resource.get("name") == "cpu" and percent is not None:
            return percent, [*metrics[:index], *metrics[index + 1 :]]
    return None, list(metrics)
