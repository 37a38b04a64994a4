"""
The store.

Every write is one revision; revisions only rise, over all resources. A list and the events after
its revision are together the whole truth, so a watch that starts where a list ended has no gap.
Nothing here waits: a write, its event and its delivery to subscribers are one step, and nobody
sees a part of it.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dryrack.base.limits import (
    READABLE_LARGE_OBJECTS_MAX,
    READABLE_OBJECTS_MAX,
    WATCH_LOG_EVENTS_MAX,
)
from dryrack.kinds.raw import Raw
from dryrack.store.log import Event, EventType, Gone, Log
from dryrack.store.objects import Conflict, Journal, Key, Record, Stored

Callback = Callable[[Event], None]
Listed = tuple[tuple[Stored, ...], int]


@dataclass(slots=True)
class _Shelf:
    """All objects of one resource, and their history."""

    log: Log
    objects: dict[str, Stored] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    callbacks: dict[int, Callback] = field(default_factory=dict)
    endings: dict[int, Callable[[], None]] = field(default_factory=dict)

    def set(self, stored: Stored) -> None:
        place = _place(stored.key)
        if place not in self.objects:
            insort(self.order, place)
        self.objects[place] = stored

    def drop(self, key: Key) -> None:
        place = _place(key)
        del self.objects[place]
        del self.order[bisect_left(self.order, place)]

    def places(self, namespace: str | None) -> list[str]:
        if namespace is None:
            return self.order
        start = bisect_left(self.order, f"{namespace}/")
        # "0" is what follows "/".
        end = bisect_left(self.order, f"{namespace}0", lo=start)
        return self.order[start:end]

    def listed(self, namespace: str | None) -> tuple[Stored, ...]:
        objects = self.objects
        return tuple([objects[place] for place in self.places(namespace)])


class Store:
    """See the module's docstring."""

    def __init__(
        self, journal: Journal | None = None, *, events_max: int = WATCH_LOG_EVENTS_MAX
    ) -> None:
        self._journal = journal
        self._events_max = events_max
        # etcd's first revision is 1 as well; 0 means "any" to clients.
        self._revision = 1
        self._floor = 1
        self._shelves: dict[str, _Shelf] = {}
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
        A store as its journal remembers it.

        The records may be the whole history or the last one of each key, in any order that has
        the last one of a key last. `revision` is the highest ever given, if that is known: a
        deletion that has left no record had one, too. The history before is `Gone`.
        """
        store = cls(journal, events_max=events_max)
        for record in records:
            store._revision = max(store._revision, record.revision)
            store._replay(record)
        store._revision = max(store._revision, revision)
        store._floor = store._revision
        for shelf in store._shelves.values():
            shelf.log = Log(events_max=events_max, floor=store._floor)
        return store

    def _replay(self, record: Record) -> None:
        shelf = self._shelf(record.key.resource)
        if record.json is not None:
            shelf.set(Stored(record.key, record.revision, None, record.json))
        elif _place(record.key) in shelf.objects:
            shelf.drop(record.key)

    @property
    def revision(self) -> int:
        """The revision of the last write."""
        return self._revision

    def resources(self) -> tuple[str, ...]:
        """The names under which something is stored, sorted."""
        return tuple(sorted(name for name, shelf in self._shelves.items() if shelf.objects))

    def get(self, key: Key) -> Stored | None:
        shelf = self._shelves.get(key.resource)
        return shelf.objects.get(_place(key)) if shelf else None

    def list(self, resource: str, namespace: str | None) -> Listed:
        """Everything in the order of `namespace/name`; `namespace` None: in all of them."""
        shelf = self._shelves.get(resource)
        return (shelf.listed(namespace) if shelf else ()), self._revision

    def count(self, resource: str) -> int:
        shelf = self._shelves.get(resource)
        return len(shelf.objects) if shelf else 0

    def list_at(
        self, resource: str, namespace: str | None, revision: int
    ) -> tuple[Stored, ...] | Gone:
        """What `list` answered when `revision` was the last."""
        assert revision <= self._revision, f"revision {revision} has not been written yet"
        events = self.events(resource, after=revision)
        if isinstance(events, Gone):
            return events
        found = {each.key: each for each in self.list(resource, namespace)[0]}
        for event in reversed(events):
            key = event.stored.key
            if namespace is not None and key.namespace != namespace:
                continue
            if event.previous is None:
                del found[key]
            else:
                found[key] = event.previous
        return tuple(found[key] for key in sorted(found, key=_place))

    def put(self, key: Key, obj: Raw, *, expected: int | None) -> Stored | Conflict:
        """
        Writes an object, whose metadata gets the new revision.

        `expected` is the revision that the caller has seen, 0 for "there is none", None for
        "whatever there is". The object belongs to the store from now on.
        """
        shelf = self._shelf(key.resource)
        previous = shelf.objects.get(_place(key))
        if _differs(previous, expected):
            return Conflict(previous)
        stored = _at(key, self._revision + 1, obj)
        self._keep(stored, stored.json if self._journal else None)
        shelf.set(stored)
        kind = EventType.MODIFIED if previous else EventType.ADDED
        self._publish(shelf, Event(kind, stored, previous))
        return stored

    def delete(self, key: Key, *, expected: int | None) -> Stored | Conflict:
        """Removes an object; answers with its last state at the revision of the deletion."""
        shelf = self._shelf(key.resource)
        previous = shelf.objects.get(_place(key))
        if previous is None or _differs(previous, expected):
            return Conflict(previous)
        stored = _at(key, self._revision + 1, previous.object)
        self._keep(stored, None)
        shelf.drop(key)
        self._publish(shelf, Event(EventType.DELETED, stored, previous))
        return stored

    def events(self, resource: str, *, after: int) -> Sequence[Event] | Gone:
        """Every event with a higher revision, oldest first."""
        shelf = self._shelves.get(resource)
        if shelf is None:
            return Gone(self._floor) if after < self._floor else []
        return shelf.log.after(after)

    def begin(self, resource: str) -> None:
        """The history of a resource begins now, if it has none: what was before is `Gone`."""
        if resource not in self._shelves:
            log = Log(events_max=self._events_max, floor=self._revision)
            self._shelves[resource] = _Shelf(log)

    def restart(self, resource: str) -> None:
        """The history of a resource begins anew: what was before is `Gone`, and so are watches."""
        shelf = self._shelf(resource)
        shelf.log = Log(events_max=self._events_max, floor=self._revision)
        for ended in tuple(shelf.endings.values()):
            ended()

    def subscribe(
        self, resource: str, callback: Callback, *, ended: Callable[[], None] | None = None
    ) -> Callable[[], None]:
        """
        Calls back with every event from now on, in order, during the write.

        A callback must not write to the store, wait, or raise; if it does raise, the writer gets
        that after all others were told, and what was written stays. `ended` is called when the
        history begins anew, after which more events still come. The answer ends the subscription.
        """
        self._subscriptions += 1
        number = self._subscriptions
        shelf = self._shelf(resource)
        shelf.callbacks[number] = callback
        if ended is not None:
            shelf.endings[number] = ended

        def leave() -> None:
            shelf.callbacks.pop(number, None)
            shelf.endings.pop(number, None)

        return leave

    def _shelf(self, resource: str) -> _Shelf:
        shelf = self._shelves.get(resource)
        if shelf is None:
            shelf = _Shelf(Log(events_max=self._events_max, floor=self._floor))
            self._shelves[resource] = shelf
        return shelf

    def _keep(self, stored: Stored, json: bytes | None) -> None:
        if self._journal:
            self._journal.append(Record(stored.key, stored.revision, json))
        self._revision = stored.revision

    def _note_readable(self, stored: Stored) -> None:
        """After the event is told: then whoever watches has asked for the JSON."""
        kept = self._readable
        count_max = READABLE_OBJECTS_MAX
        if stored.is_large:
            kept = self._readable_large
            count_max = READABLE_LARGE_OBJECTS_MAX
        kept.append(stored)
        if len(kept) > count_max:
            kept.popleft().compact()

    def _publish(self, shelf: _Shelf, event: Event) -> None:
        shelf.log.append(event)
        try:
            _tell(iter(tuple(shelf.callbacks.values())), event)
        finally:
            self._note_readable(event.stored)


def _tell(waiting: Iterator[Callback], event: Event) -> None:
    """Tells every subscriber; what one raises is raised when the others were told, too."""
    try:
        for callback in waiting:
            callback(event)
    except Exception:
        _tell(waiting, event)
        raise


def _place(key: Key) -> str:
    """Lists are in the order of these, as the keys of etcd are."""
    return f"{key.namespace}/{key.name}"


def _differs(previous: Stored | None, expected: int | None) -> bool:
    if expected is None:
        return False
    return (previous.revision if previous else 0) != expected


def _at(key: Key, revision: int, obj: Raw) -> Stored:
    meta = {**obj["metadata"], "resourceVersion": str(revision)}
    return Stored(key, revision, {**obj, "metadata": meta})
