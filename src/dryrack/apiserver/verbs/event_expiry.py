"""
The time to live of Events: an Event is deleted an hour after its last write.

A real server uses leases of etcd, each shared by the Events of a minute, so that they expire
together. For Events that exist when the server starts, the hour begins then.
"""

from collections import deque

from dryrack.client.timekeeping import Timekeeper, Timer
from dryrack.store import Event, EventType, Key, Store

STORAGE = "events"
EVENT_SECONDS = 3600.0
LEASE_SECONDS = 60.0


class EventExpiry:
    """Deletes Events that were not written for a time, until it is stopped."""

    def __init__(self, store: Store, clock: Timekeeper, seconds: float = EVENT_SECONDS) -> None:
        self._store = store
        self._clock = clock
        self._seconds = seconds
        # In the order of the writes, which is the order in which they end.
        self._ends: deque[tuple[float, Key, int]] = deque()
        self._timer: Timer | None = None
        for stored in store.list(STORAGE, None)[0]:
            self._note(stored.key, stored.revision)
        self._unsubscribe = store.subscribe(STORAGE, self._on_event)

    def stop(self) -> None:
        self._unsubscribe()
        if self._timer is not None:
            self._timer.cancel()

    def _on_event(self, event: Event) -> None:
        if event.type is not EventType.DELETED:
            self._note(event.stored.key, event.stored.revision)

    def _note(self, key: Key, revision: int) -> None:
        self._ends.append((self._clock.now() + self._seconds, key, revision))
        if len(self._ends) == 1:
            self._wake()

    def _wake(self) -> None:
        self._timer = self._clock.call_at(self._ends[0][0] + LEASE_SECONDS, self._expire)

    def _expire(self) -> None:
        now = self._clock.now()
        while self._ends and self._ends[0][0] <= now:
            _, key, revision = self._ends.popleft()
            # One that was written again has another end, and one that is gone has none.
            self._store.delete(key, expected=revision)
        if self._ends:
            self._wake()
