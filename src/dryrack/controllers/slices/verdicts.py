"""
What is known about each source, as values.

A source is read whenever its contents change. If it can be read, that is in force from then on; if
not, the last that could be read stays in force, however many bad versions follow. Of a source that
could not be read since the start nothing is known, which is not the same as that it wants nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dryrack.hardware.dialects import Reading
from dryrack.hardware.inventory import Inventory, Source, SourceKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.hardware.inventory import Assignment, Overlay
    from dryrack.kinds.documents import Problem

Raw = dict[str, Any]

NO_DEVICES = Reading()

# Of the things that can be in a source, only these say what devices it wants.
_CONTENTS = {
    SourceKind.CONFIG_MAP: ("data", "binaryData"),
    SourceKind.OVERLAY: ("spec",),
    SourceKind.CONFIG: ("spec",),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was made of the last version of a source, and which version is in force."""

    contents: tuple[Any, ...]
    revision: str
    """Tells these contents of the object from its others."""
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    in_force: Reading | None
    """The last that could be read; None if none could be since the start."""
    valid_at: float = 0.0
    """When that was read, in seconds since 1970."""
    valid_generation: int = 0

    @property
    def is_valid(self) -> bool:
        return not self.problems


# Before a source came into being, it certainly wanted nothing.
ABSENT = Verdict((), "", (), (), NO_DEVICES)


def contents_of(kind: SourceKind, obj: Raw) -> tuple[Any, ...]:
    """All of an object that matters; the rest may change without being read again."""
    return tuple(obj.get(key) or None for key in _CONTENTS[kind])


def judged(
    before: Verdict | None, reading: Reading, obj: Raw, *, kind: SourceKind, now: float
) -> Verdict:
    """The verdict on an object that has just been read."""
    metadata = obj["metadata"]
    found = Verdict(
        contents_of(kind, obj),
        # A generation outlives writes of the status; kinds without status have none.
        str(metadata.get("generation") or metadata.get("resourceVersion", "")),
        reading.problems,
        reading.warnings,
        reading,
        now,
        int(metadata.get("generation", 0)),
    )
    if not reading.problems:
        return found
    if before is None:
        return replace(found, in_force=None, valid_at=0.0, valid_generation=0)
    return replace(
        found,
        in_force=before.in_force,
        valid_at=before.valid_at,
        valid_generation=before.valid_generation,
    )


def inventory_of(
    verdicts: Mapping[Source, Verdict], catalogue: Mapping[str, Assignment] | None
) -> Inventory:
    """
    All that is in force, in an order that does not depend on who came first.

    The ConfigMap is before the DRAConfigs, and these are in the order of their names: of two that
    make one device, the first has it.
    """
    overlays: list[Overlay] = []
    assignments: list[Assignment] = []
    unread: list[Source] = []
    for source in sorted(verdicts):
        reading = verdicts[source].in_force
        if reading is None:
            unread.append(source)
            continue
        assignments += reading.assignments
        if reading.overlay is not None:
            overlays.append(reading.overlay)
    return Inventory(tuple(overlays), tuple(assignments), catalogue, tuple(unread))
