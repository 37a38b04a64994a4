"""
Jobs: pods until enough of them have succeeded, or too many have failed.

A pod that failed is replaced, later each time; the job has failed when more have failed than its
back-off limit allows, or when it takes too long. Pod failure policies, success policies and limits
per index are not played: a job with one gets an event that says so, and the plain rules.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from dryrack.client.endpoints import JOBS, PODS
from dryrack.client.informer import Name, name_of
from dryrack.client.timekeeping import seconds_of, timestamp
from dryrack.controllers.jobs.tracking import (
    FINALIZER,
    INDEX,
    Count,
    count,
    index_of,
    is_indexed,
    set_free,
    without_finalizer,
)
from dryrack.controllers.loop import Loop
from dryrack.controllers.objects import (
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
from dryrack.controllers.replicasets.replication import least_wanted
from dryrack.controllers.workloads import (
    Candidates,
    family_of,
    is_active,
    owner_key,
    pod_from,
)
from dryrack.controllers.writes import (
    NOTHING,
    Create,
    Delete,
    Plan,
    Report,
    Surroundings,
    Update,
    Write,
)

Raw = dict[str, Any]

BACKOFF_LIMIT_DEFAULT = 6
# The waits between replacements of failed pods, as kube-controller-manager has them.
BACKOFF_SECONDS_MIN = 10.0
BACKOFF_SECONDS_MAX = 600.0

_UNPLAYED = ("podFailurePolicy", "successPolicy", "backoffLimitPerIndex")


def plan(job: Raw, candidates: Sequence[Raw], now: float) -> Plan:
    """The next step of a job."""
    family = family_of(job, JOBS, candidates)
    if family.writes:
        return Plan(family.writes)
    pods = family.members
    if is_finished(job):
        return _after(job, pods, now)
    counted = count(job, pods)
    ending = _ending(job, counted, pods, now)
    active = [pod for pod in pods if is_active(pod)]
    missing: list[Write] = []
    again_seconds = _deadline_in(job, now)
    if ending is not None or is_suspended(job) or is_deleted(job):
        doomed = [] if is_deleted(job) else active
        missing = [Delete(PODS, name_of(pod), uid_of(pod)) for pod in doomed]
    else:
        wait = _backoff(counted, pods, now)
        if wait <= 0:
            missing = _scaled(job, counted, active)
        else:
            again_seconds = min(wait, again_seconds or wait)
    writes = [*_status(job, counted, pods, ending=ending, now=now), *set_free(job, pods), *missing]
    return Plan(tuple(writes), again_seconds)


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
    if ttl is None or is_deleted(job):
        return Plan(tuple(writes))
    left = _finished_at(job) + ttl - now
    if left > 0:
        return Plan(tuple(writes), left)
    return Plan((*writes, Delete(JOBS, name_of(job), uid_of(job), propagation="Foreground")))


def _finished_at(job: Raw) -> float:
    conditions = status_of(job).get("conditions") or ()
    final = (each for each in conditions if each["type"] in ("Complete", "Failed"))
    return seconds_of(next(final)["lastTransitionTime"])


_Ending = tuple[str, str, str]
"""Complete or Failed, the reason and the message."""


def _ending(job: Raw, counted: Count, pods: Sequence[Raw], now: float) -> _Ending | None:
    spec = spec_of(job)
    limit = spec.get("backoffLimit")
    limit = BACKOFF_LIMIT_DEFAULT if limit is None else limit
    if counted.all_failed + _restarts(job, pods) > limit:
        return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    if (left := _deadline_in(job, now)) is not None and left <= 0:
        message = "Job was active longer than specified deadline"
        return "Failed", "DeadlineExceeded", message
    if _is_enough(job, counted, pods):
        message = "Reached expected number of succeeded pods"
        return "Complete", "CompletionsReached", message
    return None


def _restarts(job: Raw, pods: Sequence[Raw]) -> int:
    """Restarts count as failures where pods restart instead of failing."""
    policy = ((spec_of(job).get("template") or {}).get("spec") or {}).get("restartPolicy")
    if policy != "OnFailure":
        return 0
    living = [pod for pod in pods if not is_terminal(pod)]
    statuses = [each for pod in living for each in status_of(pod).get("containerStatuses") or ()]
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
    seconds, start = spec_of(job).get("activeDeadlineSeconds"), status_of(job).get("startTime")
    if seconds is None or start is None or is_suspended(job):
        return None
    return seconds_of(start) + float(seconds) - now


def _backoff(counted: Count, pods: Sequence[Raw], now: float) -> float:
    """How long a replacement still waits, by the newest failure."""
    ends = [_ended_at(pod) for pod in pods if status_of(pod).get("phase") == "Failed"]
    if not ends or counted.all_failed == 0:
        return 0.0
    wait = BACKOFF_SECONDS_MIN * 2 ** min(counted.all_failed - 1, 10)
    return max(ends) + min(float(wait), BACKOFF_SECONDS_MAX) - now


def _ended_at(pod: Raw) -> float:
    statuses = status_of(pod).get("containerStatuses") or ()
    ends = [(each.get("state") or {}).get("terminated") or {} for each in statuses]
    times = [seconds_of(each["finishedAt"]) for each in ends if each.get("finishedAt")]
    return max(times, default=seconds_of(pod["metadata"]["creationTimestamp"]))


def _scaled(job: Raw, counted: Count, active: Sequence[Raw]) -> list[Write]:
    wanted = _wanted(job, counted)
    if len(active) > wanted:
        doomed = least_wanted(active)[: len(active) - wanted]
        return [Delete(PODS, name_of(pod), uid_of(pod)) for pod in doomed]
    missing = wanted - len(active)
    if not is_indexed(job):
        return [_creation(job, None) for _ in range(missing)]
    taken = counted.indexes | {index_of(pod) for pod in active}
    free = (index for index in range(spec_of(job).get("completions") or 0) if index not in taken)
    return [_creation(job, index) for index, _ in zip(free, range(missing), strict=False)]


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


def _creation(job: Raw, index: int | None) -> Write:
    pod = pod_from(spec_of(job).get("template") or {}, job, JOBS)
    metadata = pod["metadata"]
    metadata["finalizers"] = [*(metadata.get("finalizers") or ()), FINALIZER]
    if index is not None:
        pod = _indexed(pod, job, index)
    return Create(
        PODS,
        pod,
        refused=Report(job, "Warning", "FailedCreate", "Error creating: {}"),
        accepted=Report(job, "Normal", "SuccessfulCreate", "Created pod: {}"),
    )


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
            spec[key] = [c | {"env": [*(c.get("env") or ()), variable]} for c in spec[key]]
    return {"metadata": metadata, "spec": spec}


def _status(
    job: Raw, counted: Count, pods: Sequence[Raw], *, ending: _Ending | None, now: float
) -> list[Write]:
    old = status_of(job)
    active = [pod for pod in pods if is_active(pod)]
    status = counted.to_status() | {
        "ready": sum(is_ready(pod) for pod in active),
        "terminating": sum(is_deleted(pod) and not is_terminal(pod) for pod in pods),
        "conditions": list(old.get("conditions") or ()),
    }
    if active:
        status["active"] = len(active)
    if not is_suspended(job):
        status["startTime"] = old.get("startTime") or timestamp(now)
    reports = _suspension(job, status, now) + _unplayed(job)
    if ending is not None:
        reports += _conclusion(job, counted, status, ending=ending, now=now)
    if not status["conditions"]:
        del status["conditions"]
    if status == old:
        return []
    return [Update(JOBS, job | {"status": status}, "status"), *reports]


def _unplayed(job: Raw) -> list[Write]:
    """What a job wants and does not get here is said once, when it starts."""
    wants = [key for key in _UNPLAYED if key in spec_of(job)]
    if not wants or "startTime" in status_of(job):
        return []
    return [Report(job, "Warning", "NotPlayed", f"{', '.join(wants)}: not played here")]


def _suspension(job: Raw, status: Raw, now: float) -> list[Write]:
    was = has_condition(job, "Suspended")
    if is_suspended(job) == was:
        return []
    word = "suspended" if is_suspended(job) else "resumed"
    told = _condition("Suspended", f"Job{word.capitalize()}", f"Job {word}", now)
    told["status"] = "True" if is_suspended(job) else "False"
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


class Completion:
    """Watches jobs and their pods."""

    def __init__(self, around: Surroundings) -> None:
        self._clock = around.clock
        self._jobs = around.informers.of(JOBS)
        self._pods = around.informers.of(PODS)
        self._candidates = Candidates(self._pods)
        self._loop: Loop[Name] = Loop(
            around, "job-controller", self._decide, reads=(self._jobs, self._pods)
        )
        # Pods whose job is gone still carry its finalizer.
        self._orphans: Loop[Name] = Loop(
            around, "job-controller", self._free, reads=(self._jobs, self._pods)
        )
        self._jobs.listen(self._on_job)
        self._pods.listen(self._on_pod)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._loop.run(), name="jobs")
            group.create_task(self._orphans.run(), name="pods of no job")

    def _on_job(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None:
            self._loop.queue.add(name_of(new))
            return
        for pod in self._candidates.controlled(old or {"metadata": {}}):
            self._orphans.queue.add(name_of(pod))

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        for pod in (old, new):
            if pod is not None and (key := owner_key(pod, JOBS)):
                self._loop.queue.add_after(key, self._candidates.pace_of(pod))
        if new is not None and FINALIZER in finalizers_of(new):
            self._orphans.queue.add(name_of(new))

    async def _decide(self, name: Name) -> Plan:
        job = self._jobs.objects.get(name)
        if job is None:
            return NOTHING
        return plan(job, self._candidates.of(job), self._clock.now())

    async def _free(self, name: Name) -> Plan:
        pod = self._pods.objects.get(name)
        if pod is None or FINALIZER not in finalizers_of(pod):
            return NOTHING
        key = owner_key(pod, JOBS)
        job = self._jobs.objects.get(key) if key else None
        if job is not None and is_controlled_by(pod, job):
            return NOTHING
        return Plan((without_finalizer(pod),))
