"""Rows of the kinds that make pods."""

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
    labels_text,
    name_of,
    plain,
    seconds,
    selector_text,
    since,
    wide,
)
from dryrack.base.ages import human
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from dryrack.apiserver.tables.columns import JsonObject

_WIDE = wide("Containers", "Images", "Selector")


def _containers(template: JsonObject) -> list[Any]:
    """The names of a template's containers and their images."""
    containers = get(template, "spec.containers", ())
    names = ",".join(entry.get("name") or "" for entry in containers)
    return [names, ",".join(entry.get("image") or "" for entry in containers)]


def _template(obj: JsonObject) -> JsonObject:
    template: JsonObject = get(obj, "spec.template", {})
    return template


def _selector(obj: JsonObject) -> str:
    return selector_text(get(obj, "spec.selector")) or NONE


def _deployment(obj: JsonObject, now: float) -> list[Any]:
    ready = get(obj, "status.readyReplicas", 0)
    desired = get(obj, "spec.replicas", 0)
    return [
        name_of(obj),
        f"{ready}/{desired}",
        get(obj, "status.updatedReplicas", 0),
        get(obj, "status.availableReplicas", 0),
        age(obj, now),
        *_containers(_template(obj)),
        selector_text(get(obj, "spec.selector")),
    ]


DEPLOYMENTS = Shape((NAME, *plain("Ready", "Up-to-date", "Available"), AGE, *_WIDE), _deployment)


def _counts(obj: JsonObject, now: float) -> list[Any]:
    return [
        name_of(obj),
        get(obj, "spec.replicas", 0),
        get(obj, "status.replicas", 0),
        get(obj, "status.readyReplicas", 0),
        age(obj, now),
        *_containers(_template(obj)),
    ]


def _replica_set(obj: JsonObject, now: float) -> list[Any]:
    return [*_counts(obj, now), _selector(obj)]


_REPLICAS = (NAME, *integers("Desired", "Current", "Ready"), AGE, *_WIDE)
REPLICA_SETS = Shape(_REPLICAS, _replica_set)


def _replication_controller(obj: JsonObject, now: float) -> list[Any]:
    return [*_counts(obj, now), labels_text(get(obj, "spec.selector"))]


REPLICATION_CONTROLLERS = Shape(_REPLICAS, _replication_controller)


def _stateful_set(obj: JsonObject, now: float) -> list[Any]:
    ready = get(obj, "status.readyReplicas", 0)
    desired = get(obj, "spec.replicas", 0)
    return [name_of(obj), f"{ready}/{desired}", age(obj, now), *_containers(_template(obj))]


STATEFUL_SETS = Shape((NAME, *plain("Ready"), AGE, *wide("Containers", "Images")), _stateful_set)

_DAEMON_COUNTS = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
)


def _daemon_set(obj: JsonObject, now: float) -> list[Any]:
    return [
        name_of(obj),
        *(get(obj, f"status.{name}", 0) for name in _DAEMON_COUNTS),
        labels_text(get(_template(obj), "spec.nodeSelector")),
        age(obj, now),
        *_containers(_template(obj)),
        _selector(obj),
    ]


DAEMON_SETS = Shape(
    (
        NAME,
        *integers("Desired", "Current", "Ready", "Up-to-date", "Available"),
        *plain("Node Selector"),
        AGE,
        *_WIDE,
    ),
    _daemon_set,
)


def _has(obj: JsonObject, kind: str) -> bool:
    conditions = get(obj, "status.conditions", ())
    # The first one of its type counts, should it be there twice.
    found = [entry.get("status") for entry in conditions if entry.get("type") == kind]
    return found[:1] == ["True"]


def _job_status(job: JsonObject) -> str:
    for kind in ("Complete", "Failed"):
        if _has(job, kind):
            return kind
    if get(job, "metadata.deletionTimestamp"):
        return "Terminating"
    unfinished = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((kind for kind in unfinished if _has(job, kind)), "Running")


def _completions(job: JsonObject) -> str:
    done = get(job, "status.succeeded", 0)
    wanted = get(job, "spec.completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallelism = get(job, "spec.parallelism", 0)
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _job_duration(job: JsonObject, now: float) -> str:
    started = seconds(get(job, "status.startTime"))
    if started is None:
        return ""
    ended = seconds(get(job, "status.completionTime"))
    return human((now if ended is None else ended) - started)


def _job(job: JsonObject, now: float) -> list[Any]:
    return [
        name_of(job),
        _job_status(job),
        _completions(job),
        _job_duration(job, now),
        age(job, now),
        *_containers(_template(job)),
        _selector(job),
    ]


JOBS = Shape((NAME, *plain("Status", "Completions", "Duration"), AGE, *_WIDE), _job)


def _cron_job(obj: JsonObject, now: float) -> list[Any]:
    suspended = get(obj, "spec.suspend")
    last = get(obj, "status.lastScheduleTime")
    job = get(obj, "spec.jobTemplate", {})
    return [
        name_of(obj),
        get(obj, "spec.schedule", ""),
        get(obj, "spec.timeZone", NONE),
        "<unset>" if suspended is None else str(bool(suspended)),
        len(get(obj, "status.active", ())),
        since(last, now) if last else NONE,
        age(obj, now),
        *_containers(_template(job)),
        _selector(job),
    ]


CRON_JOBS = Shape(
    (
        NAME,
        *plain("Schedule", "Timezone"),
        Column("Suspend", "boolean"),
        *integers("Active"),
        *plain("Last Schedule"),
        AGE,
        *_WIDE,
    ),
    _cron_job,
)


_METRICS_MAX = 2
_PLACES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def _metric(metric: JsonObject) -> str:
    """The goal of a metric; nothing measures it here."""
    place = get(metric, _PLACES.get(metric.get("type") or "", ""), {})
    target = get(place, "target", {})
    percent = target.get("averageUtilization")
    goal = target.get("averageValue") or target.get("value")
    shown = goal if percent is None else f"{percent}%"
    name = f"{place['name']}: " if "name" in place else ""
    return f"{name}<unknown>/{shown or '<auto>'}"


def _metrics(spec: JsonObject) -> str:
    percent = spec.get("targetCPUUtilizationPercentage")
    found = [f"cpu: <unknown>/{percent}%"] if percent is not None else []
    found += [_metric(each) for each in get(spec, "metrics", ())]
    more = len(found) - _METRICS_MAX
    shown = ", ".join(found[:_METRICS_MAX]) or NONE
    return f"{shown} + {more} more..." if more > 0 else shown


def _autoscaler(obj: JsonObject, now: float) -> list[Any]:
    spec = get(obj, "spec", {})
    target = get(spec, "scaleTargetRef", {})
    return [
        name_of(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(spec),
        str(spec.get("minReplicas", "<unset>")),
        get(obj, "spec.maxReplicas", 0),
        get(obj, "status.currentReplicas", 0),
        age(obj, now),
    ]


AUTOSCALERS = Shape(
    (NAME, *plain("Reference", "Targets", "MinPods", "MaxPods", "Replicas"), AGE), _autoscaler
)
