"""
The current inventory: how each source is read, what is in force of it, and the sum of all.

A source is read whenever its contents change. If it can be read, that is in force from then on; if
not, the last that could be read stays in force, however many bad versions follow. Of a source that
could not be read since the start nothing is known, which is not the same as that it wants nothing.

While there is no current inventory, what there should be is unknown, and nothing may be deleted.
An inventory without any devices means that there should be none.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dryrack.controllers.objects import spec_of
from dryrack.hardware import Inventory, Source, SourceKind
from dryrack.hardware.config_formats import Reading, read_config_map, read_dra_config, read_overlay

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dryrack.controllers.slices import PublisherSettings
    from dryrack.hardware import Assignment, Overlay
    from dryrack.kinds.documents import Document, Problem
    from dryrack.kinds.raw import Raw

# Of the things that can be in a source, only these say what devices it wants.
_CONTENTS = {
    SourceKind.CONFIG_MAP: ("data", "binaryData"),
    SourceKind.OVERLAY: ("spec",),
    SourceKind.CONFIG: ("spec",),
}


def source_of(kind: SourceKind, obj: Raw) -> Source:
    return Source(kind, obj["metadata"]["name"])


def is_about_devices(kind: SourceKind, obj: Raw) -> bool:
    """Overlays are for prices, too; those without slices are none of ours."""
    return kind is not SourceKind.OVERLAY or bool(spec_of(obj).get("resourceSlices"))


def reader_of(kind: SourceKind, options: PublisherSettings) -> Callable[[Raw | Document], Reading]:
    match kind:
        case SourceKind.CONFIG_MAP:
            return partial(read_config_map, key=options.key, driver=options.driver)
        case SourceKind.OVERLAY:
            return partial(read_overlay, driver=options.driver)
        case SourceKind.CONFIG:
            return partial(read_dra_config, driver=options.driver)
        case SourceKind.CATALOGUE:
            raise AssertionError("the hardware catalog is not an API object")


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
ABSENT = Verdict((), "", (), (), Reading())
# What a source wanted before the publisher started, nothing tells.
UNKNOWN = Verdict((), "", (), (), None)


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
    kept = before or UNKNOWN
    return replace(
        found,
        in_force=kept.in_force,
        valid_at=kept.valid_at,
        valid_generation=kept.valid_generation,
    )


def inventory_of(
    verdicts: Mapping[Source, Verdict], catalogue: Mapping[str, Assignment] | None
) -> Inventory:
    """
    All that is in force, in an order that does not depend on which came first.

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


class CurrentInventory:
    """Holds one inventory; listeners are told when another one takes its place."""

    def __init__(self) -> None:
        self.known = asyncio.Event()
        self._inventory: Inventory | None = None
        self._listeners: list[Callable[[], None]] = []

    @property
    def inventory(self) -> Inventory | None:
        """What there should be; None until it is known."""
        return self._inventory

    def listen(self, listener: Callable[[], None]) -> None:
        """Tells `listener` of every inventory from now on, and first of the one that is there."""
        self._listeners.append(listener)
        if self._inventory is not None:
            listener()

    def replace(self, inventory: Inventory) -> None:
        """Puts another in its place; an equal one is no change."""
        if inventory == self._inventory:
            return
        self._inventory = inventory
        self.known.set()
        for listener in self._listeners:
            listener()
