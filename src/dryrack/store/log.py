"""
What happened, in order, for as long as there is room.

The log of a resource forgets its oldest events when it is full. Who asks for events after a
revision is told `Gone` rather than given a history with a hole in it.
"""

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from dryrack.base.limits import WATCH_LOG_BYTES_MAX
from dryrack.store.objects import Stored


class EventType(Enum):
    """As a watch names it."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Event:
    """
    One write.

    `stored` is the object after it; of a deletion, the last state at the revision of the
    deletion. `previous` is the object before it, None if there was none. `old_bytes` is the JSON
    of it, which nobody but the log has any more.
    """

    __slots__ = ("old_bytes", "previous", "stored", "type")

    def __init__(self, type: EventType, stored: Stored, previous: Stored | None) -> None:
        self.type = type
        self.stored = stored
        self.previous = previous
        self.old_bytes = previous.json_bytes if previous is not None else 0

    @property
    def revision(self) -> int:
        return self.stored.revision

    def __repr__(self) -> str:
        return f"Event({self.type.value} {self.stored!r})"


@dataclass(frozen=True, slots=True)
class Gone:
    """The log does not reach back so far; `oldest` is the first revision one may ask after."""

    oldest: int


class Log:
    """The events of one resource."""

    def __init__(self, *, events_max: int, floor: int) -> None:
        assert events_max > 0, "the log must hold at least one event"
        self._events: deque[Event] = deque()
        self._events_max = events_max
        self._old_bytes = 0
        self._floor = floor

    def append(self, event: Event) -> None:
        self._events.append(event)
        self._old_bytes += event.old_bytes
        # The last one stays, however large: subscribers are told of it in this step.
        while len(self._events) > 1 and self._is_full():
            oldest = self._events.popleft()
            self._old_bytes -= oldest.old_bytes
            self._floor = oldest.revision

    def _is_full(self) -> bool:
        return len(self._events) > self._events_max or self._old_bytes > WATCH_LOG_BYTES_MAX

    def after(self, revision: int) -> list[Event] | Gone:
        if revision < self._floor:
            return Gone(self._floor)
        if not self._events or self._events[-1].revision <= revision:
            return []
        start = bisect_right(self._events, revision, key=lambda event: event.revision)
        return list(islice(self._events, start, None))
