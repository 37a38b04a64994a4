"""
Cron jobs: a job at each time of a schedule.

A job is called after the minute that it is for, so that nobody makes it twice. It is made first
and written down in the status of its cron job afterwards: whoever dies in between finds the job by
its name and writes it down. What the schedule says is in `kinds`, which time is due in
`due_times`.
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


# More than this many are told to people: a clock is wrong, or a deadline is missing.
MISSED_MAX = 100

# A timer that is a little early would find nothing to do; as long as Kubernetes waits.
_LATE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class DueTime:
    """The latest time that has come; None if none has, or if none is found."""

    since: float
    time: float | None = None
    missed: int = 0
    """About how many have come, if more than one."""


def plan(cron_job: Raw, jobs: Sequence[Raw], now: float, *, existing: Mapping[Name, Raw]) -> Plan:
    """The next step of a cron job; `jobs` are its own, and `existing` are all there are."""
    surplus = _surplus(cron_job, jobs)
    writes = [write for job in surplus for write in _deletion(job, cron_job)]
    status = dict(status_of(cron_job))
    _set_active(status, [each for each in _active(status) if not _names(each, surplus)])
    schedule, problem = _schedule(cron_job)
    due = DueTime(now)
    if schedule is not None:
        try:
            due = due_time(cron_job, schedule, now)
        except ScheduleError as error:
            told = f"invalid schedule: {spec_of(cron_job)['schedule']} : {error}"
            schedule = None
            problem = _warning(cron_job, "InvalidSchedule", told)
    own = existing.get(_job_name(cron_job, due.time)) if due.time is not None else None
    writes += _observed(cron_job, jobs, status, just_made=own)
    if schedule is None:
        writes += status_update(CRON_JOBS, cron_job, status)
        return Plan((*writes, *([problem] if problem else ())))
    if due.time is not None and timestamp(due.time) != status.get("lastScheduleTime"):
        writes += _started(cron_job, status, due, existing=own)
    else:
        writes += status_update(CRON_JOBS, cron_job, status)
    return Plan(tuple(writes), wait_seconds(cron_job, schedule, now))


def _schedule(cron_job: Raw) -> tuple[Schedule | None, Report | None]:
    """None if nothing is to be started, and perhaps why."""
    spec = spec_of(cron_job)
    if is_deleted(cron_job) or spec.get("suspend"):
        return None, None
    zone = spec.get("timeZone") or ""
    schedule = spec.get("schedule") or ""
    try:
        location = time_zone(zone)
    except ScheduleError as error:
        told = f"invalid timeZone: {quoted(zone)}: {error}"
        return None, _warning(cron_job, "UnknownTimeZone", told)
    try:
        return parse_schedule(schedule, location), None
    except ScheduleError as error:
        told = f"unparseable schedule: {quoted(schedule)} : {error}"
        return None, _warning(cron_job, "UnparseableSchedule", told)


def _started(cron_job: Raw, status: Raw, due: DueTime, *, existing: Raw | None) -> list[Write]:
    """The job for a time, and the status of its cron job: with a job that is there already."""
    assert due.time is not None, "asked only if there is one"
    active = _active(status)
    policy = spec_of(cron_job).get("concurrencyPolicy")
    writes: list[Write] = []
    if existing is not None and is_controlled_by(existing, cron_job):
        if not _names(_reference(existing), active):
            status["lastScheduleTime"] = timestamp(due.time)
            _set_active(status, [*active, _reference(existing)])
        return status_update(CRON_JOBS, cron_job, status)
    if due.missed > MISSED_MAX:
        writes.append(_warning(cron_job, "TooManyMissedTimes", _TOO_MANY, about=str(due.time)))
    if existing is not None:
        # Another one took the name; whoever it is, this time is not ours.
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


def _observed(
    cron_job: Raw, jobs: Sequence[Raw], status: Raw, *, just_made: Raw | None
) -> list[Write]:
    """Brings a status up to date with the jobs, and tells what is remarkable."""
    reports: list[Write] = []
    for job in jobs:
        name = job["metadata"]["name"]
        active = _active(status)
        is_active = _names(_reference(job), active)
        ending = next((each for each in ("Complete", "Failed") if has_condition(job, each)), "")
        if not ending and not is_active and job is not just_made:
            told = f"Saw a job that the controller did not create or forgot: {name}"
            reports.append(_warning(cron_job, "UnexpectedJob", told, about=uid_of(job)))
        if ending and is_active:
            told = f"Saw completed job: {name}, condition: {ending}"
            reports.append(Report(cron_job, "Normal", "SawCompletedJob", told, once=uid_of(job)))
            _set_active(status, [each for each in active if each["uid"] != uid_of(job)])
        completed_at = status_of(job).get("completionTime")
        if ending == "Complete" and completed_at:
            last = status.get("lastSuccessfulTime") or completed_at
            status["lastSuccessfulTime"] = max(last, completed_at, key=seconds_of)
    missing = [each for each in _active(status) if not _names(each, jobs)]
    for each in missing:
        told = f"Active job went missing: {each['name']}"
        reports.append(Report(cron_job, "Normal", "MissingJob", told, once=each["uid"]))
    _set_active(status, [each for each in _active(status) if each not in missing])
    return reports


def _active(status: Raw) -> list[Raw]:
    return list(get(status, "active", ()))


def _set_active(status: Raw, active: list[Raw]) -> None:
    status.pop("active", None)
    if active:
        status["active"] = active


def _names(reference: Raw, objects: Sequence[Raw]) -> bool:
    """Whether one of these objects, or of these references, has the uid of a reference."""
    return any((each.get("metadata") or each).get("uid") == reference["uid"] for each in objects)


def _surplus(cron_job: Raw, jobs: Sequence[Raw]) -> list[Raw]:
    """The oldest of those that have ended, of each kind more than are to be kept."""
    found: list[Raw] = []
    limits = (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit"))
    for ending, key in limits:
        limit = spec_of(cron_job).get(key)
        ended = sorted((job for job in jobs if has_condition(job, ending)), key=_age)
        if limit is not None:
            found += ended[: max(0, len(ended) - limit)]
    return [job for job in found if not is_deleted(job)]


def _age(job: Raw) -> tuple[bool, str, str]:
    start = status_of(job).get("startTime") or ""
    return not start, start, job["metadata"]["name"]


def _deletion(job: Raw, cron_job: Raw) -> list[Write]:
    told = f"Deleted job {job['metadata']['name']}"
    report = Report(cron_job, "Normal", "SuccessfulDelete", told)
    return [Delete(JOBS, name_of(job), uid_of(job), propagation="Background"), report]


def _warning(cron_job: Raw, reason: str, message: str, *, about: str = "") -> Report:
    """Told once for a thing and a spec, however often it is noticed."""
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
    return {"metadata": metadata, "spec": template.get("spec") or {}}


def _reference(job: Raw) -> Raw:
    metadata = job["metadata"]
    keys = ("namespace", "name", "uid", "resourceVersion")
    identity = {key: metadata[key] for key in keys}
    return {"kind": JOBS.kind, "apiVersion": JOBS.api_version, **identity}


class CronJobController(OwnerReconciler):
    """Watches cron jobs and their jobs."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "cronjob-controller", CRON_JOBS, owned=JOBS)

    def plan_owner(self, cron_job: Raw) -> Plan:
        own = self.candidates.controlled(cron_job)
        return plan(cron_job, own, self._clock.now(), existing=self.members.objects)


def due_time(cron_job: Raw, schedule: Schedule, now: float) -> DueTime:
    """What has come since the last job, and not before the deadline; raises `ScheduleError`."""
    since = _since(cron_job)
    deadline = spec_of(cron_job).get("startingDeadlineSeconds")
    return _latest(schedule, since if deadline is None else max(since, now - deadline), now)


def wait_seconds(cron_job: Raw, schedule: Schedule, now: float) -> float | None:
    """How long until the next time; None if there is none."""
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
