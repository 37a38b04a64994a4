"""
Jobs: create pods until enough of them have succeeded, or too many have failed.

A failed pod is replaced, after a longer wait each time. The job fails when more pods have failed
than its back-off limit allows, or at its deadline. `policies` decides about single failures and
successes, and `tracking` counts pods.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dryrack.client.endpoints import JOBS, PODS
from dryrack.client.informer import Name, name_of
from dryrack.client.timekeeping import seconds_of, timestamp
from dryrack.controllers.jobs import policies
from dryrack.controllers.jobs.tracking import (
    FINALIZER,
    INDEX,
    Count,
    count,
    has_succeeded,
    index_of,
    index_text,
    indexes_of,
    is_indexed,
    remove_finalizers,
    without_finalizer,
)
from dryrack.controllers.objects import (
    condition_of,
    finalizers_of,
    has_condition,
    is_controlled_by,
    is_deleted,
    is_ready,
    is_terminal,
    spec_of,
    status_of,
    uid_of,
    with_condition,
)
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.replicasets import least_wanted
from dryrack.controllers.workloads import (
    Candidates,
    OwnerReconciler,
    creation_of,
    family_of,
    is_active,
    owner_key,
    pod_from,
)
from dryrack.controllers.writes import (
    NOTHING,
    Delete,
    EngineContext,
    Plan,
    Report,
    Update,
    Write,
)
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

BACKOFF_LIMIT_DEFAULT = 6
MANAGER = "kubernetes.io/job-controller"


@dataclass(frozen=True, slots=True)
class _CountedJob:
    """A job and its pods, counted."""

    job: Raw
    pods: Sequence[Raw]
    counted: Count
    failed_indexes: frozenset[int] | None
    """The failed indexes, if each index has its own limit."""
    replaceable: Mapping[int, Raw]
    """By index: the failed pod that a new one will replace."""

    @property
    def active(self) -> list[Raw]:
        return [pod for pod in self.pods if is_active(pod)]

    @property
    def terminating(self) -> list[Raw]:
        return [pod for pod in self.pods if is_deleted(pod) and not is_terminal(pod)]


def _count_pods(job: Raw, pods: Sequence[Raw], ending: "_Ending | None" = None) -> _CountedJob:
    """Count the pods of a job; failed pods stay uncounted while they can be replaced."""
    failed_indexes = (
        policies.failed_indexes(job, pods) if policies.has_limit_per_index(job) else None
    )
    replaceable: dict[int, Raw] = {}
    if failed_indexes is not None and ending is None and not is_deleted(job):
        settled = failed_indexes | indexes_of(job, pods)
        replaceable = policies.replaceable(job, pods, settled=settled)
    kept = {uid_of(pod) for pod in replaceable.values()}

    def has_failed(pod: Raw) -> bool:
        # A pod that still runs when its job fails has failed, too.
        if ending is not None and ending[0] == "Failed":
            return policies.ends_without_success(pod)
        return policies.has_failed(job, pod)

    counted = count(
        job,
        pods,
        has_failed=has_failed,
        is_kept=lambda pod: uid_of(pod) in kept,
        is_ignored=lambda pod: policies.is_ignored(job, pod),
    )
    return _CountedJob(job, pods, counted, failed_indexes, replaceable)


def plan(job: Raw, candidates: Sequence[Raw], now: float) -> Plan:
    """Return the next step of a job; for a job of another controller only its end."""
    if spec_of(job).get("managedBy", MANAGER) != MANAGER:
        return _after(job, (), now) if is_finished(job) else NOTHING
    family = family_of(job, JOBS, candidates)
    if family.writes:
        return Plan(family.writes)
    if is_finished(job):
        return _after(job, family.members, now)
    view = _count_pods(job, family.members)
    ending = _ending(view, now)
    if ending is not None:
        view = _count_pods(job, family.members, ending)
    writes = [*_status(view, ending=ending, now=now), *_remove_finalizers(view, ending)]
    if is_deleted(job):
        return Plan(tuple(writes))
    if ending is not None:
        return Plan((*writes, *(Delete(PODS, name_of(pod), uid_of(pod)) for pod in view.active)))
    if is_suspended(job):
        return Plan((*writes, *_withdraw(view.active)))
    left = _deadline_in(job, now)
    wait = _backoff(view, now)
    if wait > 0:
        return Plan(tuple(writes), min(wait, left or wait))
    changes, wait = _scale(view, now)
    return Plan((*writes, *changes), min(wait, left or wait) if wait > 0 else left)


def _withdraw(pods: Sequence[Raw]) -> list[Write]:
    """Delete pods that are no longer wanted; they count neither as failed nor as succeeded."""
    writes: list[Write] = []
    for pod in pods:
        if FINALIZER in finalizers_of(pod):
            writes.append(without_finalizer(pod))
        writes.append(Delete(PODS, name_of(pod), uid_of(pod)))
    return writes


def _remove_finalizers(view: _CountedJob, ending: "_Ending | None") -> list[Write]:
    kept = {uid_of(pod) for pod in view.replaceable.values()}
    is_over = is_deleted(view.job) or (ending is not None and ending[0] == "Complete")

    def never_counts(pod: Raw) -> bool:
        if is_over and not policies.has_failed(view.job, pod) and not has_succeeded(pod):
            return is_deleted(view.job) or is_deleted(pod)
        return uid_of(pod) not in kept and policies.is_ignored(view.job, pod)

    return remove_finalizers(view.job, view.pods, is_ignored=never_counts)


def is_finished(job: Raw) -> bool:
    return has_condition(job, "Complete") or has_condition(job, "Failed")


def is_suspended(job: Raw) -> bool:
    return bool(spec_of(job).get("suspend"))


def _after(job: Raw, pods: Sequence[Raw], now: float) -> Plan:
    """Release the pods of a finished job, and delete it when its time to live is over."""
    writes: list[Write] = [
        without_finalizer(pod) for pod in pods if FINALIZER in finalizers_of(pod)
    ]
    ttl = spec_of(job).get("ttlSecondsAfterFinished")
    condition = condition_of(job, "Complete" if has_condition(job, "Complete") else "Failed")
    # Another controller may have set the condition without a time.
    finished_at = get(condition, "lastTransitionTime")
    if ttl is None or finished_at is None or is_deleted(job):
        return Plan(tuple(writes))
    left = seconds_of(finished_at) + ttl - now
    if left > 0:
        return Plan(tuple(writes), left)
    return Plan((*writes, Delete(JOBS, name_of(job), uid_of(job), propagation="Foreground")))


_Ending = tuple[str, str, str]
"""Complete or Failed, the reason and the message."""


def _ending(view: _CountedJob, now: float) -> _Ending | None:
    """Return how a job ends, or None; a condition that announces the end stays."""
    job = view.job
    counted = view.counted
    for kind, target in (("Complete", "SuccessCriteriaMet"), ("Failed", "FailureTarget")):
        condition = condition_of(job, target)
        if condition is not None and condition.get("status") == "True":
            return kind, condition.get("reason", ""), condition.get("message", "")
    failure = _failure(view, now)
    if failure is not None:
        return ("Failed", *failure)
    message = policies.success_message(job, counted.indexes)
    if message:
        return "Complete", "SuccessPolicy", message
    if _has_enough_successes(job, counted, view.pods):
        message = "Reached expected number of succeeded pods"
        return "Complete", "CompletionsReached", message
    return None


def _failure(view: _CountedJob, now: float) -> tuple[str, str] | None:
    spec = spec_of(view.job)
    job = view.job
    message = policies.fatal_message(job, view.pods)
    if message:
        return "PodFailurePolicy", message
    limit = spec.get("backoffLimit")
    limit = BACKOFF_LIMIT_DEFAULT if limit is None else limit
    failures = view.counted.all_failed
    if get(job, "spec.template.spec.restartPolicy") == "OnFailure":
        # These pods restart containers instead of failing, and each restart counts as a failure.
        living = (pod for pod in view.pods if not is_terminal(pod))
        statuses = (each for pod in living for each in get(pod, "status.containerStatuses", ()))
        failures += sum(each.get("restartCount", 0) for each in statuses)
    if failures > limit:
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    if (left := _deadline_in(job, now)) is not None and left <= 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    failed = len(view.failed_indexes or ())
    limit = spec.get("maxFailedIndexes")
    if limit is not None and failed > limit:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return "MaxFailedIndexesExceeded", message
    if failed and failed + len(view.counted.indexes) >= (spec.get("completions") or 0):
        return "FailedIndexes", "Job has failed indexes"
    return None


def _has_enough_successes(job: Raw, counted: Count, pods: Sequence[Raw]) -> bool:
    completions = spec_of(job).get("completions")
    if is_indexed(job):
        return len(counted.indexes) >= (completions or 0)
    if completions is not None:
        return counted.all_succeeded >= int(completions)
    # Without completions, the first success means that the work is done; other pods may finish.
    return counted.all_succeeded > 0 and not any(is_active(pod) for pod in pods)


def _deadline_in(job: Raw, now: float) -> float | None:
    seconds = spec_of(job).get("activeDeadlineSeconds")
    start = status_of(job).get("startTime")
    if seconds is None or start is None or is_suspended(job):
        return None
    return seconds_of(start) + float(seconds) - now


def _backoff(view: _CountedJob, now: float) -> float:
    """Return how long a replacement still waits after the newest failure."""
    failed = (pod for pod in view.pods if policies.has_failed(view.job, pod))
    ends = [policies.ended_at(pod) for pod in failed]
    failures = view.counted.all_failed
    if not ends or failures == 0 or view.failed_indexes is not None:
        return 0.0
    return max(ends) + policies.backoff_seconds(failures) - now


def _scale(view: _CountedJob, now: float) -> tuple[list[Write], float]:
    """Return the pods to create or delete, and the wait until the next creation."""
    job = view.job
    active = view.active
    wanted = _wanted(job, view.counted)
    if len(active) > wanted:
        return _withdraw(least_wanted(active)[: len(active) - wanted]), 0.0
    awaited = view.terminating if policies.replaces_only_failed(job) else []
    missing = max(0, wanted - len(active) - len(awaited))
    if not is_indexed(job):
        return [_creation(job) for _ in range(missing)], 0.0
    busy = {index_of(pod) for pod in (*active, *awaited)}
    taken = busy | view.counted.indexes | (view.failed_indexes or set())
    free = (index for index in range(spec_of(job).get("completions") or 0) if index not in taken)
    chosen = [index for index, _ in zip(free, range(missing), strict=False)]
    creations = []
    waits = []
    for index in chosen:
        replaced = view.replaceable.get(index)
        wait = 0.0 if replaced is None else policies.wait_of_index(replaced, now)
        if wait > 0:
            waits.append(wait)
            continue
        # With a limit per index, the pod carries the number of failures of its index.
        has_limit = view.failed_indexes is not None
        annotations = policies.failures_after(job, replaced) if has_limit else None
        creations.append(_creation(job, index, annotations))
    return creations, min(waits, default=0.0)


def _wanted(job: Raw, counted: Count) -> int:
    spec = spec_of(job)
    parallelism = spec.get("parallelism")
    parallelism = 1 if parallelism is None else int(parallelism)
    completions = spec.get("completions")
    if completions is None:
        # After the first success no pod is created.
        return parallelism if counted.all_succeeded == 0 else 0
    done = len(counted.indexes) if is_indexed(job) else counted.all_succeeded
    return max(0, min(parallelism, int(completions) - done))


def _creation(
    job: Raw, index: int | None = None, annotations: Mapping[str, str] | None = None
) -> Write:
    pod = pod_from(get(job, "spec.template", {}), job, JOBS)
    metadata = pod["metadata"]
    metadata["finalizers"] = [*get(metadata, "finalizers", ()), FINALIZER]
    if annotations:
        metadata["annotations"] = {**get(metadata, "annotations", {}), **annotations}
    if index is not None:
        name = f"{job['metadata']['name']}-{index}"
        metadata = metadata | {"generateName": f"{name}-"}
        for key in ("annotations", "labels"):
            metadata[key] = (metadata.get(key) or {}) | {INDEX: str(index)}
        variable = {
            "name": "JOB_COMPLETION_INDEX",
            "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}},
        }
        spec = {"hostname": name} | pod["spec"]
        for key in ("containers", "initContainers"):
            if spec.get(key):
                spec[key] = [
                    each | {"env": [*get(each, "env", ()), variable]} for each in spec[key]
                ]
        pod = {"metadata": metadata, "spec": spec}
    return creation_of(pod, job)


def _status(view: _CountedJob, *, ending: _Ending | None, now: float) -> list[Write]:
    job = view.job
    old = status_of(view.job)
    active = view.active
    status = view.counted.to_status() | {
        "ready": sum(is_ready(pod) for pod in active),
        "terminating": len(view.terminating),
        "conditions": list(get(old, "conditions", ())),
    }
    if active:
        status["active"] = len(active)
    if view.failed_indexes is not None:
        status["failedIndexes"] = index_text(view.failed_indexes)
    if not is_suspended(job):
        status["startTime"] = old.get("startTime") or timestamp(now)
    reports = _set_suspended(job, status, now)
    if ending is not None:
        reports += _set_ending(job, view.counted, status, ending=ending, now=now)
    if not status["conditions"]:
        del status["conditions"]
    if status == old:
        return []
    return [Update(JOBS, job | {"status": status}, "status"), *reports]


def _set_suspended(job: Raw, status: Raw, now: float) -> list[Write]:
    was = has_condition(job, "Suspended")
    if is_suspended(job) == was:
        return []
    word = "suspended" if is_suspended(job) else "resumed"
    told = _condition("Suspended", f"Job{word.capitalize()}", f"Job {word}", now)
    told["status"] = "True" if is_suspended(job) else "False"
    # A deadline counts from the last start of a job.
    if is_suspended(job):
        status.pop("startTime", None)
    else:
        status["startTime"] = timestamp(now)
    status["conditions"] = with_condition(status["conditions"], told)
    reason = "Suspended" if is_suspended(job) else "Resumed"
    return [Report(job, "Normal", reason, f"Job {word}")]


def _set_ending(
    job: Raw, counted: Count, status: Raw, *, ending: _Ending, now: float
) -> list[Write]:
    """
    Set the conditions of a job that ends.

    One condition announces the result at once; the final one follows when no pod runs and all pods
    are counted.
    """
    kind, reason, message = ending
    target = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
    conditions = status["conditions"]
    if not any(each["type"] == target for each in conditions):
        conditions = [*conditions, _condition(target, reason, message, now)]
    is_settled = not status.get("active") and not status["terminating"]
    is_counted = not counted.uncounted_succeeded and not counted.uncounted_failed
    status["conditions"] = conditions
    if not is_settled or not is_counted:
        return []
    status["conditions"] = [*conditions, _condition(kind, reason, message, now)]
    if kind == "Complete":
        status["completionTime"] = timestamp(now)
        return [Report(job, "Normal", "Completed", "Job completed")]
    return [Report(job, "Warning", reason, message)]


def _condition(kind: str, reason: str, message: str, now: float) -> Raw:
    when = timestamp(now)
    condition = {"type": kind, "status": "True", "lastProbeTime": when}
    return condition | {"lastTransitionTime": when, "reason": reason, "message": message}


class JobController(OwnerReconciler):
    """Watches jobs and their pods."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "job-controller", JOBS)
        self._orphans = _OrphanedPods(context, self.candidates)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(super().run(), name="jobs")
            group.create_task(self._orphans.run(), name="pods of no job")

    def plan_owner(self, job: Raw) -> Plan:
        return plan(job, self.candidates.of(job), self._clock.now())


class _OrphanedPods(Reconciler[Name]):
    """Removes the finalizer from pods whose job no longer exists."""

    def __init__(self, context: EngineContext, candidates: Candidates) -> None:
        super().__init__(context, "job-controller")
        self._candidates = candidates
        self._jobs = self.watch(JOBS, self._on_job)
        self._pods = self.watch(PODS, self._on_pod)

    def _on_job(self, old: Raw | None, new: Raw | None) -> None:
        if new is None and old is not None:
            for pod in self._candidates.controlled(old):
                self.queue.add(name_of(pod))

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and FINALIZER in finalizers_of(new):
            self.queue.add(name_of(new))

    async def decide(self, name: Name) -> Plan:
        pod = self._pods.objects.get(name)
        if pod is None or FINALIZER not in finalizers_of(pod):
            return NOTHING
        key = owner_key(pod, JOBS)
        job = self._jobs.objects.get(key) if key else None
        if job is not None and is_controlled_by(pod, job):
            return NOTHING
        return Plan((without_finalizer(pod),))
