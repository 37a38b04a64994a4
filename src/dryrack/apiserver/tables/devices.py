"""Rows of the kinds of dynamic resource allocation, of scheduling and of disruption."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    Column,
    Shape,
    age,
    integers,
    name_of,
    plain,
    since,
)
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from dryrack.apiserver.tables.columns import JsonObject


def _claim_state(claim: JsonObject) -> str:
    words = ["deleted"] if get(claim, "metadata.deletionTimestamp") else []
    if get(claim, "status.allocation") is None:
        return ",".join(words or ["pending"])
    words.append("allocated")
    if get(claim, "status.reservedFor"):
        words.append("reserved")
    return ",".join(words)


def _claim(claim: JsonObject, now: float) -> list[Any]:
    return [name_of(claim), _claim_state(claim), age(claim, now)]


CLAIMS = Shape((NAME, *plain("State"), AGE), _claim)


def _slice(obj: JsonObject, now: float) -> list[Any]:
    return [
        name_of(obj),
        get(obj, "spec.nodeName", ""),
        get(obj, "spec.driver", ""),
        get(obj, "spec.pool.name", ""),
        age(obj, now),
    ]


SLICES = Shape((NAME, *plain("Node", "Driver", "Pool"), AGE), _slice)


def _taint_rule(obj: JsonObject, now: float) -> list[Any]:
    taint = get(obj, "spec.taint", {})
    added = taint.get("timeAdded")
    words = [taint.get(name) or "" for name in ("key", "value", "effect")]
    return [name_of(obj), *words, since(added, now) if added else "", age(obj, now)]


TAINT_RULES = Shape((NAME, *plain("Key", "Value", "Effect", "TimeAdded"), AGE), _taint_rule)


def _priority_class(obj: JsonObject, now: float) -> list[Any]:
    return [
        name_of(obj),
        obj.get("value") or 0,
        bool(obj.get("globalDefault")),
        age(obj, now),
        obj.get("preemptionPolicy") or "",
    ]


PRIORITY_CLASSES = Shape(
    (
        NAME,
        *integers("Value"),
        Column("Global-Default", "boolean"),
        AGE,
        *plain("PreemptionPolicy"),
    ),
    _priority_class,
)


def _group_status(group: JsonObject) -> str:
    conditions = {entry["type"]: entry for entry in get(group, "status.conditions", ())}
    if disrupted := conditions.get("DisruptionTarget"):
        return str(disrupted.get("reason") or "")
    # The second name is that of Kubernetes 1.36.
    scheduled = conditions.get("PodGroupInitiallyScheduled", conditions.get("PodGroupScheduled"))
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


def _pod_group(obj: JsonObject, now: float) -> list[Any]:
    name, policy, workload, created = _composite_pod_group(obj, now)
    if obj.get("apiVersion") == "scheduling.k8s.io/v1alpha2":
        workload = get(obj, "spec.podGroupTemplateRef.workload.workloadName", NONE)
    return [name, policy, workload, _group_status(obj), created]


def _composite_pod_group(obj: JsonObject, now: float) -> list[Any]:
    policy = "Basic" if get(obj, "spec.schedulingPolicy.gang") is None else "Gang"
    return [name_of(obj), policy, get(obj, "spec.workloadRef.workloadName", NONE), age(obj, now)]


COMPOSITE_POD_GROUPS = Shape((NAME, *plain("Policy", "Workload"), AGE), _composite_pod_group)
POD_GROUPS = Shape((NAME, *plain("Policy", "Workload", "Status"), AGE), _pod_group)


def _disruption_budget(obj: JsonObject, now: float) -> list[Any]:
    bounds = (get(obj, f"spec.{name}") for name in ("minAvailable", "maxUnavailable"))
    return [
        name_of(obj),
        *("N/A" if bound is None else str(bound) for bound in bounds),
        get(obj, "status.disruptionsAllowed", 0),
        age(obj, now),
    ]


DISRUPTION_BUDGETS = Shape(
    (NAME, *plain("Min Available", "Max Unavailable"), *integers("Allowed Disruptions"), AGE),
    _disruption_budget,
)
