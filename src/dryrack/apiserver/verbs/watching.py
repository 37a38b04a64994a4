"""
Watches: the events of a resource as a stream.

A watch begins with the events that its client has not seen and continues with every event, in
order and without a gap, because it subscribes in the same step in which it reads the store. Events
are rendered when the client reads, from versions that all watches share; a reader in this process
gets the objects themselves. A watch whose client falls too far behind expires: its last event is an
error with code 410, which makes the client list again.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dryrack.apiserver.answer.rendering import Form, Renderer, encode, read_as
from dryrack.apiserver.answer.status import Status, StatusError, expired, too_large_resource_version
from dryrack.apiserver.http.media import Wanted
from dryrack.apiserver.http.queries import ListOptions, RevisionError, parse_revision
from dryrack.apiserver.registry import Resource
from dryrack.apiserver.verbs.selection import Selection
from dryrack.apiserver.verbs.watch_backlog import Backlog
from dryrack.apiserver.webhooks.admission_reviews import ReviewNeededError, Reviews
from dryrack.apiserver.webhooks.conversion_reviews import answer_with_reviews
from dryrack.base.limits import WATCH_BACKLOG_EVENTS_MAX, WATCH_CHUNK_BYTES_MAX
from dryrack.client.timekeeping import Timekeeper, Timer
from dryrack.client.transport import Chunk, Handed
from dryrack.kinds.raw import Raw
from dryrack.store import Event, EventType, Gone, Store, Stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dryrack.apiserver.extension_points import WebhookCaller

BOOKMARK_SECONDS = 60.0
# Shortly before its end a watch sends a bookmark, so that the next watch is cheap.
_LAST_BOOKMARK_SECONDS = 2.0
# Events that a watch has converted at once.
_BATCH = 500
_ENDS = "k8s.io/initial-events-end"
# As etcd says it, which clients know.
_TOO_FAR_BEHIND = "The resourceVersion for the provided watch is too old."
_TAIL = b"}\n"
_NAMES = {each: each.value for each in EventType}
_HEADS = {
    name: b'{"type":"' + name.encode() + b'","object":'
    for name in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
}


@dataclass(frozen=True, slots=True)
class Watch:
    """A watch: the selection, the options and the form of its events."""

    selection: Selection
    namespace: str | None
    options: ListOptions
    form: Form
    hands_over: bool = False
    """Whether a reader in this process gets the objects themselves."""

    @property
    def resource(self) -> Resource:
        return self.selection.resource

    @property
    def wanted(self) -> Wanted:
        return self.form.wanted

    @property
    def is_plain(self) -> bool:
        """Return whether every event goes out as it is stored."""
        return self.wanted.is_plain and self.resource.is_stored_as_served


class _Pending(NamedTuple):
    """An event that the client has not read: a version, or the object of an error or bookmark."""

    type: str
    stored: Stored | None
    object: Raw | None = None


class WatchStream:
    """The body of a watch; see `client.transport.Stream`."""

    def __init__(
        self,
        store: Store,
        watch: Watch,
        renderer: Renderer,
        clock: Timekeeper,
        *,
        backlog: Backlog,
    ) -> None:
        self._store = store
        self._watch = watch
        # Asked for at every event of every watch.
        self._is_plain = watch.is_plain
        self._is_all = watch.selection.is_all
        self._namespace = watch.namespace
        self._renderer = renderer
        self._clock = clock
        self._hands_over = watch.hands_over
        self._backlog = backlog
        self.waits_since = 0
        self._pending: deque[_Pending] = deque()
        # How many of the pending events the client has asked for at once; they are no backlog.
        self._initial = 0
        self._headed = True
        self._is_over = False
        self._wake: asyncio.Future[None] | None = None
        self._timers: list[Timer] = []
        self._next_bookmark: Timer | None = None
        self._after = 0
        self._unsubscribe: Callable[[], object] = _no_subscription
        self._begin()

    def __aiter__(self) -> "WatchStream":
        return self

    async def __anext__(self) -> Chunk:
        while not self._pending:
            if self._is_over:
                raise StopAsyncIteration
            await self._sleep()
        return self._next_chunk()

    async def _sleep(self) -> None:
        """Wait for an event or the end."""
        self._wake = asyncio.get_running_loop().create_future()
        try:
            await self._wake
        finally:
            self._wake = None

    def _next_chunk(self) -> Chunk:
        """Return the events that wait; of many only the first, because the rest can be shared."""
        handed: list[Handed] = []
        parts: list[bytes] = []
        size = 0
        while self._pending and size < WATCH_CHUNK_BYTES_MAX:
            event = self._pending.popleft()
            self._initial = max(0, self._initial - 1)
            if event.stored is not None:
                self._backlog.remove(event.stored)
            shown = self._object_of(event)
            if self._hands_over:
                handed.append(Handed(event.type, shown))
                size += event.stored.json_bytes if event.stored is not None else 0
            else:
                assert isinstance(shown, bytes), "what leaves the process is JSON"
                parts += (_HEADS[event.type], shown, _TAIL)
                size += len(shown)
        self._backlog.settle(self)
        if self._pending:
            self._backlog.wait(self)
        return handed if self._hands_over else b"".join(parts)

    def _object_of(self, event: _Pending) -> Raw | bytes:
        """Return the object of an event: JSON, or for a reader in this process maybe the object."""
        stored = event.stored
        obj = event.object
        if event.type == "BOOKMARK":
            assert obj is not None, "a bookmark has an object"
            obj = self._shape(obj, self._bookmark_form(obj))
        elif stored is not None:
            if self._is_plain:
                # Of large objects readers share the parts that they have in common.
                is_text = not self._hands_over or stored.is_compact or stored.is_large
                return stored.json if is_text else stored.object
            obj = self._read(stored)
        assert obj is not None, "an event is about a version or has an object"
        return obj if self._hands_over else encode(obj)

    def _read(self, stored: Stored) -> Raw:
        """Return a version in the form that the client asked for."""
        watch = self._watch
        return self._shape(read_as(watch.resource, watch.form, stored), watch.form)

    def _shape(self, obj: Raw, form: Form) -> Raw:
        shaped = self._renderer.shape(self._watch.resource, obj, form, headed=self._headed)
        self._headed = False
        return shaped

    def _bookmark_form(self, obj: Raw) -> Form:
        form = self._watch.form
        if form.include == "None" and obj["metadata"].get("annotations"):
            # A client sees in the row's object that the initial events are over.
            return msgspec.structs.replace(form, include="Metadata")
        return form

    async def aclose(self) -> None:
        self._end()
        self._clear()

    def expire(self) -> None:
        """End with the error that makes a client list again, and keep nothing else for it."""
        self._clear()
        self._fail(expired(_TOO_FAR_BEHIND))

    def _fail(self, error: StatusError) -> None:
        self._put(_Pending("ERROR", None, error.status.to_raw()))
        self._end()

    def _clear(self) -> None:
        for event in self._pending:
            if event.stored is not None:
                self._backlog.remove(event.stored)
        self._pending.clear()
        self._initial = 0
        self._backlog.settle(self)

    def _begin(self) -> None:
        revision = _start(self._watch.options, self._store.revision)
        if revision is None:
            self._send_state()
        else:
            self._send_missed(revision)
        if not self._is_over:
            self._unsubscribe = self._store.subscribe(
                self._watch.resource.storage, self._on_event, ended=self._end
            )
            options = self._watch.options
            now = self._clock.now()
            seconds = options.timeout_seconds
            if seconds is not None and seconds > 0:
                self._timers.append(self._clock.call_at(now + seconds, self._end))
                if options.bookmarks and seconds > _LAST_BOOKMARK_SECONDS:
                    at = now + seconds - _LAST_BOOKMARK_SECONDS
                    self._timers.append(self._clock.call_at(at, self._bookmark))
            if options.bookmarks:
                self._next_bookmark = self._clock.call_at(
                    now + BOOKMARK_SECONDS, self._bookmark_again
                )

    def _send_state(self) -> None:
        """Send everything there is, as if it had just been created."""
        watch = self._watch
        items, revision = watch.selection.candidates(self._store, watch.namespace)
        self._after = revision
        self._send_items(items)
        if watch.options.initial_events and watch.options.bookmarks:
            self._bookmark({_ENDS: "true"})
        self._initial = self._unread

    def _send_items(self, items: "Sequence[Stored]") -> None:
        selection = self._watch.selection
        for each in items:
            if selection.is_all or selection.matches(each):
                self._push("ADDED", each)

    @property
    def _unread(self) -> int:
        """The number of events that the client has not read."""
        return len(self._pending)

    def _send_missed(self, revision: int) -> None:
        missed = self._store.events(self._watch.resource.storage, after=revision)
        self._after = revision
        if isinstance(missed, Gone):
            self._fail(expired(f"too old resource version: {revision} ({missed.oldest})"))
            return
        for event in missed:
            self._take(event)
        self._initial = self._unread

    def _bookmark_again(self) -> None:
        self._bookmark()
        at = self._clock.now() + BOOKMARK_SECONDS
        self._next_bookmark = self._clock.call_at(at, self._bookmark_again)

    def _on_event(self, event: Event) -> None:
        if event.previous is not None:
            self._backlog.replace(event.previous)
        self._take(event)
        if self._unread - self._initial > WATCH_BACKLOG_EVENTS_MAX:
            self.expire()
        self._backlog.relieve()

    def _take(self, event: Event) -> None:
        stored = event.stored
        if stored.revision <= self._after or self._is_over:
            return
        if self._namespace is not None and stored.key.namespace != self._namespace:
            return
        self._send_event(event)

    def _send_event(self, event: Event) -> None:
        stored = event.stored
        if self._is_all:
            is_current = event.type is not EventType.DELETED
            self._push(_NAMES[event.type], stored, is_current=is_current)
        else:
            self._push_selected(event)

    def _push_selected(self, event: Event) -> None:
        """Send that an object appears when it begins to match, and is gone when it ceases."""
        selection = self._watch.selection
        stored = event.stored
        previous = event.previous
        was = previous is not None and selection.matches(previous)
        if event.type is EventType.DELETED:
            if was:
                self._push("DELETED", stored, is_current=False)
        elif selection.matches(stored):
            self._push("MODIFIED" if was else "ADDED", stored)
        elif was and previous is not None:
            self._push("DELETED", _departed(previous, stored.revision), is_current=False)

    def _push(self, type: str, stored: Stored, *, is_current: bool = True) -> None:
        self._backlog.add(stored, is_current=is_current)
        self._put(_Pending(type, stored))

    def _bookmark(self, annotations: Raw | None = None) -> None:
        resource = self._watch.resource
        meta: Raw = {"resourceVersion": str(max(self._store.revision, self._after))}
        if annotations:
            meta["annotations"] = annotations
        obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        self._put(_Pending("BOOKMARK", None, obj))

    def _put(self, event: _Pending) -> None:
        if not self._pending:
            self._backlog.wait(self)
        self._pending.append(event)
        self._rouse()

    def _end(self) -> None:
        self._is_over = True
        self._unsubscribe()
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        if self._next_bookmark is not None:
            self._next_bookmark.cancel()
        self._rouse()

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class ConvertingWatchStream(WatchStream):
    """
    A watch of a version into which a webhook converts objects.

    Events wait as they are stored and are converted in one review when the client reads, because
    a client that writes an object does not wait for the webhooks of the watches of others. A
    conversion that fails ends the watch with an error, as a real server does.
    """

    def __init__(
        self,
        store: Store,
        watch: Watch,
        renderer: Renderer,
        clock: Timekeeper,
        *,
        backlog: Backlog,
        webhooks: "WebhookCaller",
    ) -> None:
        self._webhooks = webhooks
        self._unconverted: deque[Event | Stored | _Pending] = deque()
        self._is_converting = False
        super().__init__(store, watch, renderer, clock, backlog=backlog)

    async def __anext__(self) -> Chunk:
        while not self._pending:
            if self._unconverted:
                await self._convert()
                continue
            if self._is_over:
                raise StopAsyncIteration
            await self._sleep()
        return self._next_chunk()

    @property
    def _unread(self) -> int:
        return len(self._pending) + len(self._unconverted)

    def _send_items(self, items: "Sequence[Stored]") -> None:
        self._unconverted.extend(items)

    def _send_event(self, event: Event) -> None:
        self._backlog.add(event.stored, is_current=event.type is not EventType.DELETED)
        self._wait_for_conversion(event)

    def _push(self, type: str, stored: Stored, *, is_current: bool = True) -> None:
        # Rendered at once, because conversions of replaced versions are not kept.
        self._put(_Pending(type, None, self._read(stored)))

    def _put(self, event: _Pending) -> None:
        if self._is_converting:
            super()._put(event)
        else:
            # A bookmark must not overtake the events before it.
            self._wait_for_conversion(event)

    def _wait_for_conversion(self, event: Event | _Pending) -> None:
        if not self._unread:
            self._backlog.wait(self)
        self._unconverted.append(event)
        self._rouse()

    def _clear(self) -> None:
        for each in self._unconverted:
            if isinstance(each, Event):
                self._backlog.remove(each.stored)
        self._unconverted.clear()
        super()._clear()

    async def _convert(self) -> None:
        """Turn what waits into events that can be sent."""
        batch = list(islice(self._unconverted, _BATCH))

        async def attempt() -> None:
            was_headed = self._headed
            try:
                self._watch.resource.ready_all(_stored_in(batch))
                self._send(batch)
            except ReviewNeededError:
                # Nothing else is pending while events are converted.
                self._pending.clear()
                self._headed = was_headed
                raise

        try:
            await answer_with_reviews(attempt, self._webhooks, Reviews())
        except StatusError as error:
            self._clear()
            self._send([_Pending("ERROR", None, error.status.to_raw())])
            self._end()
            return
        # Only now, so that a reader that gives up waiting loses nothing.
        for each in batch if self._unconverted else ():
            self._unconverted.popleft()
            if isinstance(each, Event):
                self._backlog.remove(each.stored)

    def _send(self, batch: "Sequence[Event | Stored | _Pending]") -> None:
        self._is_converting = True
        try:
            for each in batch:
                match each:
                    case Event():
                        super()._send_event(each)
                    case Stored():
                        super()._send_items([each])
                    case _:
                        self._put(each)
        finally:
            self._is_converting = False


def _stored_in(batch: "Sequence[Event | Stored | _Pending]") -> "Iterator[Stored]":
    """Yield every object that has to be converted to send a batch of events."""
    for each in batch:
        if isinstance(each, Stored):
            yield each
        elif isinstance(each, Event):
            yield each.stored
            if each.previous is not None:
                yield each.previous


def _no_subscription() -> None:
    """Do nothing: there is no subscription yet."""


def _start(options: ListOptions, current: int) -> int | None:
    """Return the revision after which a watch begins, or None to begin with all objects."""
    try:
        revision = parse_revision(options.resource_version)
    except RevisionError as error:
        raise StatusError(Status(500, "", error.field_message)) from None
    if options.initial_events:
        if revision > current:
            raise too_large_resource_version(revision, current)
        return None
    if options.initial_events is False and not revision:
        return current
    return revision or None


def _departed(previous: Stored, revision: int) -> Stored:
    """Return the last object that a watcher saw, at the revision at which it stopped matching."""
    meta = {**previous.object["metadata"], "resourceVersion": str(revision)}
    return Stored(previous.key, revision, {**previous.object, "metadata": meta})
