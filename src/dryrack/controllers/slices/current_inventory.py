"""
The current inventory: how each source is read, and the sum of the versions that are in force.

A source is read whenever its contents change. A version that can be read is in force from then on.
If a version cannot be read, the last valid one stays in force. A source that could not be read
since the start is unknown, which does not mean that it wants no devices.

While the inventory is unknown, nothing may be deleted. An inventory without devices means that no
device is wanted.
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

# The fields of a source that define its devices.
_CONTENTS = {
    SourceKind.CONFIG_MAP: ("data", "binaryData"),
    SourceKind.OVERLAY: ("spec",),
    SourceKind.CONFIG: ("spec",),
}


def source_of(kind: SourceKind, obj: Raw) -> Source:
    return Source(kind, obj["metadata"]["name"])


def is_about_devices(kind: SourceKind, obj: Raw) -> bool:
    """Return True if a source can have devices: NodeOverlays may be about prices alone."""
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
class SourceStatus:
    """The result of reading the last version of a source, and the version that is in force."""

    contents: tuple[Any, ...]
    revision: str
    """Identifies this version of the contents."""
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    in_force: Reading | None
    """The last valid version; None if none could be read since the start."""
    valid_at: float = 0.0
    """The time at which that version was read, in seconds since 1970."""
    valid_generation: int = 0

    @property
    def is_valid(self) -> bool:
        return not self.problems


# A source that did not exist before wanted no devices.
ABSENT = SourceStatus((), "", (), (), Reading())
# What a source wanted before the publisher started is unknown.
UNKNOWN = SourceStatus((), "", (), (), None)


def contents_of(kind: SourceKind, obj: Raw) -> tuple[Any, ...]:
    """Return the fields that define devices; the source is read again when they change."""
    return tuple(obj.get(key) or None for key in _CONTENTS[kind])


def assess_source(
    before: SourceStatus | None, reading: Reading, obj: Raw, *, kind: SourceKind, now: float
) -> SourceStatus:
    """Return the status of a source that has just been read."""
    metadata = obj["metadata"]
    status = SourceStatus(
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
        return status
    last = before or UNKNOWN
    return replace(
        status,
        in_force=last.in_force,
        valid_at=last.valid_at,
        valid_generation=last.valid_generation,
    )


def inventory_of(
    statuses: Mapping[Source, SourceStatus], catalogue: Mapping[str, Assignment] | None
) -> Inventory:
    """
    Return the inventory of all versions in force.

    The ConfigMap comes before the DRAConfigs, which are in the order of their names. If two sources
    define one device, the first one has it.
    """
    overlays: list[Overlay] = []
    assignments: list[Assignment] = []
    unread: list[Source] = []
    for source in sorted(statuses):
        reading = statuses[source].in_force
        if reading is None:
            unread.append(source)
            continue
        assignments += reading.assignments
        if reading.overlay is not None:
            overlays.append(reading.overlay)
    return Inventory(tuple(overlays), tuple(assignments), catalogue, tuple(unread))


class CurrentInventory:
    """Holds one inventory, and calls listeners when another one replaces it."""

    def __init__(self) -> None:
        self.known = asyncio.Event()
        self._inventory: Inventory | None = None
        self._listeners: list[Callable[[], None]] = []

    @property
    def inventory(self) -> Inventory | None:
        """The inventory, or None until it is known."""
        return self._inventory

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` for the inventory, if it is known, and for every later one."""
        self._listeners.append(listener)
        if self._inventory is not None:
            listener()

    def replace(self, inventory: Inventory) -> None:
        """Replace the inventory, unless the new one is equal."""
        if inventory == self._inventory:
            return
        self._inventory = inventory
        self.known.set()
        for listener in self._listeners:
            listener()
