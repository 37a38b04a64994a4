"""
What is wrong with the status of a job.

Any controller may be the one that runs a job, and everybody goes by what it writes: so a job that
is over stays over, has begun before it ended, and has no pods left. What was wrong before is
forgiven as long as it does not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.strategies.checks import non_negative
from dryrack.apiserver.strategies.workloads.job_policies import IndexesError, counted, overlap
from dryrack.kinds.validation.problems import OMITTED, duplicate, invalid, required

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.validation import FieldProblem

Raw = dict[str, Any]

_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")
_END = ("Failed", "Complete", "FailureTarget")


@dataclass(frozen=True, slots=True)
class _Change:
    """A status and the one before it."""

    spec: Raw
    new: Raw
    old: Raw

    def of(self, *names: str) -> bool:
        """Whether one of these fields is another now."""
        return any(self.new.get(name) != self.old.get(name) for name in names)

    def has(self, kind: str) -> bool:
        return _is_true(self.new, kind)

    def had(self, kind: str) -> bool:
        return _is_true(self.old, kind)

    def turns(self, *kinds: str) -> bool:
        """Whether one of these conditions comes or goes."""
        return any(self.has(kind) != self.had(kind) for kind in kinds)

    @property
    def is_over(self) -> bool:
        return self.has("Complete") or self.has("Failed")

    @property
    def ends(self) -> bool:
        return self.is_over != (self.had("Complete") or self.had("Failed"))


def _is_true(status: Raw, kind: str, value: str = "True") -> bool:
    conditions = status.get("conditions") or ()
    return any(each.get("type") == kind and each.get("status") == value for each in conditions)


def status_problems(job: Raw, old: Raw) -> Iterator[FieldProblem]:
    """In the server's order."""
    change = _Change(job.get("spec") or {}, job.get("status") or {}, old.get("status") or {})
    for name in _COUNTS:
        yield from non_negative(f"status.{name}", change.new.get(name))
    yield from _uncounted(change.new.get("uncountedTerminatedPods") or {})
    yield from _at_odds(change)
    yield from _without_ground(change)
    yield from _over(change)
    yield from _indexes(change)
    yield from _pods(change)
    yield from _met(change)
    yield from _back(change)
    yield from _met_too_late(change)


def _condition(detail: str) -> FieldProblem:
    return invalid("status.conditions", OMITTED, detail)


def _uncounted(given: Raw) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for key in ("succeeded", "failed"):
        for position, uid in enumerate(given.get(key) or ()):
            at = f"status.uncountedTerminatedPods.{key}[{position}]"
            if not uid:
                yield invalid(at, uid, "must not be empty")
            elif uid in seen:
                yield duplicate(at, uid)
            seen.add(uid)


def _at_odds(change: _Change) -> Iterator[FieldProblem]:
    """A job ends in one way, and at a time."""
    completed, started = change.new.get("completionTime"), change.new.get("startTime")
    if change.has("Complete"):
        if change.turns("Complete", "Failed") and change.has("Failed"):
            yield _condition("cannot set Complete=True and Failed=true conditions")
        if change.turns("Complete", "FailureTarget") and change.has("FailureTarget"):
            yield _condition("cannot set Complete=True and FailureTarget=true conditions")
    if change.turns("Complete") or change.of("completionTime"):
        at = "status.completionTime"
        if completed is not None and not change.has("Complete"):
            detail = "cannot set completionTime when there is no Complete=True condition"
            yield invalid(at, completed, detail)
        if completed is None and change.has("Complete"):
            yield required(at, "completionTime is required for Complete jobs")
    # Times are of one length, so their texts are in their order.
    is_early = (completed or started or "") < (started or "")
    if change.of("startTime", "completionTime") and is_early:
        yield invalid("status.completionTime", completed, "must be equal to or after `startTime`")


def _without_ground(change: _Change) -> Iterator[FieldProblem]:
    """An end is announced before it comes."""
    fails = change.turns("Failed") or change.of("failedIndexes")
    if fails and change.has("Failed") and not change.has("FailureTarget"):
        yield _condition(
            "cannot set Failed=True condition without the FailureTarget=true condition"
        )
    completes = change.turns("Complete", "SuccessCriteriaMet")
    if completes and change.has("Complete") and not change.has("SuccessCriteriaMet"):
        told = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        yield _condition(told)


