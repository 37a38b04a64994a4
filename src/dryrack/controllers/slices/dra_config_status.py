"""
The status of a DRAConfig: its conditions, and how much is published because of it.

It is written only if it says anything new.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from dryrack.client.endpoints import DRA_CONFIGS
from dryrack.client.informer import name_of
from dryrack.client.timekeeping import timestamp
from dryrack.controllers.objects import condition_of, status_of, uid_of, with_condition
from dryrack.controllers.slices.events import Reason, fitted, listed
from dryrack.controllers.writes import Patch
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.controllers.slices.current_inventory import Verdict
    from dryrack.controllers.slices.ledger import Published
    from dryrack.kinds.raw import Raw

# What a condition tells of what was left out; the rest is alike.
_NOTES_MAX = 5


class Condition(StrEnum):
    """What a DRAConfig tells of itself."""

    VALIDATED = "ValidationSucceeded"
    READY = "Ready"


CONDITIONS: Mapping[Condition, str] = {
    Condition.VALIDATED: (
        "`True` (`Valid`) if dryrack can read the DRAConfig, `False` (`InvalidConfig`) otherwise; "
        "the message lists each problem or warning with its field and a fix"
    ),
    Condition.READY: (
        "`True` (`Published`) after dryrack has checked all nodes for this generation; `False` "
        "before that (`Publishing`) or if it is not valid (`ValidationFailed`); the message lists "
        "the devices that are not published"
    ),
}


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
        "conditions": get(status, "conditions", []),
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
        Condition.READY, "False", "Publishing", "dryrack has not checked all nodes yet"
    )


def _was_ready(obj: Raw) -> bool:
    """Nodes come and go all the time; that makes no version less published than it was."""
    known = condition_of(obj, Condition.READY) or {}
    generation = obj["metadata"].get("generation", 0)
    return known.get("status") == "True" and known.get("observedGeneration") == generation


def _condition(kind: str, status: str, reason: str, message: str) -> Raw:
    return {"type": kind, "status": status, "reason": reason, "message": message}
