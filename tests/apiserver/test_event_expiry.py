"""Events are there for an hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.verbs.event_expiry import EVENT_SECONDS, LEASE_SECONDS, STORAGE, EventExpiry
from dryrack.client.timekeeping import VirtualClock
from dryrack.store import EventType, Key, Store

if TYPE_CHECKING:
    from dryrack.store import Event

MINUTE = 60.0


def write(store: Store, name: str) -> None:
    store.put(Key(STORAGE, "default", name), {"metadata": {"name": name}}, expected=None)


def names(store: Store) -> list[str]:
    return [each.key.name for each in store.list(STORAGE, None)[0]]


async def test_an_event_goes_an_hour_after_it_was_last_written() -> None:
    """Not before, and with those of the same minute; each write begins the hour anew."""
    store = Store()
    clock = VirtualClock()
    told = list[str]()

    def on_event(event: Event) -> None:
        if event.type is EventType.DELETED:
            told.append(event.stored.key.name)

    EventExpiry(store, clock)
    store.subscribe(STORAGE, on_event)
    for name in ("once", "again", "later"):
        write(store, name)
        await clock.advance(1)
    await clock.advance(30 * MINUTE)
    write(store, "again")
    await clock.advance(EVENT_SECONDS - 30 * MINUTE - 10)
    assert names(store) == ["again", "later", "once"]
    await clock.advance(LEASE_SECONDS + 10)
    assert names(store) == ["again"]
    assert told == ["once", "later"]
    await clock.advance(31 * MINUTE)
    assert names(store) == []


async def test_an_event_that_was_deleted_does_not_take_another_with_it() -> None:
    """One of the same name that came later has its own hour."""
    store = Store()
    clock = VirtualClock()
    EventExpiry(store, clock)
    write(store, "a")
    store.delete(Key(STORAGE, "default", "a"), expected=None)
    await clock.advance(30 * MINUTE)
    write(store, "a")
    await clock.advance(40 * MINUTE)
    assert names(store) == ["a"]
    await clock.advance(40 * MINUTE)
    assert names(store) == []


async def test_of_events_that_were_there_the_hour_begins_at_the_start() -> None:
    """A server that was away does not know for how long."""
    store = Store()
    clock = VirtualClock()
    write(store, "a")
    expiry = EventExpiry(store, clock)
    await clock.advance(EVENT_SECONDS - 1)
    assert names(store) == ["a"]
    await clock.advance(LEASE_SECONDS + 1)
    assert names(store) == []
    write(store, "b")
    expiry.stop()
    await clock.advance(2 * EVENT_SECONDS)
    assert names(store) == ["b"]