def _over(change: _Change) -> Iterator[FieldProblem]:
    """Nothing is left of a job that is over, and it had begun."""
    if not change.is_over:
        return
    active = change.new.get("active", 0)
    if (change.ends or change.of("active")) and active > 0:
        yield invalid("status.active", active, "active>0 is invalid for finished job")
    never_ran = change.spec.get("suspend") and change.spec.get("completions") == 0
    begins = (change.ends or change.of("startTime")) and not never_ran
    if begins and change.new.get("startTime") is None:
        yield required("status.startTime", "startTime is required for finished job")
    uncounted = change.new.get("uncountedTerminatedPods") or {}
    if (change.ends or change.of("uncountedTerminatedPods")) and any(uncounted.values()):
        shown = {"Succeeded": uncounted.get("succeeded"), "Failed": uncounted.get("failed")}
        at = "status.uncountedTerminatedPods"
        yield invalid(at, shown, "must be empty for finished job")


def _indexes(change: _Change) -> Iterator[FieldProblem]:
    """Lists of indexes, each below the number of completions and in one of them."""
    status, spec = change.new, change.spec
    completions, per_index = spec.get("completions"), spec.get("backoffLimitPerIndex")
    completed, failed = status.get("completedIndexes") or "", status.get("failedIndexes")
    if change.of("completedIndexes") and completions is not None:
        yield from _listed("completedIndexes", completed, completions)
    is_new = change.of("failedIndexes") and failed is not None
    if is_new and completions is not None and per_index is not None:
        yield from _listed("failedIndexes", str(failed), completions)
    if change.of("completedIndexes") and completed and spec.get("completionMode") != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield invalid("status.completedIndexes", completed, detail)
    if is_new and per_index is None:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield invalid("status.failedIndexes", failed, detail)
    both = change.of("failedIndexes", "completedIndexes") and failed is not None
    if both and completions is not None:
        common = overlap(completed, str(failed), completions)
        if common is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {common}"
            yield invalid("status.failedIndexes", failed, detail)


def _listed(name: str, text: str, completions: int) -> Iterator[FieldProblem]:
    try:
        counted(text, completions)
    except IndexesError as error:
        yield invalid(f"status.{name}", text, f"error parsing {name}: {error}")


def _pods(change: _Change) -> Iterator[FieldProblem]:
    leaving, ready = change.new.get("terminating") or 0, change.new.get("ready")
    if (change.ends or change.of("terminating")) and change.is_over and leaving > 0:
        yield invalid("status.terminating", leaving, "terminating>0 is invalid for finished job")
    active = change.new.get("active", 0)
    if change.of("ready", "active") and ready is not None and ready > active:
        yield invalid("status.ready", ready, "cannot set more ready pods than active")


def _met(change: _Change) -> Iterator[FieldProblem]:
    """Success and failure exclude each other."""
    if change.has("SuccessCriteriaMet"):
        for kind in ("Failed", "FailureTarget"):
            if change.has(kind):
                yield _condition(f"cannot set SuccessCriteriaMet=True and {kind}=true conditions")
    elif change.spec.get("successPolicy") is not None and change.has("Complete"):
        told = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        yield _condition(told)


def _back(change: _Change) -> Iterator[FieldProblem]:
    """What has happened is not undone."""
    for kind in _END:
        if change.had(kind) and not change.has(kind):
            yield _condition(f"cannot disable the terminal {kind}=True condition")
    # Jobs that shrink give up indexes that have succeeded.
    spec = change.spec
    shrinks = spec.get("completionMode") == "Indexed" and (
        spec.get("completions") == spec.get("parallelism")
    )
    for name in ("failed", "succeeded"):
        count = change.new.get(name, 0)
        if count < change.old.get(name, 0) and not (name == "succeeded" and shrinks):
            yield invalid(f"status.{name}", count, f"cannot decrease the {name} counter")
    completed, started = change.new.get("completionTime"), change.new.get("startTime")
    if None not in (completed, change.old.get("completionTime")) and change.of("completionTime"):
        yield invalid("status.completionTime", completed, "field is immutable")
    resumes = _is_true(change.old, "Suspended") and _is_true(change.new, "Suspended", "False")
    is_free = change.old.get("startTime") is None or resumes or spec.get("suspend")
    if change.of("startTime") and not is_free:
        detail = "field is immutable for unsuspended job once set"
        yield invalid("status.startTime", started, detail)


def _met_too_late(change: _Change) -> Iterator[FieldProblem]:
    met, was_met = change.has("SuccessCriteriaMet"), change.had("SuccessCriteriaMet")
    if was_met and not met:
        yield _condition("cannot disable the SuccessCriteriaMet=True condition")
    if change.had("Complete") and not was_met and met:
        told = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        yield _condition(told)
