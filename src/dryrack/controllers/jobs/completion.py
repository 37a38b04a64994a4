"""
Jobs: pods until enough of them have succeeded, or too many have failed.

A pod that failed is replaced, later each time; the job has failed when more have failed than its
back-off limit allows, or when it takes too long. What its policies say of failures and successes
is in `policies`, how pods are counted in `tracking`.
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
    set_free,
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
class _View:
    """A job and its pods, counted."""

    job: Raw
    pods: Sequence[Raw]
    counted: Count
    failed_indexes: frozenset[int] | None
    """Those that are given up, where each index has its own limit."""
    replaceable: Mapping[int, Raw]
    """By index: the failed pod that another one is to replace."""

    @property
    def active(self) -> list[Raw]:
        return [pod for pod in self.pods if is_active(pod)]

    @property
    def terminating(self) -> list[Raw]:
        return [pod for pod in self.pods if is_deleted(pod) and not is_terminal(pod)]


def _view(job: Raw, pods: Sequence[Raw], ending: "_Ending | None" = None) -> _View:
    """Who is to be replaced is kept, unless nobody will be."""
    given_up = policies.failed_indexes(job, pods) if policies.has_limit_per_index(job) else None
    replaceable: dict[int, Raw] = {}
    if given_up is not None and ending is None and not is_deleted(job):
        settled = given_up | indexes_of(job, pods)
        replaceable = policies.replaceable(job, pods, settled=settled)
    kept = {uid_of(pod) for pod in replaceable.values()}

    def has_failed(pod: Raw) -> bool:
        # Whoever still runs when a job has failed has failed with it.
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
    return _View(job, pods, counted, given_up, replaceable)


def plan(job: Raw, candidates: Sequence[Raw], now: float) -> Plan:
    """The next step of a job; of one that another controller runs only its end."""
    if spec_of(job).get("managedBy", MANAGER) != MANAGER:
        return _after(job, (), now) if is_finished(job) else NOTHING
    family = family_of(job, JOBS, candidates)
    if family.writes:
        return Plan(family.writes)
    if is_finished(job):
        return _after(job, family.members, now)
    view = _view(job, family.members)
    ending = _ending(view, now)
    if ending is not None:
        view = _view(job, family.members, ending)
    writes = [*_status(view, ending=ending, now=now), *_freed(view, ending)]
    if is_deleted(job):
        return Plan(tuple(writes))
    if ending is not None:
        return Plan((*writes, *(Delete(PODS, name_of(pod), uid_of(pod)) for pod in view.active)))
    if is_suspended(job):
        return Plan((*writes, *_withdrawn(view.active)))
    missing, again_seconds = _missing(view, now)
    return Plan((*writes, *missing), again_seconds)


def _missing(view: _View, now: float) -> tuple[list[Write], float | None]:
    """The pods to make or to delete, and when to look again."""
    left = _deadline_in(view.job, now)
    wait = _backoff(view, now)
    if wait > 0:
        return [], min(wait, left or wait)
    writes, wait = _scaled(view, now)
    return writes, min(wait, left or wait) if wait > 0 else left


def _withdrawn(pods: Sequence[Raw]) -> list[Write]:
    """The end of pods that are not wanted any more; they count neither as failed nor else."""
    writes: list[Write] = []
    for pod in pods:
        if FINALIZER in finalizers_of(pod):
            writes.append(without_finalizer(pod))
        writes.append(Delete(PODS, name_of(pod), uid_of(pod)))
    return writes


def _freed(view: _View, ending: "_Ending | None") -> list[Write]:
    kept = {uid_of(pod) for pod in view.replaceable.values()}
    is_over = is_deleted(view.job) or (ending is not None and ending[0] == "Complete")

    def never_counts(pod: Raw) -> bool:
        if is_over and not policies.has_failed(view.job, pod) and not has_succeeded(pod):
            return is_deleted(view.job) or is_deleted(pod)
        return uid_of(pod) not in kept and policies.is_ignored(view.job, pod)

    return set_free(view.job, view.pods, is_ignored=never_counts)


def is_finished(job: Raw) -> bool:
    return has_condition(job, "Complete") or has_condition(job, "Failed")


def is_suspended(job: Raw) -> bool:
    return bool(spec_of(job).get("suspend"))


def _after(job: Raw, pods: Sequence[Raw], now: float) -> Plan:
    """A finished job frees its pods, and goes when its time to live is over."""
    writes: list[Write] = [
        without_finalizer(pod) for pod in pods if FINALIZER in finalizers_of(pod)
    ]
    ttl = spec_of(job).get("ttlSecondsAfterFinished")
    # ~ None if whoever runs the job did not say when.
    condition = condition_of(job, "Complete" if has_condition(job, "Complete") else "Failed")
    when = (condition or {}).get("lastTransitionTime")
    finished_at = seconds_of(when) if when else None
    if ttl is None or finished_at is None or is_deleted(job):
        return Plan(tuple(writes))
    left = finished_at + ttl - now
    if left > 0:
        return Plan(tuple(writes), left)
    return Plan((*writes, Delete(JOBS, name_of(job), uid_of(job), propagation="Foreground")))


_Ending = tuple[str, str, str]
"""Complete or Failed, the reason and the message."""


def _ending(view: _View, now: float) -> _Ending | None:
    """How it ends, if it does; what was once said stays so."""
    job = view.job
    counted = view.counted
    for kind, target in (("Complete", "SuccessCriteriaMet"), ("Failed", "FailureTarget")):
        said = condition_of(job, target)
        if said is not None and said.get("status") == "True":
            return kind, said.get("reason", ""), said.get("message", "")
    failure = _failure(view, now)
    if failure is not None:
        return ("Failed", *failure)
    message = policies.success_message(job, counted.indexes)
    if message:
        return "Complete", "SuccessPolicy", message
    if _is_enough(job, counted, view.pods):
        message = "Reached expected number of succeeded pods"
        return "Complete", "CompletionsReached", message
    return None


def _failure(view: _View, now: float) -> tuple[str, str] | None:
    spec = spec_of(view.job)
    job = view.job
    message = policies.fatal_message(job, view.pods)
    if message:
        return "PodFailurePolicy", message
    limit = spec.get("backoffLimit")
    limit = BACKOFF_LIMIT_DEFAULT if limit is None else limit
    if view.counted.all_failed + _restarts(job, view.pods) > limit:
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    if (left := _deadline_in(job, now)) is not None and left <= 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return _failure_of_indexes(view)


def _failure_of_indexes(view: _View) -> tuple[str, str] | None:
    spec = spec_of(view.job)
    failed = len(view.failed_indexes or ())
    limit = spec.get("maxFailedIndexes")
    if limit is not None and failed > limit:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return "MaxFailedIndexesExceeded", message
    if failed and failed + len(view.counted.indexes) >= (spec.get("completions") or 0):
        return "FailedIndexes", "Job has failed indexes"
    return None


def _restarts(job: Raw, pods: Sequence[Raw]) -> int:
    """Restarts count as failures where pods restart instead of failing."""
    policy = get(job, "spec.template.spec.restartPolicy")
    if policy != "OnFailure":
        return 0
    living = [pod for pod in pods if not is_terminal(pod)]
    statuses = [each for pod in living for each in get(pod, "status.containerStatuses", ())]
    return sum(each.get("restartCount", 0) for each in statuses)


def _is_enough(job: Raw, counted: Count, pods: Sequence[Raw]) -> bool:
    completions = spec_of(job).get("completions")
    if is_indexed(job):
        return len(counted.indexes) >= (completions or 0)
    if completions is not None:
        return counted.all_succeeded >= int(completions)
    # Without a number, the first success tells that the work is done; the others may finish.
    return counted.all_succeeded > 0 and not any(is_active(pod) for pod in pods)


def _deadline_in(job: Raw, now: float) -> float | None:
    seconds = spec_of(job).get("activeDeadlineSeconds")
    start = status_of(job).get("startTime")
    if seconds is None or start is None or is_suspended(job):
        return None
    return seconds_of(start) + float(seconds) - now


def _backoff(view: _View, now: float) -> float:
    """How long a replacement still waits, by the newest failure."""
    failed = (pod for pod in view.pods if policies.has_failed(view.job, pod))
    ends = [policies.ended_at(pod) for pod in failed]
    failures = view.counted.all_failed
    if not ends or failures == 0 or view.failed_indexes is not None:
        return 0.0
    return max(ends) + policies.backoff_seconds(failures) - now


def _scaled(view: _View, now: float) -> tuple[list[Write], float]:
    """The pods to make or to delete, and how long those that are not made yet still wait."""
    job = view.job
    active = view.active
    wanted = _wanted(job, view.counted)
    if len(active) > wanted:
        return _withdrawn(least_wanted(active)[: len(active) - wanted]), 0.0
    awaited = view.terminating if policies.replaces_only_failed(job) else []
    missing = max(0, wanted - len(active) - len(awaited))
    if not is_indexed(job):
        return [_creation(job) for _ in range(missing)], 0.0
    busy = {index_of(pod) for pod in (*active, *awaited)}
    taken = busy | view.counted.indexes | (view.failed_indexes or set())
    free = (index for index in range(spec_of(job).get("completions") or 0) if index not in taken)
    chosen = [index for index, _ in zip(free, range(missing), strict=False)]
    waits = {index: _wait_of(view, index, now) for index in chosen}
    made = [_creation_of(view, index) for index in chosen if waits[index] <= 0]
    return made, min((wait for wait in waits.values() if wait > 0), default=0.0)


def _wait_of(view: _View, index: int, now: float) -> float:
    pod = view.replaceable.get(index)
    return 0.0 if pod is None else policies.wait_of_index(pod, now)


def _wanted(job: Raw, counted: Count) -> int:
    spec = spec_of(job)
    parallelism = spec.get("parallelism")
    parallelism = 1 if parallelism is None else int(parallelism)
    completions = spec.get("completions")
    if completions is None:
        # After the first success no new pod begins.
        return parallelism if counted.all_succeeded == 0 else 0
    done = len(counted.indexes) if is_indexed(job) else counted.all_succeeded
    return max(0, min(parallelism, int(completions) - done))


def _creation_of(view: _View, index: int) -> Write:
    """A pod of an index; with a limit for each it carries on how often the index failed."""
    if view.failed_indexes is None:
        return _creation(view.job, index)
    told = policies.failures_after(view.job, view.replaceable.get(index))
    return _creation(view.job, index, told)


def _creation(
    job: Raw, index: int | None = None, annotations: Mapping[str, str] | None = None
) -> Write:
    pod = pod_from(get(job, "spec.template", {}), job, JOBS)
    metadata = pod["metadata"]
    metadata["finalizers"] = [*get(metadata, "finalizers", ()), FINALIZER]
    if annotations:
        metadata["annotations"] = {**get(metadata, "annotations", {}), **annotations}
    if index is not None:
        pod = _indexed(pod, job, index)
    return creation_of(pod, job)


def _indexed(pod: Raw, job: Raw, index: int) -> Raw:
    name = job["metadata"]["name"]
    metadata = pod["metadata"] | {"generateName": f"{name}-{index}-"}
    for key in ("annotations", "labels"):
        metadata[key] = (metadata.get(key) or {}) | {INDEX: str(index)}
    variable = {
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}},
    }
    spec = {"hostname": f"{name}-{index}"} | pod["spec"]
    for key in ("containers", "initContainers"):
        if spec.get(key):
            spec[key] = [c | {"env": [*get(c, "env", ()), variable]} for c in spec[key]]
    return {"metadata": metadata, "spec": spec}


def _status(view: _View, *, ending: _Ending | None, now: float) -> list[Write]:
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
    reports = _suspension(job, status, now)
    if ending is not None:
        reports += _conclusion(job, view.counted, status, ending=ending, now=now)
    if not status["conditions"]:
        del status["conditions"]
    if status == old:
        return []
    return [Update(JOBS, job | {"status": status}, "status"), *reports]


def _suspension(job: Raw, status: Raw, now: float) -> list[Write]:
    was = has_condition(job, "Suspended")
    if is_suspended(job) == was:
        return []
    word = "suspended" if is_suspended(job) else "resumed"
    told = _condition("Suspended", f"Job{word.capitalize()}", f"Job {word}", now)
    told["status"] = "True" if is_suspended(job) else "False"
    # A deadline counts from the last time that a job began.
    if is_suspended(job):
        status.pop("startTime", None)
    else:
        status["startTime"] = timestamp(now)
    status["conditions"] = with_condition(status["conditions"], told)
    reason = "Suspended" if is_suspended(job) else "Resumed"
    return [Report(job, "Normal", reason, f"Job {word}")]


def _conclusion(
    job: Raw, counted: Count, status: Raw, *, ending: _Ending, now: float
) -> list[Write]:
    """
    How a job ends: what it will be is said at once, and that it is so when no pod runs any more
    and all are counted.
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
