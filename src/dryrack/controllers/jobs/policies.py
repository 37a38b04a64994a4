"""
What a job says of pods that fail, and of when it has succeeded without all of them.

The first rule of a pod failure policy that fits a failed pod decides: `Ignore` (it does not
count), `FailIndex`, `FailJob`, or `Count`, which is also what holds where no rule fits. With a
limit per index each index has its own count of failures, which its pods carry on: a pod that
replaces a failed one is told how many there were, so the failed one is kept until then.
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
    parsed_indexes,
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

# The waits between replacements of failed pods, as kube-controller-manager has them.
BACKOFF_SECONDS_MIN = 10.0
BACKOFF_SECONDS_MAX = 600.0


class Verdict(NamedTuple):
    """What becomes of a failure; the message is for the job if it fails by it."""

    action: str
    message: str = ""


COUNT = Verdict("Count")


def verdict(job: Raw, pod: Raw) -> Verdict:
    """What the first rule that fits says of a failed pod."""
    rules = get(job, "spec.podFailurePolicy.rules", ())
    for position, rule in enumerate(rules):
        fact = _fact(rule, pod)
        if fact:
            action = rule["action"]
            return Verdict(action, f"{fact} matching {action} rule at index {position}")
    return COUNT


def _fact(rule: Raw, pod: Raw) -> str:
    """What of the pod fits a rule, in words; "" if nothing does."""
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
                found: Raw = status
                return found
    return None


def has_failed(job: Raw, pod: Raw) -> bool:
    """Whether a pod counts as failed: also one that goes before its end, unless that is awaited."""
    if replaces_only_failed(job):
        return status_of(pod).get("phase") == "Failed"
    return ends_without_success(pod)


def ends_without_success(pod: Raw) -> bool:
    is_ending = is_deleted(pod) or status_of(pod).get("phase") == "Failed"
    return is_ending and not has_succeeded(pod)


def is_ignored(job: Raw, pod: Raw) -> bool:
    """Whether a failed pod is as if it had never been."""
    return has_failed(job, pod) and verdict(job, pod).action == "Ignore"


def fatal_message(job: Raw, pods: Iterable[Raw]) -> str:
    """Why a job fails by one of its pods; "" if it does not."""
    found = (verdict(job, pod) for pod in pods if has_failed(job, pod))
    return next((each.message for each in found if each.action == "FailJob"), "")


def replaces_only_failed(job: Raw) -> bool:
    """Whether a pod that is going is waited for before another takes its place."""
    spec = spec_of(job)
    policy = spec.get("podFailurePolicy")
    return spec.get("podReplacementPolicy") == "Failed" or policy is not None


def success_message(job: Raw, succeeded: frozenset[int]) -> str:
    """Which rule of the success policy is met; "" if none is."""
    rules = get(job, "spec.successPolicy.rules", ())
    for position, rule in enumerate(rules if succeeded else ()):
        wanted = rule.get("succeededIndexes")
        enough = rule.get("succeededCount")
        needed = parsed_indexes(wanted) if wanted else succeeded
        there = len(needed & succeeded)
        is_whole = bool(wanted) and there == len(needed)
        if is_whole or (enough is not None and there >= enough):
            return f"Matched rules at index {position}"
    return ""


def has_limit_per_index(job: Raw) -> bool:
    return is_indexed(job) and spec_of(job).get("backoffLimitPerIndex") is not None


def failed_indexes(job: Raw, pods: Iterable[Raw]) -> frozenset[int]:
    """The indexes that are given up: those written down, and those of pods that failed last."""
    written = parsed_indexes(status_of(job).get("failedIndexes") or "")
    fresh = (
        index_of(pod)
        for pod in pods
        if has_failed(job, pod) and FINALIZER in finalizers_of(pod) and _gives_up(job, pod)
    )
    return written | {index for index in fresh if index is not None}


def _gives_up(job: Raw, pod: Raw) -> bool:
    action = verdict(job, pod).action
    if action in ("FailIndex", "Ignore"):
        return action == "FailIndex"
    return failures_of(pod) >= int(spec_of(job)["backoffLimitPerIndex"])


def failures_of(pod: Raw, annotation: str = FAILURES) -> int:
    """How often its index had failed before a pod, by counted or ignored failures."""
    text = annotations_of(pod).get(annotation, "")
    return max(0, read_int64(text) or 0)


def failures_after(job: Raw, pod: Raw | None) -> Mapping[str, str]:
    """What the pod that comes after a failed one carries; None: it is the first of its index."""
    if pod is None:
        return {FAILURES: "0"}
    is_counted = not is_ignored(job, pod)
    ignored = failures_of(pod, IGNORED_FAILURES) + (not is_counted)
    found = {FAILURES: str(failures_of(pod) + is_counted)}
    return {**found, IGNORED_FAILURES: str(ignored)} if ignored else found


def replaceable(job: Raw, pods: Iterable[Raw], *, settled: frozenset[int]) -> dict[int, Raw]:
    """By index: the failed pod that another is to replace; `settled` indexes need none."""
    every = list(pods)
    busy = settled | {index_of(pod) for pod in every if is_active(pod)}
    found: dict[int, Raw] = {}
    for pod in every:
        index = index_of(pod)
        if not has_failed(job, pod) or FINALIZER not in finalizers_of(pod):
            continue
        if index is not None and index not in busy:
            found[index] = max(found.get(index, pod), pod, key=_age)
    return found


def _age(pod: Raw) -> tuple[int, float]:
    return failures_of(pod) + failures_of(pod, IGNORED_FAILURES), ended_at(pod)


def wait_of_index(pod: Raw, now: float) -> float:
    """How long the replacement of a pod still waits, where indexes are counted apart."""
    failures = failures_of(pod) + failures_of(pod, IGNORED_FAILURES) + 1
    return ended_at(pod) + backoff_seconds(failures) - now


def backoff_seconds(failures: int) -> float:
    return min(BACKOFF_SECONDS_MIN * 2.0 ** min(failures - 1, 10), BACKOFF_SECONDS_MAX)


def ended_at(pod: Raw) -> float:
    """When the last container of a pod came to its end, or the pod was told to."""
    statuses = get(pod, "status.containerStatuses", ())
    ends = [get(each, "state.terminated", {}) for each in statuses]
    times = [seconds_of(each["finishedAt"]) for each in ends if each.get("finishedAt")]
    metadata = pod["metadata"]
    if not times and is_deleted(pod):
        grace_seconds = metadata.get("deletionGracePeriodSeconds") or 0
        return seconds_of(metadata["deletionTimestamp"]) - grace_seconds
    return max(times, default=seconds_of(metadata["creationTimestamp"]))
