"""
The history of a control plane, from the watch log of its store.

The log has no times; the managed fields of an object have the time of its last write, to the
second. A deletion has no time of its own and gets that of the next write. The history reaches back
as far as the log of every resource does, and not beyond a restart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.store import EventType, Gone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.store import Event, Store, Stored


@dataclass(frozen=True, slots=True)
class PastWrite:
    """A created, changed or deleted object; the time is "" if it is not known."""

    event: Event
    time: str

    @property
    def resource(self) -> str:
        return self.event.stored.key.resource

    @property
    def old(self) -> Raw | None:
        return self.event.previous.object if self.event.previous is not None else None

    @property
    def new(self) -> Raw | None:
        return None if self.event.type is EventType.DELETED else self.event.stored.object


@dataclass(frozen=True, slots=True)
class Past:
    """The objects at the beginning, and the writes since, in order."""

    objects: tuple[Stored, ...]
    writes: tuple[PastWrite, ...]


def past_of(store: Store, resources: Sequence[str], writes_max: int) -> Past:
    """Return the history of these resources, with at most so many writes."""
    start = max((_oldest(store, each) for each in resources), default=store.revision)
    events = [event for each in resources for event in _events(store, each, start)]
    events.sort(key=lambda event: event.revision)
    if len(events) > writes_max:
        start = events[-writes_max - 1].revision
        events = events[-writes_max:]
    listed = (store.list_at(each, None, start) for each in resources)
    objects = [stored for found in listed if not isinstance(found, Gone) for stored in found]
    return Past(tuple(objects), _with_times(events))


def _with_times(events: Sequence[Event]) -> tuple[PastWrite, ...]:
    """Return each write with its time, or the time of the next write that has one."""
    writes: list[PastWrite] = []
    later = ""
    for event in reversed(events):
        later = _time(event) or later
        writes.append(PastWrite(event, later))
    return tuple(reversed(writes))


def _time(event: Event) -> str:
    metadata = event.stored.object["metadata"]
    if event.type is EventType.DELETED:
        return str(metadata.get("deletionTimestamp") or "")
    times = [each.get("time") or "" for each in get(metadata, "managedFields", ())]
    return str(max([*times, metadata.get("creationTimestamp") or ""]))


def _oldest(store: Store, resource: str) -> int:
    """Return the first revision after which all logs are complete."""
    events = store.events(resource, after=0)
    return events.oldest if isinstance(events, Gone) else 0


def _events(store: Store, resource: str, start: int) -> Sequence[Event]:
    events = store.events(resource, after=start)
    assert not isinstance(events, Gone), "the start is known of all of them"
    return events
