"""
Watches: what happens to a resource, as it happens.

A watch begins with what its client has not seen and goes on with every event, in order and
without a gap, because it subscribes in the same step in which it reads what there is. Events are
put together when somebody reads, from JSON that all watchers share; a reader in this process is
given the objects themselves. A reader that falls too far behind is cut off rather than served from
ever more memory.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dryrack.apiserver.answer.rendering import Form, Renderer, encode
from dryrack.apiserver.answer.status import Status, StatusError, expired, too_large_resource_version
from dryrack.apiserver.http.media import Wanted
from dryrack.apiserver.http.queries import ListOptions, RevisionError, parse_revision
from dryrack.apiserver.registry import Resource
from dryrack.apiserver.verbs.selection import Selection
from dryrack.base.limits import (
    STREAM_BUFFER_BYTES_MAX,
    WATCH_BACKLOG_BYTES_MAX,
    WATCH_BACKLOG_EVENTS_MAX,
)
from dryrack.client.timekeeping import Timekeeper, Timer
from dryrack.client.transport import Chunk, Handed
from dryrack.kinds.raw import Raw
from dryrack.store import Event, EventType, Gone, Store, Stored

if TYPE_CHECKING:
    from collections.abc import Callable

BOOKMARK_SECONDS = 60.0
# Shortly before a watch ends its client is told how far it has come, so that the next one is cheap.
_LAST_BOOKMARK_SECONDS = 2.0
_ENDS = "k8s.io/initial-events-end"
_TAIL = b"}\n"
_NAMES = {each: each.value for each in EventType}
_HEADS = {
    name: b'{"type":"' + name.encode() + b'","object":'
    for name in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
}


@dataclass(frozen=True, slots=True)
class Watch:
    """What is watched, and in which form it is told."""

    selection: Selection
    namespace: str | None
    options: ListOptions
    form: Form
    hands_over: bool = False
    """Whether objects are told as they are, to a reader in this process."""

    @property
    def resource(self) -> Resource:
        return self.selection.resource

    @property
    def wanted(self) -> Wanted:
        return self.form.wanted

    @property
    def is_plain(self) -> bool:
        """Whether every event goes out as it is stored."""
        return self.wanted.is_plain and self.resource.is_stored_as_served


class _Pending(NamedTuple):
    """An event that nobody has read yet, with the object if that is handed over."""

    type: str
    json: bytes
    object: Raw | None


class WatchStream:
    """The body of a watch; see `client.transport.Stream`."""

    def __init__(self, store: Store, watch: Watch, renderer: Renderer, clock: Timekeeper) -> None:
        self._store = store
        self._watch = watch
        # Asked for at every event of every watch.
        self._is_plain = watch.is_plain
        self._is_all = watch.selection.is_all
        self._namespace = watch.namespace
        self._renderer = renderer
        self._clock = clock
        self._hands_over = watch.hands_over
        self._pending: deque[_Pending] = deque()
        self._events = 0
        self._bytes = 0
        self._headed = True
        self._is_over = False
        self._wake: asyncio.Future[None] | None = None
        self._timers: list[Timer] = []
        self._next_bookmark: Timer | None = None
        self._after = 0
        self._unsubscribe: Callable[[], object] = _nothing
        self._begin()

    def __aiter__(self) -> "WatchStream":
        return self

    async def __anext__(self) -> Chunk:
        while not self._pending:
            if self._is_over:
                raise StopAsyncIteration
            self._wake = asyncio.get_running_loop().create_future()
            try:
                await self._wake
            finally:
                self._wake = None
        return self._next_chunk()

    def _next_chunk(self) -> Chunk:
        """All that is there; of very much some events, or it would all be there twice."""
        events: list[_Pending] = []
        size = 0
        while self._pending and size < STREAM_BUFFER_BYTES_MAX:
            event = self._pending.popleft()
            events.append(event)
            size += len(event.json)
        self._bytes = max(0, self._bytes - size)
        self._events = max(0, self._events - len(events))
        if self._hands_over:
            return [Handed(type, json if obj is None else obj) for type, json, obj in events]
        return b"".join([part for type, json, _ in events for part in (_HEADS[type], json, _TAIL)])

    async def aclose(self) -> None:
        self._end()
        self._pending.clear()

    def _begin(self) -> None:
        revision = _start(self._watch.options, self._store.revision)
        if revision is None:
            self._tell_state()
        else:
            self._tell_missed(revision)
        if not self._is_over:
            self._unsubscribe = self._store.subscribe(
                self._watch.resource.storage, self._on_event, ended=self._end
            )
            self._set_timers()

    def _tell_state(self) -> None:
        """Everything there is, as if it had just been made."""
        watch = self._watch
        items, revision = watch.selection.candidates(self._store, watch.namespace)
        self._after = revision
        for each in items:
            if watch.selection.is_all or watch.selection.matches(each):
                self._push("ADDED", each)
        if watch.options.initial_events and watch.options.bookmarks:
            self._bookmark({_ENDS: "true"})
        # What a client asks for at once is no backlog.
        self._events = self._bytes = 0

    def _tell_missed(self, revision: int) -> None:
        missed = self._store.events(self._watch.resource.storage, after=revision)
        self._after = revision
        if isinstance(missed, Gone):
            error = expired(f"too old resource version: {revision} ({missed.oldest})")
            self._put("ERROR", encode(error.status.to_raw()))
            self._end()
            return
        for event in missed:
            self._on_event(event)
        self._events = self._bytes = 0

    def _set_timers(self) -> None:
        options, now = self._watch.options, self._clock.now()
        seconds = options.timeout_seconds
        if seconds is not None and seconds > 0:
            self._timers.append(self._clock.call_at(now + seconds, self._end))
            if options.bookmarks and seconds > _LAST_BOOKMARK_SECONDS:
                at = now + seconds - _LAST_BOOKMARK_SECONDS
                self._timers.append(self._clock.call_at(at, self._bookmark))
        if options.bookmarks:
            self._next_bookmark = self._clock.call_at(now + BOOKMARK_SECONDS, self._bookmark_again)

    def _bookmark_again(self) -> None:
        self._bookmark()
        at = self._clock.now() + BOOKMARK_SECONDS
        self._next_bookmark = self._clock.call_at(at, self._bookmark_again)

    def _on_event(self, event: Event) -> None:
        stored = event.stored
        if stored.revision <= self._after or self._is_over:
            return
        if self._namespace is not None and stored.key.namespace != self._namespace:
            return
        if self._is_all:
            self._push(_NAMES[event.type], stored)
        else:
            self._push_selected(event)
        if self._events > WATCH_BACKLOG_EVENTS_MAX or self._bytes > WATCH_BACKLOG_BYTES_MAX:
            self._end()
            self._pending.clear()

    def _push_selected(self, event: Event) -> None:
        """To a watcher, an object appears when it begins to match and is gone when it ceases."""
        selection, stored, previous = self._watch.selection, event.stored, event.previous
        was = previous is not None and selection.matches(previous)
        if event.type is EventType.DELETED:
            if was:
                self._push("DELETED", stored)
        elif selection.matches(stored):
            self._push("MODIFIED" if was else "ADDED", stored)
        elif was and previous is not None:
            self._push("DELETED", _left(previous, stored.revision))

    def _push(self, type: str, stored: Stored) -> None:
        if self._is_plain:
            json = stored.json
            # Of large objects readers share the parts that they have in common.
            is_text = not self._hands_over or stored.is_compact or stored.is_large
            self._put(type, json, None if is_text else stored.object)
            return
        watch = self._watch
        obj = watch.resource.read(stored)
        shaped = self._renderer.shaped(watch.resource, obj, watch.form, headed=self._headed)
        self._headed = False
        self._put(type, encode(shaped), shaped if self._hands_over else None)

    def _bookmark(self, annotations: Raw | None = None) -> None:
        resource = self._watch.resource
        meta: Raw = {"resourceVersion": str(max(self._store.revision, self._after))}
        if annotations:
            meta["annotations"] = annotations
        obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        if self._hands_over:
            self._put("BOOKMARK", b"", obj)
        else:
            self._put("BOOKMARK", encode(obj))

    def _put(self, type: str, json: bytes, obj: Raw | None = None) -> None:
        self._pending.append(_Pending(type, json, obj))
        self._events += 1
        self._bytes += len(json)
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


def _nothing() -> None:
    """Ends no subscription."""


def _start(options: ListOptions, current: int) -> int | None:
    """The revision after which a watch begins; None: with all that is there."""
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


def _left(previous: Stored, revision: int) -> Stored:
    """An object as a watcher last knew it, at the revision at which it ceased to match."""
    meta = {**previous.object["metadata"], "resourceVersion": str(revision)}
    return Stored(previous.key, revision, {**previous.object, "metadata": meta})
