"""
Acceptance of the names of a definition.

A name belongs to the first definition of a group that has it. A definition with a name that is
taken keeps its other names and is not served, unless it was served before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.apiserver.custom.definition import condition_of, with_condition
from dryrack.kinds.paths import get, status_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.kinds.raw import Raw


@dataclass(frozen=True, slots=True)
class _Taken:
    resources: frozenset[str]
    kinds: frozenset[str]


def settle_names(definition: Raw, others: Iterable[Raw], now: str) -> Raw:
    """Return the status of a definition, given all other definitions."""
    names = definition["spec"]["names"]
    accepted, conflict = _accept_names(names, _find_taken(definition, others), definition)
    reason, message = conflict or ("NoConflicts", "no conflicts found")
    names_accepted = {
        "type": "NamesAccepted",
        "status": "False" if conflict else "True",
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }
    status = {**status_of(definition), "acceptedNames": accepted}
    status = with_condition(status, names_accepted)
    if conflict and condition_of(definition, "Established").get("status") == "True":
        # A definition that was served stays so.
        return status
    established = {
        "type": "Established",
        "status": "False" if conflict else "True",
        "lastTransitionTime": now,
        "reason": "NotAccepted" if conflict else "InitialNamesAccepted",
        "message": "not all names are accepted"
        if conflict
        else "the initial names have been accepted",
    }
    return with_condition(status, established)


def _find_taken(definition: Raw, others: Iterable[Raw]) -> _Taken:
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        is_self = other["metadata"]["name"] == definition["metadata"]["name"]
        if is_self or other["spec"].get("group") != definition["spec"].get("group"):
            continue
        names = get(other, "status.acceptedNames", {})
        resources |= {names.get(key) or "" for key in ("plural", "singular")}
        resources |= set(get(names, "shortNames", ()))
        kinds |= {names.get(key) or "" for key in ("kind", "listKind")}
    return _Taken(frozenset(resources - {""}), frozenset(kinds - {""}))


def _accept_names(names: Raw, taken: _Taken, definition: Raw) -> tuple[Raw, tuple[str, str] | None]:
    """Return the accepted names, and the reason and message of the last conflict, if any."""
    before = get(definition, "status.acceptedNames", {})
    accepted: Raw = {"plural": before.get("plural") or "", "kind": before.get("kind") or ""}
    accepted |= {key: value for key, value in before.items() if value}
    conflict: tuple[str, str] | None = None
    for key, pool in (
        ("plural", taken.resources),
        ("singular", taken.resources),
        ("shortNames", taken.resources),
        ("kind", taken.kinds),
        ("listKind", taken.kinds),
    ):
        wanted = names.get(key)
        used = [n for n in (wanted if isinstance(wanted, list) else [wanted]) if n in pool]
        if used:
            conflict = (
                f"{key[0].upper()}{key[1:]}Conflict",
                (", ".join(f'"{name}"' for name in used) + " is already in use"),
            )
        elif wanted:
            accepted[key] = wanted
    if names.get("categories"):
        accepted["categories"] = names["categories"]
    return accepted, conflict
