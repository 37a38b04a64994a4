"""
What people are told about their configuration: events, and the status of a DRAConfig.

Of all that is wrong, each has its line, its field and what would put it right. Nobody is told
twice of the same: an event is about one version, and a status is written only if it says anything
new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.client.endpoints import DRA_CONFIGS
from dryrack.client.informer import name_of
from dryrack.client.timekeeping import timestamp
from dryrack.controllers.objects import condition_of, status_of, uid_of, with_condition
from dryrack.controllers.slices.glossary import Condition, Reason
from dryrack.controllers.slices.wording import counted, fitted, listed
from dryrack.controllers.writes import Patch, Report
from dryrack.hardware.inventory import SourceKind
from dryrack.hardware.promises import broken_promises

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dryrack.controllers.slices.ledger import Published
    from dryrack.controllers.slices.verdicts import Verdict
    from dryrack.hardware.dialects import Reading
    from dryrack.hardware.inventory import Assignment

Raw = dict[str, Any]

# What a condition tells of what was left out; the rest is alike.
_NOTES_MAX = 5


def reports(obj: Raw, verdict: Verdict) -> Iterator[Report]:
    """What there is to say about the version of the object that was just read."""
    if not verdict.is_valid:
        kept = _in_force(verdict)
        yield Report(
            obj, "Warning", Reason.INVALID_CONFIG, listed(verdict.problems, kept), verdict.revision
        )
        return
    reading = verdict.in_force
    assert reading is not None, "what is valid is in force"
    yield Report(
        obj, "Normal", Reason.CONFIG_ACCEPTED, f"in force: {_summary(reading)}", verdict.revision
    )
    # By itself: among many warnings about spelling it would be one of those that are only counted.
    for text in mismatches(reading):
        once = f"{verdict.revision} {text}"
        yield Report(obj, "Warning", Reason.CAPACITY_MISMATCH, text, once)
    if verdict.warnings:
        yield Report(
            obj, "Warning", Reason.CONFIG_WARNING, listed(verdict.warnings), verdict.revision
        )


def note_reports(obj: Raw, verdict: Verdict, notes: Iterable[str]) -> Iterator[Report]:
    """What came up when the devices were put into pools, and the document alone does not show."""
    known = mismatches(verdict.in_force) if verdict.in_force is not None else ()
    for text in (each for each in notes if each not in known):
        yield Report(
            obj, "Warning", Reason.DEVICES_LEFT_OUT, fitted([text]), f"{verdict.revision} {text}"
        )


def mismatches(reading: Reading) -> tuple[str, ...]:
    """Where an overlay promises another number of devices than it has."""
    if reading.overlay is None:
        return ()
    return tuple(each.message for each in broken_promises(reading.overlay))


def _in_force(verdict: Verdict) -> str:
    if verdict.in_force is None:
        return "no valid version is known since the start: what is published for it stays as it is"
    summary = _summary(verdict.in_force)
    return f"the last valid version stays in force: {summary}"


def _summary(reading: Reading) -> str:
    if reading.overlay is not None:
        return counted(_devices([reading.overlay.assignment]), "device")
    found = reading.assignments
    is_config = any(each.origin.kind is SourceKind.CONFIG for each in found)
    parts = counted(len(found), "pool" if is_config else "mapping")
    return f"{counted(_devices(found), 'device')} in {parts}"


def _devices(assignments: Iterable[Assignment]) -> int:
    return sum(len(batch.devices) for each in assignments for batch in each.batches)


def status_patch(
    obj: Raw,
    verdict: Verdict,
    *,
    published: Published,
    notes: Sequence[str],
    is_settled: bool,
    now: float,
) -> Patch | None:
    """The write that makes the status of a DRAConfig true, if it is not."""
    status = status_of(obj)
    new: Raw = {
        "conditions": status.get("conditions") or [],
        "resourceSliceCount": published.slices,
        "nodeCount": published.nodes,
    }
    for condition in (_validated(verdict), _ready(obj, verdict, notes, is_settled=is_settled)):
        whole = condition | {
            "observedGeneration": int(obj["metadata"].get("generation", 0)),
            "lastTransitionTime": timestamp(now),
        }
        new["conditions"] = with_condition(new["conditions"], whole)
    if all(status.get(key) == value for key, value in new.items()):
        return None
    identity = {"uid": uid_of(obj), "resourceVersion": obj["metadata"]["resourceVersion"]}
    return Patch(DRA_CONFIGS, name_of(obj), {"metadata": identity, "status": new}, "status")


def _validated(verdict: Verdict) -> Raw:
    if not verdict.is_valid:
        return _condition(
            Condition.VALIDATED, "False", Reason.INVALID_CONFIG, listed(verdict.problems)
        )
    return _condition(Condition.VALIDATED, "True", "Valid", listed(verdict.warnings))


def _ready(obj: Raw, verdict: Verdict, notes: Sequence[str], *, is_settled: bool) -> Raw:
    if not verdict.is_valid:
        kept = verdict.in_force is not None and verdict.valid_generation
        stays = f"; generation {verdict.valid_generation} stays in force" if kept else ""
        return _condition(
            Condition.READY, "False", "ValidationFailed", f"see {Condition.VALIDATED}{stays}"
        )
    if is_settled or _was_ready(obj):
        untold = max(len(notes) - _NOTES_MAX, 0)
        told = fitted(notes[:_NOTES_MAX], untold=untold)
        return _condition(Condition.READY, "True", "Published", told)
    return _condition(
        Condition.READY, "False", "Publishing", "not all nodes have been looked at yet"
    )


def _was_ready(obj: Raw) -> bool:
    """Nodes come and go all the time; that makes no version less published than it was."""
    known = condition_of(obj, Condition.READY) or {}
    generation = obj["metadata"].get("generation", 0)
    return known.get("status") == "True" and known.get("observedGeneration") == generation


def _condition(kind: str, status: str, reason: str, message: str) -> Raw:
    return {"type": kind, "status": status, "reason": reason, "message": message}
