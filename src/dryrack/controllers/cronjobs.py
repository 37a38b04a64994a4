"""
Cron jobs: a job at each time of a schedule.

A job has the name of the minute that it is for, so it is never created twice. It is created first
and recorded in the status of its cron job afterwards: after a restart in between, the job is found
by its name and recorded.

Kubernetes estimates the number of missed times from the distance between two times of the schedule,
and so does this module. Only the latest missed time is made up for; for an irregular schedule
perhaps none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dryrack.client.endpoints import CRON_JOBS, JOBS
from dryrack.client.informer import Name, name_of
from dryrack.client.timekeeping import seconds_of, timestamp
from dryrack.controllers.objects import (
    controller_reference,
    has_condition,
    is_controlled_by,
    is_deleted,
    spec_of,
    status_of,
    uid_of,
)
from dryrack.controllers.workloads import OwnerReconciler, status_update
from dryrack.controllers.writes import Create, Delete, EngineContext, Plan, Report, Write
from dryrack.kinds.paths import get, metadata_of
from dryrack.kinds.raw import Raw
from dryrack.kinds.rules.cron_schedules import Schedule, ScheduleError, parse_schedule, time_zone
from dryrack.kinds.text.quoting import quoted

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_TOO_MANY = (
    "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
)

_ALREADY_ACTIVE = (
    "Not starting job because prior execution is running and concurrency policy is Forbid"
)


# More missed times than this are reported: a clock is wrong, or a deadline is missing.
MISSED_MAX = 100

# A timer that fires a little early would find nothing to do. Kubernetes waits as long.
_LATE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class DueTime:
    """The latest time that is due, or None."""

    since: float
    time: float | None = None
    missed: int = 0
    """The estimated number of times that are due, if more than one."""


def plan(cron_job: Raw, jobs: Sequence[Raw], now: float, *, existing: Mapping[Name, Raw]) -> Plan:
    """Return the next step of a cron job; `jobs` are its own, `existing` are all jobs."""
    surplus = _surplus(cron_job, jobs)
    writes = [write for job in surplus for write in _deletion(job, cron_job)]
    status = dict(status_of(cron_job))
    _set_active(status, [each for each in _active(status) if not _includes(each, surplus)])
    schedule, problem = _schedule(cron_job)
    due = DueTime(now)
    if schedule is not None:
        try:
            due = due_time(cron_job, schedule, now)
        except ScheduleError as error:
            message = f"invalid schedule: {spec_of(cron_job)['schedule']} : {error}"
            schedule = None
            problem = _warning(cron_job, "InvalidSchedule", message)
    own = existing.get(_job_name(cron_job, due.time)) if due.time is not None else None
    writes += _update_status(cron_job, jobs, status, just_created=own)
    if schedule is None:
        writes += status_update(CRON_JOBS, cron_job, status)
        return Plan((*writes, *([problem] if problem else ())))
    if due.time is not None and timestamp(due.time) != status.get("lastScheduleTime"):
        writes += _start_job(cron_job, status, due, existing=own)
    else:
        writes += status_update(CRON_JOBS, cron_job, status)
    return Plan(tuple(writes), wait_seconds(cron_job, schedule, now))


def _schedule(cron_job: Raw) -> tuple[Schedule | None, Report | None]:
    """Return the schedule, or None if no job is to be started, with the reason."""
    spec = spec_of(cron_job)
    if is_deleted(cron_job) or spec.get("suspend"):
        return None, None
    zone = spec.get("timeZone") or ""
    schedule = spec.get("schedule") or ""
    try:
        location = time_zone(zone)
    except ScheduleError as error:
        message = f"invalid timeZone: {quoted(zone)}: {error}"
        return None, _warning(cron_job, "UnknownTimeZone", message)
    try:
        return parse_schedule(schedule, location), None
    except ScheduleError as error:
        message = f"unparseable schedule: {quoted(schedule)} : {error}"
        return None, _warning(cron_job, "UnparseableSchedule", message)


def _start_job(cron_job: Raw, status: Raw, due: DueTime, *, existing: Raw | None) -> list[Write]:
    """Create the job for a time and update the status; an existing job is recorded."""
    assert due.time is not None, "asked only if there is one"
    active = _active(status)
    policy = spec_of(cron_job).get("concurrencyPolicy")
    writes: list[Write] = []
    if existing is not None and is_controlled_by(existing, cron_job):
        if not _includes(_reference(existing), active):
            status["lastScheduleTime"] = timestamp(due.time)
            _set_active(status, [*active, _reference(existing)])
        return status_update(CRON_JOBS, cron_job, status)
    if due.missed > MISSED_MAX:
        writes.append(_warning(cron_job, "TooManyMissedTimes", _TOO_MANY, about=str(due.time)))
    if existing is not None:
        # An object of another owner has the name, so no job is created for this time.
        return [*writes, *status_update(CRON_JOBS, cron_job, status)]
    if policy == "Forbid" and active:
        when = str(due.time)
        report = Report(cron_job, "Normal", "JobAlreadyActive", _ALREADY_ACTIVE, once=when)
        return [*writes, report, *status_update(CRON_JOBS, cron_job, status)]
    if policy == "Replace":
        for each in active:
            writes += _deletion({"metadata": each}, cron_job)
        _set_active(status, [])
    created = Create(
        JOBS,
        _job(cron_job, due.time),
        refused=Report(cron_job, "Warning", "FailedCreate", "Error creating job: {}"),
        accepted=Report(cron_job, "Normal", "SuccessfulCreate", "Created job {}"),
    )
    return [*writes, *status_update(CRON_JOBS, cron_job, status), created]


def _update_status(
    cron_job: Raw, jobs: Sequence[Raw], status: Raw, *, just_created: Raw | None
) -> list[Write]:
    """Update a status for the jobs, and return events about what is unusual."""
    reports: list[Write] = []
    for job in jobs:
        name = job["metadata"]["name"]
        active = _active(status)
        is_active = _includes(_reference(job), active)
        ending = next((each for each in ("Complete", "Failed") if has_condition(job, each)), "")
        if not ending and not is_active and job is not just_created:
            message = f"Saw a job that the controller did not create or forgot: {name}"
            reports.append(_warning(cron_job, "UnexpectedJob", message, about=uid_of(job)))
        if ending and is_active:
            message = f"Saw completed job: {name}, condition: {ending}"
            reports.append(Report(cron_job, "Normal", "SawCompletedJob", message, once=uid_of(job)))
            _set_active(status, [each for each in active if each["uid"] != uid_of(job)])
        completed_at = status_of(job).get("completionTime")
        if ending == "Complete" and completed_at:
            last = status.get("lastSuccessfulTime") or completed_at
            status["lastSuccessfulTime"] = max(last, completed_at, key=seconds_of)
    missing = [each for each in _active(status) if not _includes(each, jobs)]
    for each in missing:
        message = f"Active job went missing: {each['name']}"
        reports.append(Report(cron_job, "Normal", "MissingJob", message, once=each["uid"]))
    _set_active(status, [each for each in _active(status) if each not in missing])
    return reports


def _active(status: Raw) -> list[Raw]:
    return list(get(status, "active", ()))


def _set_active(status: Raw, active: list[Raw]) -> None:
    status.pop("active", None)
    if active:
        status["active"] = active


def _includes(reference: Raw, objects: Sequence[Raw]) -> bool:
    """Return True if one of these objects or references has the UID of a reference."""
    return any((each.get("metadata") or each).get("uid") == reference["uid"] for each in objects)


def _surplus(cron_job: Raw, jobs: Sequence[Raw]) -> list[Raw]:
    """Return the oldest ended jobs beyond the history limits."""
    surplus: list[Raw] = []
    limits = (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit"))
    for ending, key in limits:
        limit = spec_of(cron_job).get(key)
        ended = sorted((job for job in jobs if has_condition(job, ending)), key=_age)
        if limit is not None:
            surplus += ended[: max(0, len(ended) - limit)]
    return [job for job in surplus if not is_deleted(job)]


def _age(job: Raw) -> tuple[bool, str, str]:
    start = status_of(job).get("startTime") or ""
    return not start, start, job["metadata"]["name"]


def _deletion(job: Raw, cron_job: Raw) -> list[Write]:
    message = f"Deleted job {job['metadata']['name']}"
    report = Report(cron_job, "Normal", "SuccessfulDelete", message)
    return [Delete(JOBS, name_of(job), uid_of(job), propagation="Background"), report]


def _warning(cron_job: Raw, reason: str, message: str, *, about: str = "") -> Report:
    """Return a warning, which is one event for each `about`, or for each generation."""
    generation = cron_job["metadata"].get("generation", 0)
    return Report(cron_job, "Warning", reason, message, once=about or f"{generation}")


def _job_name(cron_job: Raw, time: float) -> Name:
    metadata = cron_job["metadata"]
    return Name(metadata["namespace"], f"{metadata['name']}-{int(time) // 60}")


def _job(cron_job: Raw, time: float) -> Raw:
    template: Raw = get(cron_job, "spec.jobTemplate", {})
    given: dict[str, Any] = metadata_of(template)
    name = _job_name(cron_job, time)
    zone = time_zone(spec_of(cron_job).get("timeZone") or "")
    scheduled = datetime.fromtimestamp(time, UTC).astimezone(zone).isoformat()
    scheduled = scheduled.removesuffix("+00:00") + "Z" * scheduled.endswith("+00:00")
    metadata = {
        "name": name.name,
        "namespace": name.namespace,
        "annotations": {**get(given, "annotations", {}), SCHEDULED_AT: scheduled},
        "ownerReferences": [controller_reference(cron_job, CRON_JOBS)],
    }
    if given.get("labels"):
        metadata["labels"] = given["labels"]
    return {"metadata": metadata, "spec": spec_of(template)}


def _reference(job: Raw) -> Raw:
    metadata = job["metadata"]
    keys = ("namespace", "name", "uid", "resourceVersion")
    identity = {key: metadata[key] for key in keys}
    return {"kind": JOBS.kind, "apiVersion": JOBS.api_version, **identity}


class CronJobController(OwnerReconciler):
    """Creates the jobs of cron jobs."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "cronjob-controller", CRON_JOBS, owned=JOBS)

    def plan_owner(self, cron_job: Raw) -> Plan:
        own = self.candidates.controlled(cron_job)
        return plan(cron_job, own, self._clock.now(), existing=self.members.objects)


