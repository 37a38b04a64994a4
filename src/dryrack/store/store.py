"""
The store: objects by key, and the events of each resource.

Every write is one revision; revisions only rise, over all resources. A list and the events after
its revision are together the whole state, so a watch that starts where a list ended has no gap.
Nothing here waits: a write, its event and its delivery to subscribers are one step.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from dryrack.base.limits import (
    READABLE_LARGE_OBJECTS_MAX,
    READABLE_OBJECTS_MAX,
    WATCH_LOG_BYTES_MAX,
    WATCH_LOG_EVENTS_MAX,
)
from dryrack.kinds.raw import Raw
from dryrack.store.objects import (
    Conflict,
    Event,
    EventType,
    Gone,
    Journal,
    Key,
    Record,
    Stored,
)

Callback = Callable[[Event], None]
Listed = tuple[tuple[Stored, ...], int]


class _Log:
    """
    The events of one resource.

    A full log drops its oldest events. A reader that asks for older events gets `Gone`, not a
    history with a gap.
    """

    def __init__(self, *, events_max: int, floor: int) -> None:
        assert events_max > 0, "the log must hold at least one event"
        self._events: deque[Event] = deque()
        self._events_max = events_max
        self._old_bytes = 0
        self._floor = floor

    def append(self, event: Event) -> None:
        events = self._events
        events.append(event)
        self._old_bytes += event.old_bytes
        # The last event stays, however large: subscribers receive it in this step.
        while len(events) > 1 and (
            len(events) > self._events_max or self._old_bytes > WATCH_LOG_BYTES_MAX
        ):
            oldest = events.popleft()
            self._old_bytes -= oldest.old_bytes
            self._floor = oldest.revision

    def after(self, revision: int) -> list[Event] | Gone:
        if revision < self._floor:
            return Gone(self._floor)
        if not self._events or self._events[-1].revision <= revision:
            return []
        start = bisect_right(self._events, revision, key=lambda event: event.revision)
        return list(islice(self._events, start, None))


@dataclass(slots=True)
class _Collection:
    """The objects of one resource by `namespace/name`, their events, and the subscribers."""

    log: _Log
    objects: dict[str, Stored] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    callbacks: dict[int, Callback] = field(default_factory=dict)
    endings: dict[int, Callable[[], None]] = field(default_factory=dict)

    def set(self, place: str, stored: Stored) -> None:
        if place not in self.objects:
            insort(self.order, place)
        self.objects[place] = stored

    def remove(self, place: str) -> None:
        del self.objects[place]
        del self.order[bisect_left(self.order, place)]

    def list(self, namespace: str | None) -> tuple[Stored, ...]:
        objects = self.objects
        places = self.order
        if namespace is not None:
            start = bisect_left(places, f"{namespace}/")
            # "0" is the character after "/".
            places = places[start : bisect_left(places, f"{namespace}0", lo=start)]
        return tuple([objects[place] for place in places])


class Store:
    """Objects in memory, with a watch log and an optional journal."""

    def __init__(
        self, journal: Journal | None = None, *, events_max: int = WATCH_LOG_EVENTS_MAX
    ) -> None:
        self._journal = journal
        self._events_max = events_max
        # etcd's first revision is 1 as well; 0 means "any" to clients.
        self._revision = 1
        self._floor = 1
        self._collections: dict[str, _Collection] = {}
        self._subscriptions = 0
        self._readable: deque[Stored] = deque()
        self._readable_large: deque[Stored] = deque()

    @classmethod
    def restore(
        cls,
        records: Iterable[Record],
        journal: Journal | None = None,
        *,
        revision: int = 1,
        events_max: int = WATCH_LOG_EVENTS_MAX,
    ) -> "Store":
        """
        Return the store that a journal recorded.

        The records may be the whole history or the last one of each key, in any order that has
        the last one of a key last. `revision` is the highest revision if it is known, because a
        deletion that has left no record had one, too. The history before it is `Gone`.
        """
        store = cls(journal, events_max=events_max)
        for record in records:
            store._revision = max(store._revision, record.revision)
            collection = store._collection(record.key.resource)
            place = _place(record.key)
            if record.json is not None:
                stored = Stored(record.key, record.revision, None, record.json)
                collection.set(place, stored)
            elif place in collection.objects:
                collection.remove(place)
        store._revision = max(store._revision, revision)
        store._floor = store._revision
        for collection in store._collections.values():
            collection.log = _Log(events_max=events_max, floor=store._floor)
        return store

    @property
    def revision(self) -> int:
        """Return the revision of the last write."""
        return self._revision

    def resources(self) -> tuple[str, ...]:
        """Return the resources that have objects, sorted."""
        return tuple(sorted(name for name, each in self._collections.items() if each.objects))

    def get(self, key: Key) -> Stored | None:
        collection = self._collections.get(key.resource)
        return collection.objects.get(_place(key)) if collection else None

    def list(self, resource: str, namespace: str | None) -> Listed:
        """Return the objects in the order of `namespace/name`, of all namespaces for None."""
        collection = self._collections.get(resource)
        return (collection.list(namespace) if collection else ()), self._revision

    def count(self, resource: str) -> int:
        collection = self._collections.get(resource)
        return len(collection.objects) if collection else 0

    def list_at(
        self, resource: str, namespace: str | None, revision: int
    ) -> tuple[Stored, ...] | Gone:
        """Return the objects that `list` returned when `revision` was the last."""
        assert revision <= self._revision, f"revision {revision} has not been written yet"
        events = self.events(resource, after=revision)
        if isinstance(events, Gone):
            return events
        objects = {each.key: each for each in self.list(resource, namespace)[0]}
        for event in reversed(events):
            key = event.stored.key
            if namespace is not None and key.namespace != namespace:
                continue
            if event.previous is None:
                del objects[key]
            else:
                objects[key] = event.previous
        return tuple(objects[key] for key in sorted(objects, key=_place))

    def put(self, key: Key, obj: Raw, *, expected: int | None) -> Stored | Conflict:
        """
        Write an object, whose metadata gets the new revision.

        `expected` is the revision that the caller has seen: 0 for "does not exist", None for any.
        The object belongs to the store from now on.
        """
        collection = self._collection(key.resource)
        place = _place(key)
        previous = collection.objects.get(place)
        if expected is not None and (previous.revision if previous else 0) != expected:
            return Conflict(previous)
        stored = _at_revision(key, self._revision + 1, obj)
        if self._journal:
            self._journal.append(Record(key, stored.revision, stored.json))
        self._revision = stored.revision
        collection.set(place, stored)
        kind = EventType.MODIFIED if previous else EventType.ADDED
        self._publish(collection, Event(kind, stored, previous))
        return stored

    def delete(self, key: Key, *, expected: int | None) -> Stored | Conflict:
        """Remove an object; return its last state at the revision of the deletion."""
        collection = self._collection(key.resource)
        place = _place(key)
        previous = collection.objects.get(place)
        if previous is None or (expected is not None and previous.revision != expected):
            return Conflict(previous)
        stored = _at_revision(key, self._revision + 1, previous.object)
        if self._journal:
            self._journal.append(Record(key, stored.revision, None))
        self._revision = stored.revision
        collection.remove(place)
        self._publish(collection, Event(EventType.DELETED, stored, previous))
        return stored

    def events(self, resource: str, *, after: int) -> Sequence[Event] | Gone:
        """Return every event with a higher revision, oldest first."""
        collection = self._collections.get(resource)
        if collection is None:
            return Gone(self._floor) if after < self._floor else []
        return collection.log.after(after)

    def begin(self, resource: str) -> None:
        """Start the history of a resource now if it has none; earlier revisions are `Gone`."""
        if resource not in self._collections:
            log = _Log(events_max=self._events_max, floor=self._revision)
            self._collections[resource] = _Collection(log)

    def restart(self, resource: str) -> None:
        """Restart the history of a resource: earlier revisions are `Gone`, and watches end."""
        collection = self._collection(resource)
        collection.log = _Log(events_max=self._events_max, floor=self._revision)
        for ended in tuple(collection.endings.values()):
            ended()

    def subscribe(
        self, resource: str, callback: Callback, *, ended: Callable[[], None] | None = None
    ) -> Callable[[], None]:
        """
        Call back with every event from now on, in order, during the write.

        A callback must not write to the store, wait, or raise. If it does raise, the writer gets
        the exception after all other callbacks ran, and the write stays. `ended` is called when
        the history restarts, after which more events still come. Returns a function that ends the
        subscription.
        """
        self._subscriptions += 1
        number = self._subscriptions
        collection = self._collection(resource)
        collection.callbacks[number] = callback
        if ended is not None:
            collection.endings[number] = ended

        def leave() -> None:
            collection.callbacks.pop(number, None)
            collection.endings.pop(number, None)

        return leave

    def _collection(self, resource: str) -> _Collection:
        collection = self._collections.get(resource)
        if collection is None:
            collection = _Collection(_Log(events_max=self._events_max, floor=self._floor))
            self._collections[resource] = collection
        return collection

    def _publish(self, collection: _Collection, event: Event) -> None:
        collection.log.append(event)
        try:
            _notify(iter(tuple(collection.callbacks.values())), event)
        finally:
            # After the callbacks, because the JSON, which watches read, has the size of the object.
            stored = event.stored
            readable = self._readable
            count_max = READABLE_OBJECTS_MAX
            if stored.is_large:
                readable = self._readable_large
                count_max = READABLE_LARGE_OBJECTS_MAX
            readable.append(stored)
            if len(readable) > count_max:
                readable.popleft().compact()


def _notify(callbacks: Iterator[Callback], event: Event) -> None:
    """Call every callback; raise what one raises after the others ran."""
    try:
        for callback in callbacks:
            callback(event)
    except Exception:
        _notify(callbacks, event)
        raise


def _place(key: Key) -> str:
    """Return the text by which lists are sorted, as the keys of etcd are."""
    return f"{key.namespace}/{key.name}"


def _at_revision(key: Key, revision: int, obj: Raw) -> Stored:
    meta = {**obj["metadata"], "resourceVersion": str(revision)}
    return Stored(key, revision, {**obj, "metadata": meta})
