"""
The names of a definition, and whether they are free.

A name that another definition of the same group was given first stays with it. A definition with
a name that is taken keeps the others and is not served; once it was served, it stays so.
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
    """The status of a definition, given all other definitions."""
    names = definition["spec"]["names"]
    taken = _taken(definition, others)
    accepted, conflict = _accept_names(names, taken, definition)
    status = {**status_of(definition), "acceptedNames": accepted}
    status = with_condition(status, _names_condition(conflict, now))
    is_established = condition_of(definition, "Established").get("status") == "True"
    if is_established and conflict:
        return status
    return with_condition(status, _established_condition(now, accepted=not conflict))


def _taken(definition: Raw, others: Iterable[Raw]) -> _Taken:
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
    """The names as they are given from now on, and the last conflict if there is any."""
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


def _names_condition(conflict: tuple[str, str] | None, now: str) -> Raw:
    reason, message = conflict or ("NoConflicts", "no conflicts found")
    return {
        "type": "NamesAccepted",
        "status": "False" if conflict else "True",
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }


def _established_condition(now: str, *, accepted: bool) -> Raw:
    return {
        "type": "Established",
        "status": "True" if accepted else "False",
        "lastTransitionTime": now,
        "reason": "InitialNamesAccepted" if accepted else "NotAccepted",
        "message": "the initial names have been accepted"
        if accepted
        else "not all names are accepted",
    }
