"""Cron jobs: a template of jobs, and a schedule."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.rules.checks import non_negative, one_of
from dryrack.kinds.rules.cron_schedules import ScheduleError, parse_schedule, time_zone
from dryrack.kinds.rules.json_edit import set_defaults
from dryrack.kinds.rules.workloads import job_policies
from dryrack.kinds.rules.workloads.jobs import own_spec_problems
from dryrack.kinds.rules.workloads.templates import WorkloadRules, in_spec, set_template_defaults
from dryrack.kinds.validation.problems import FieldProblem, Reason, invalid, required

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.meta import ObjectMeta
    from dryrack.kinds.raw import Raw

_JOB = "spec.jobTemplate.spec"
_POLICIES = ("Allow", "Forbid", "Replace")
_DEFAULTS = {
    "concurrencyPolicy": "Allow",
    "suspend": False,
    "successfulJobsHistoryLimit": 3,
    "failedJobsHistoryLimit": 1,
}
# The name of a job is that of its cron job and the minutes since 1970, with 63 characters at most.
_NAME_CHARS_MAX = 52
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch
_NO_ZONE_IN_SCHEDULE = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
_TWO_ZONES = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
_EXPLICIT_ZONE = (
    "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
)


class CronJobRules(WorkloadRules):
    """A job at each time of a schedule."""

    def default(self, obj: Raw) -> Raw:
        return in_spec(obj, self.defaults)

    def defaults(self, spec: Raw) -> Raw:
        template = get(spec, "jobTemplate", {})
        job = set_template_defaults(job_policies.set_defaults_of_failure_policy(spec_of(template)))
        return {**set_defaults(spec, _DEFAULTS), "jobTemplate": {**template, "spec": job}}

    def new_problems(self, obj: Raw, meta: ObjectMeta) -> Sequence[FieldProblem]:
        """Also check the length of the name, which cannot change later."""
        problems = list(super().new_problems(obj, meta))
        name = meta.name or ""
        if len(name) > _NAME_CHARS_MAX:
            detail = f"must be no more than {_NAME_CHARS_MAX} characters"
            problems.append(invalid("metadata.name", name, detail))
        return problems

    def spec_problems(self, spec: Raw) -> Iterator[FieldProblem]:
        return cron_spec_problems(spec, None)


def cron_spec_problems(spec: Raw, old: Raw | None) -> Iterator[FieldProblem]:
    """Yield the problems of a spec; `old` is the stored spec, whose time zones may stay."""
    if not spec.get("schedule"):
        yield required("spec.schedule")
    else:
        before = (old or {}).get("schedule") or ""
        yield from _schedule(spec, may_have_zone="TZ" in before)
    yield from non_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    zone = spec.get("timeZone")
    if zone is not None and (old is None or old.get("timeZone") != zone):
        yield from _zone(zone)
    yield from one_of("spec.concurrencyPolicy", spec.get("concurrencyPolicy") or "", _POLICIES)
    yield from _template(get(spec, "jobTemplate.spec", {}))
    for key in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from non_negative(f"spec.{key}", spec.get(key))


def _schedule(spec: Raw, *, may_have_zone: bool) -> Iterator[FieldProblem]:
    at = "spec.schedule"
    schedule = spec["schedule"]
    try:
        parse_schedule(schedule)
    except ScheduleError as error:
        yield invalid(at, schedule, str(error))
    if "TZ" not in schedule:
        return
    if not may_have_zone:
        yield invalid(at, schedule, _NO_ZONE_IN_SCHEDULE)
    elif spec.get("timeZone") is not None:
        yield invalid(at, schedule, _TWO_ZONES)


def _zone(name: str) -> Iterator[FieldProblem]:
    at = "spec.timeZone"
    if not name:
        yield invalid(at, name, "timeZone must be nil or non-empty string")
        return
    parts = name.split("/")
    if any(each in (".", "..") or each[:1] == "-" or not _ZONE_PART(each) for each in parts):
        yield invalid(at, name, f"unknown time zone {name}")
        return
    if name.lower() == "local":
        yield invalid(at, name, _EXPLICIT_ZONE)
    if name == "Local":
        return
    try:
        time_zone(name)
    except ScheduleError as error:
        yield invalid(at, name, str(error))


def _template(job: Raw) -> Iterator[FieldProblem]:
    """Check the spec of the jobs, with the defaults that a new job would get."""
    replacement = "TerminatingOrFailed" if job.get("podFailurePolicy") is None else "Failed"
    usual = {"completionMode": "NonIndexed", "podReplacementPolicy": replacement}
    missing = {key: value for key, value in usual.items() if job.get(key) is None}
    for each in own_spec_problems({**job, **missing}):
        yield replace(each, field=each.field.replace("spec", _JOB, 1))
    if job.get("selector") is not None:
        yield invalid(f"{_JOB}.selector", job["selector"], "`selector` will be auto-generated")
    if job.get("manualSelector"):
        supported = 'supported values: "nil", "false"'
        yield FieldProblem(Reason.NOT_SUPPORTED, f"{_JOB}.manualSelector", True, supported)
