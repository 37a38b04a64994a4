"""
The policies of a job for failed pods, and for success without all pods.

The first rule of a pod failure policy that matches a failed pod decides: `Ignore` (the failure does
not count), `FailIndex`, `FailJob`, or `Count`, which is also the default. With a limit per index,
each index has its own count of failures, which its pods carry in an annotation: a pod that replaces
a failed one continues its count, so the failed pod is kept until then.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from dryrack.base.numbers import read_int64
from dryrack.client.informer import name_of
from dryrack.client.timekeeping import seconds_of
from dryrack.controllers.jobs.tracking import (
    FINALIZER,
    has_succeeded,
    index_of,
    is_indexed,
    parse_indexes,
)
from dryrack.controllers.objects import (
    annotations_of,
    finalizers_of,
    is_deleted,
    spec_of,
    status_of,
)
from dryrack.controllers.workloads import is_active
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"

# The waits between replacements of failed pods, as in kube-controller-manager.
BACKOFF_SECONDS_MIN = 10.0
BACKOFF_SECONDS_MAX = 600.0


class FailureAction(NamedTuple):
    """The action of a failure policy, and the message for a job that fails by it."""

    action: str
    message: str = ""


COUNT = FailureAction("Count")


def failure_action(job: Raw, pod: Raw) -> FailureAction:
    """Return the action of the first rule that matches a failed pod."""
    rules = get(job, "spec.podFailurePolicy.rules", ())
    for position, rule in enumerate(rules):
        fact = _fact(rule, pod)
        if fact:
            action = rule["action"]
            return FailureAction(action, f"{fact} matching {action} rule at index {position}")
    return COUNT


def _fact(rule: Raw, pod: Raw) -> str:
    """Return a text about the part of a pod that matches a rule, or ""."""
    name = name_of(pod)
    if rule.get("onExitCodes") is not None:
        status = _matching_container(rule["onExitCodes"], pod)
        if status is None:
            return ""
        code = status["state"]["terminated"]["exitCode"]
        where = f"for pod {name.namespace}/{name.name}"
        return f"Container {status['name']} {where} failed with exit code {code}"
    patterns = get(rule, "onPodConditions", ())
    wanted = {(each["type"], each["status"]) for each in patterns}
    conditions = get(pod, "status.conditions", ())
    kind = next(
        (each["type"] for each in conditions if (each["type"], each["status"]) in wanted), ""
    )
    return f"Pod {name.namespace}/{name.name} has condition {kind}" if kind else ""


def _matching_container(wanted: Raw, pod: Raw) -> Raw | None:
    for key in ("containerStatuses", "initContainerStatuses"):
        for status in status_of(pod).get(key) or ():
            code = get(status, "state.terminated.exitCode") or 0
            is_meant = wanted.get("containerName") in (None, status["name"])
            is_listed = code in get(wanted, "values", ())
            if code and is_meant and is_listed == (wanted.get("operator") == "In"):
                return dict(status)
    return None


def has_failed(job: Raw, pod: Raw) -> bool:
    """Return True if a pod counts as failed, also if it is deleted before its end."""
    if replaces_only_failed(job):
        return status_of(pod).get("phase") == "Failed"
    return ends_without_success(pod)


def ends_without_success(pod: Raw) -> bool:
    is_ending = is_deleted(pod) or status_of(pod).get("phase") == "Failed"
    return is_ending and not has_succeeded(pod)


def is_ignored(job: Raw, pod: Raw) -> bool:
    """Return True if the failure of a pod does not count."""
    return has_failed(job, pod) and failure_action(job, pod).action == "Ignore"


def fatal_message(job: Raw, pods: Iterable[Raw]) -> str:
    """Return why one of the pods fails the whole job, or ""."""
    actions = (failure_action(job, pod) for pod in pods if has_failed(job, pod))
    return next((each.message for each in actions if each.action == "FailJob"), "")


def replaces_only_failed(job: Raw) -> bool:
    """Return True if a pod is replaced only after it has ended."""
    spec = spec_of(job)
    policy = spec.get("podFailurePolicy")
    return spec.get("podReplacementPolicy") == "Failed" or policy is not None


def success_message(job: Raw, succeeded: frozenset[int]) -> str:
    """Return a text about the rule of the success policy that is met, or ""."""
    rules = get(job, "spec.successPolicy.rules", ())
    for position, rule in enumerate(rules if succeeded else ()):
        wanted = rule.get("succeededIndexes")
        enough = rule.get("succeededCount")
        needed = parse_indexes(wanted) if wanted else succeeded
        count = len(needed & succeeded)
        is_complete = bool(wanted) and count == len(needed)
        if is_complete or (enough is not None and count >= enough):
            return f"Matched rules at index {position}"
    return ""


def has_limit_per_index(job: Raw) -> bool:
    return is_indexed(job) and spec_of(job).get("backoffLimitPerIndex") is not None


def failed_indexes(job: Raw, pods: Iterable[Raw]) -> frozenset[int]:
    """Return the failed indexes: those in the status, and those of pods that have just failed."""
    recorded = parse_indexes(status_of(job).get("failedIndexes") or "")
    fresh = (
        index_of(pod)
        for pod in pods
        if has_failed(job, pod) and FINALIZER in finalizers_of(pod) and _gives_up(job, pod)
    )
    return recorded | {index for index in fresh if index is not None}


def _gives_up(job: Raw, pod: Raw) -> bool:
    action = failure_action(job, pod).action
    if action in ("FailIndex", "Ignore"):
        return action == "FailIndex"
    return failures_of(pod) >= int(spec_of(job)["backoffLimitPerIndex"])


def failures_of(pod: Raw, annotation: str = FAILURES) -> int:
    """Return how often the index of a pod had failed before it."""
    text = annotations_of(pod).get(annotation, "")
    return max(0, read_int64(text) or 0)


def failures_after(job: Raw, pod: Raw | None) -> Mapping[str, str]:
    """Return the annotations of a pod that replaces a failed one; None: the first of its index."""
    if pod is None:
        return {FAILURES: "0"}
    is_counted = not is_ignored(job, pod)
    ignored = failures_of(pod, IGNORED_FAILURES) + (not is_counted)
    annotations = {FAILURES: str(failures_of(pod) + is_counted)}
    return {**annotations, IGNORED_FAILURES: str(ignored)} if ignored else annotations


def replaceable(job: Raw, pods: Iterable[Raw], *, settled: frozenset[int]) -> dict[int, Raw]:
    """Return the failed pod to replace, by index; `settled` indexes need none."""
    every = list(pods)
    busy = settled | {index_of(pod) for pod in every if is_active(pod)}
    latest: dict[int, Raw] = {}
    for pod in every:
        index = index_of(pod)
        if not has_failed(job, pod) or FINALIZER not in finalizers_of(pod):
            continue
        if index is not None and index not in busy:
            latest[index] = max(latest.get(index, pod), pod, key=_age)
    return latest


def _age(pod: Raw) -> tuple[int, float]:
    return failures_of(pod) + failures_of(pod, IGNORED_FAILURES), ended_at(pod)


def wait_of_index(pod: Raw, now: float) -> float:
    """Return how long the replacement of a pod still waits, with a limit per index."""
    failures = failures_of(pod) + failures_of(pod, IGNORED_FAILURES) + 1
    return ended_at(pod) + backoff_seconds(failures) - now


def backoff_seconds(failures: int) -> float:
    return min(BACKOFF_SECONDS_MIN * 2.0 ** min(failures - 1, 10), BACKOFF_SECONDS_MAX)


def ended_at(pod: Raw) -> float:
    """Return the time at which the last container of a pod ended, or the pod was deleted."""
    statuses = get(pod, "status.containerStatuses", ())
    ends = [get(each, "state.terminated", {}) for each in statuses]
    times = [seconds_of(each["finishedAt"]) for each in ends if each.get("finishedAt")]
    metadata = pod["metadata"]
    if not times and is_deleted(pod):
        grace_seconds = metadata.get("deletionGracePeriodSeconds") or 0
        return seconds_of(metadata["deletionTimestamp"]) - grace_seconds
    return max(times, default=seconds_of(metadata["creationTimestamp"]))
