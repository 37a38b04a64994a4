"""
Containers that are put into a pod that is there: what `pods/ephemeralcontainers` writes.

They come and stay as they are. They are there to look around, so they have no ports, probes or
resources of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.strategies.edits import with_value
from dryrack.apiserver.strategies.pods import internal
from dryrack.apiserver.strategies.pods.resizing import MIRROR
from dryrack.kinds.validation.problems import forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.validation import FieldProblem

Raw = dict[str, Any]

_AT = "spec.ephemeralContainers"


def debugged(spec: Raw, old: Raw) -> Raw:
    """The stored spec with the debuggers of the new one."""
    return with_value(old, "ephemeralContainers", spec.get("ephemeralContainers"))


def refusal(old: Raw) -> FieldProblem | None:
    """Why nothing can be put into a pod at all."""
    if MIRROR in (old["metadata"].get("annotations") or {}):
        return forbidden("[]", "static pods do not support ephemeral containers")
    return None


def changes(spec: Raw, old: Raw) -> Iterator[FieldProblem]:
    """What is there already stays as it is."""
    now = {each.get("name"): each for each in spec.get("ephemeralContainers") or ()}
    for before in old.get("ephemeralContainers") or ():
        name = before.get("name")
        if name not in now:
            detail = f'existing ephemeral containers "{name}" may not be removed\n'
            yield forbidden(_AT, detail)
        elif now[name] != before:
            shown = internal.difference(before, now[name], "EphemeralContainer")
            detail = f'existing ephemeral containers "{name}" may not be changed\n{shown}'
            yield forbidden(_AT, detail)