def due_time(cron_job: Raw, schedule: Schedule, now: float) -> DueTime:
    """Return the time that is due since the last job and within the deadline."""
    since = _since(cron_job)
    deadline = spec_of(cron_job).get("startingDeadlineSeconds")
    return _latest(schedule, since if deadline is None else max(since, now - deadline), now)


def wait_seconds(cron_job: Raw, schedule: Schedule, now: float) -> float | None:
    """Return how long it is until the next time, or None."""
    since = _since(cron_job)
    try:
        due = _latest(schedule, since, now)
    except ScheduleError:
        return None
    base = due.time if due.time is not None else now if due.missed else since
    following = schedule.next_after(base)
    return None if following is None else following - now + _LATE_SECONDS


def _since(cron_job: Raw) -> float:
    last = status_of(cron_job).get("lastScheduleTime")
    return seconds_of(last or cron_job["metadata"]["creationTimestamp"])


def _latest(schedule: Schedule, since: float, now: float) -> DueTime:
    first = schedule.next_after(since)
    second = None if first is None else schedule.next_after(first)
    if first is None or second is None:
        raise ScheduleError("time difference between two schedules is less than 1 second")
    if now < first:
        return DueTime(since)
    if now < second:
        return DueTime(since, first)
    distance = int(second - first)
    missed = int(now - first) // distance + 1
    latest = None
    following = schedule.next_after(first + (missed - 2) * distance)
    while following is not None and following <= now:
        latest = following
        following = schedule.next_after(following)
    return DueTime(since, latest, missed)
