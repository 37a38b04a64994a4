"""
Missed schedules: the time for which a cron job owes a job, and the time to look again.

Kubernetes estimates both from the distance of two times of the schedule, so that a controller that
was away for years does not count them all, and so do we: of the times that were missed only the
latest is made up for, and of a schedule that is not regular perhaps none.
"""

from dataclasses import dataclass

from dryrack.client.timekeeping import seconds_of
from dryrack.controllers.objects import spec_of, status_of
from dryrack.kinds.raw import Raw
from dryrack.kinds.rules.cron_schedules import Schedule, ScheduleError

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
