"""
A cache of all objects of a kind, kept by a watch.

An `Informer` lists once and watches from there on; when the server no longer has its revision it
lists again and reports the difference to its listeners. Also after a lost connection, listeners get
the last state of every object, in the order of its changes; they may miss states in between.

Promise: a listener is called once with `(None, new)` for each existing object, with `(old, new)`
for a change, and with `(old, None)` for a deletion. Objects are shared and must not be changed.
They are those of the server, without `managedFields`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from dryrack.base.ports import Chance
from dryrack.client.client import (
    EVERYTHING,
    Client,
    Selection,
    WatchEvent,
    ends_initial_events,
)
from dryrack.client.endpoints import Endpoint
from dryrack.client.errors import (
    ApiError,
    BadRequestError,
    GoneError,
    InvalidError,
    TransportError,
)
from dryrack.client.sharing import share_parts
from dryrack.client.supervision import Component, Supervisor, current_component
from dryrack.client.timekeeping import Timekeeper, add_jitter, fraction, sleep
from dryrack.kinds.raw import Raw

Listener = Callable[[Raw | None, Raw | None], None]

_logger = logging.getLogger(__name__)

# client-go waits from 0.8 s up to 30 s between attempts to connect to a server.
BACKOFF_SECONDS_MIN = 0.8
BACKOFF_SECONDS_MAX = 30.0

# As in client-go, a watch ends after five to ten minutes, so that a dead connection is noticed.
WATCH_SECONDS_MIN = 300


class Name(NamedTuple):
    """The identity of an object of a kind; `namespace` is "" for kinds without one."""

    namespace: str
    name: str


def name_of(obj: Raw) -> Name:
    metadata = obj["metadata"]
    return Name(metadata.get("namespace", ""), metadata["name"])


class Index:
    """Objects by keys that a function computes; updated by an informer."""

    def __init__(self, keys_of: Callable[[Raw], Iterable[str]]) -> None:
        self.users: dict[Component | None, None] = {}
        """The components that read the index; None stands for code that is not supervised."""
        self._keys_of = keys_of
        self._objects: dict[str, dict[Name, Raw]] = {}
        # The keys of each object, which would take long to compute again.
        self._keys: dict[Name, tuple[str, ...]] = {}

    def get(self, key: str) -> tuple[Raw, ...]:
        """Return all objects with that key, in the order of their names."""
        objects = self._objects.get(key, {})
        return tuple(objects[name] for name in sorted(objects))

    def count(self, key: str) -> int:
        """Return the number of objects with that key."""
        return len(self._objects.get(key, ()))

    def change(self, old: Raw | None, new: Raw | None) -> None:
        obj = new if new is not None else old
        assert obj is not None, "an informer reports an object"
        name = name_of(obj)
        # An object can have a key several times: a pod that names one template twice.
        keys = () if new is None else tuple(dict.fromkeys(self._keys_of(new)))
        for key in self._keys.pop(name, ()):
            if key not in keys:
                bucket = self._objects[key]
                bucket.pop(name, None)
                if not bucket:
                    del self._objects[key]
        if new is not None and keys:
            self._keys[name] = keys
            for key in keys:
                self._objects.setdefault(key, {})[name] = new


class Informer:
    """A cache of the objects of a kind; it is filled while `run` runs."""

    def __init__(
        self,
        client: Client,
        endpoint: Endpoint,
        *,
        clock: Timekeeper,
        chance: Chance,
        selection: Selection = EVERYTHING,
    ) -> None:
        self.endpoint = endpoint
        self.synced = asyncio.Event()
        self._client = client
        self._selection = selection
        self._clock = clock
        self._chance = chance
        self._objects: dict[Name, Raw] = {}
        self._listeners: list[tuple[Listener, Component | None]] = []
        self._indexes: dict[str, Index] = {}
        # The last object, which may have many parts in common with the next one.
        self._last: Raw | None = None
        self._revision = ""
        self._moved = asyncio.Event()
        self._serves_initial_events = True
        self._trouble = ""
        self._on_trouble: Callable[[str], None] = lambda _: None

    @property
    def objects(self) -> Mapping[Name, Raw]:
        """The objects by name, updated with every event."""
        return self._objects

    def get(self, namespace: str, name: str) -> Raw | None:
        return self._objects.get(Name(namespace, name))

    def all(self, namespace: str = "") -> tuple[Raw, ...]:
        """Return all objects, or those of a namespace, in the order of their names."""
        names = sorted(n for n in self._objects if not namespace or n.namespace == namespace)
        return tuple(self._objects[name] for name in names)

    def listen(self, listener: Listener) -> None:
        """
        Call the listener for every cached object, and for every change from now on.

        A listener that raises ends the component that registered it, and no other.
        """
        component = current_component()
        entry = (listener, component)
        self._listeners.append(entry)
        if component is not None:
            component.on_end(lambda: self._listeners.remove(entry))
        for obj in self.all():
            listener(None, obj)

    def on_trouble(self, listener: Callable[[str], None]) -> None:
        """Call the listener with the error of a failed watch, and with "" once it works again."""
        self._on_trouble = listener

    def index(self, name: str, keys_of: Callable[[Raw], Iterable[str]]) -> Index:
        """Return the index of that name, which several components can share."""
        index = self._indexes.get(name)
        if index is None:
            index = Index(keys_of)
            for obj in self.all():
                index.change(None, obj)
            self._indexes[name] = index
        index.users[current_component()] = None
        return index

    async def wait_for_revision(self, revision: str) -> None:
        """Wait until the cache has a revision (of this kind)."""
        while not self._revision or int(self._revision) < int(revision):
            await self._moved.wait()

    async def wait_for_deletion(self, name: Name, uid: str) -> None:
        """Wait until an object is deleted, or has a deletion timestamp."""
        while (obj := self._objects.get(name)) is not None:
            metadata = obj["metadata"]
            if metadata.get("uid") != uid or "deletionTimestamp" in metadata:
                return
            await self._moved.wait()

    def drop_revision(self) -> None:
        """List again at the next run, because an event was missed."""
        self._revision = ""

    async def run(self) -> None:
        """List and watch until the task is canceled."""
        rounds = 0
        while True:
            began = self._clock.now()
            try:
                await self._follow()
                has_failed = False
            except GoneError:
                self._revision = ""
                has_failed = False
            except (ApiError, TransportError) as error:
                _logger.warning("watch of %s: %s", self.endpoint.resource, error)
                self._set_trouble(str(error))
                has_failed = True
            rounds = 0 if self._clock.now() - began >= BACKOFF_SECONDS_MIN else rounds + 1
            # Back off from a server that does not answer, or ends every watch at once.
            if not has_failed and rounds <= 2:
                await asyncio.sleep(0)
                continue
            seconds = BACKOFF_SECONDS_MIN * 2 ** min(max(rounds - 1, 0), 10)
            await sleep(self._clock, add_jitter(self._chance, min(seconds, BACKOFF_SECONDS_MAX)))

    async def _follow(self) -> None:
        """Run one watch, after the list that it may need."""
        if not self._revision and self._serves_initial_events:
            try:
                await self._watch(_Replacement(self._reduce))
            except (BadRequestError, InvalidError):
                self._serves_initial_events = False
            return
        if not self._revision:
            listing = await self._client.list(self.endpoint, self._selection)
            events = [WatchEvent("ADDED", item) for item in listing.items]
            objects = {(name := name_of(e.object)): self._reduce(name, e) for e in events}
            self._replace(objects, listing.revision)
        await self._watch(None)

    async def _watch(self, replacement: "_Replacement | None") -> None:
        seconds = int(WATCH_SECONDS_MIN * (1 + fraction(self._chance)))
        async with self._client.watch(
            self.endpoint,
            self._selection,
            revision=self._revision,
            timeout_seconds=seconds,
            with_initial_events=replacement is not None,
        ) as events:
            self._set_trouble("")
            async for event in events:
                if replacement is None:
                    self._take(event)
                elif replacement.completes(event):
                    self._replace(replacement.objects, _revision_of(event.object))
                    replacement = None

    def _set_trouble(self, text: str) -> None:
        if text != self._trouble:
            self._trouble = text
            self._on_trouble(text)

    def _take(self, event: WatchEvent) -> None:
        if event.type != "BOOKMARK":
            name = name_of(event.object)
            self._set(name, None if event.type == "DELETED" else self._reduce(name, event))
        self._move(_revision_of(event.object))

    def _replace(self, objects: dict[Name, Raw], revision: str) -> None:
        for name in sorted(self._objects.keys() - objects.keys()):
            self._set(name, None)
        for name in sorted(objects):
            self._set(name, objects[name])
        self._move(revision)
        self.synced.set()

    def _reduce(self, name: Name, event: WatchEvent) -> Raw:
        """Return the object without managed fields, with parts shared with other objects."""
        obj = event.object
        metadata = event.object["metadata"]
        if "managedFields" in metadata:
            # They are a third of most objects. The server keeps them if an update has none.
            rest = {key: value for key, value in metadata.items() if key != "managedFields"}
            obj = {**obj, "metadata": rest}
        if not event.is_handed_over:
            obj = share_parts(obj, self._objects.get(name) or self._last)
        self._last = obj
        return obj

    def _set(self, name: Name, new: Raw | None) -> None:
        old = self._objects.get(name)
        if old is None and new is None:
            return
        if old is not None and new is not None and _revision_of(old) == _revision_of(new):
            return
        if new is None:
            del self._objects[name]
        else:
            self._objects[name] = new
        for key, index in tuple(self._indexes.items()):
            try:
                index.change(old, new)
            except Exception as error:
                if None in index.users:
                    raise
                # Its users build it again when they restart.
                del self._indexes[key]
                for component in index.users:
                    if component is not None:
                        component.fail(error)
        for listener, component in tuple(self._listeners):
            if component is None:
                _notify(listener, old, new)
            elif not component.is_over:
                try:
                    _notify(listener, old, new)
                except Exception as error:  # noqa: BLE001 - it ends the component
                    component.fail(error)

    def _move(self, revision: str) -> None:
        self._revision = revision
        self._moved.set()
        self._moved = asyncio.Event()


class _Replacement:
    """Collects the initial events of a watch."""

    def __init__(self, reduce: Callable[[Name, WatchEvent], Raw]) -> None:
        self.objects: dict[Name, Raw] = {}
        self._reduce = reduce

    def completes(self, event: WatchEvent) -> bool:
        if event.type == "BOOKMARK":
            return ends_initial_events(event)
        name = name_of(event.object)
        if event.type == "DELETED":
            self.objects.pop(name, None)
        else:
            self.objects[name] = self._reduce(name, event)
        return False


def _notify(listener: Listener, old: Raw | None, new: Raw | None) -> None:
    # An object with another uid replaced a deleted object of the same name.
    if old is not None and new is not None and old["metadata"]["uid"] != new["metadata"]["uid"]:
        listener(old, None)
        old = None
    listener(old, new)


def _revision_of(obj: Raw) -> str:
    return str(obj["metadata"].get("resourceVersion", ""))


_Part = tuple[Endpoint, Selection]


class Cache(Protocol):
    """Another cache of the objects of a kind, which may not be served."""

    @property
    def endpoint(self) -> Endpoint: ...

    @property
    def is_known(self) -> bool:
        """True if the cache is complete."""
        ...

    async def run(self) -> None: ...


class Informers:
    """One informer per kind, or per part of a kind, shared by all components of a process."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Timekeeper,
        chance: Chance,
        supervisor: Supervisor | None = None,
    ) -> None:
        """`supervisor` restarts an informer that fails; without it the failure is raised."""
        self._client = client
        self._clock = clock
        self._chance = chance
        self._supervisor = supervisor
        self._by_part: dict[_Part, Informer] = {}
        self._caches: list[Cache] = []
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[_Part, asyncio.Task[None]] = {}
        self._cache_tasks: dict[int, asyncio.Task[None]] = {}

    def of(self, endpoint: Endpoint, selection: Selection = EVERYTHING) -> Informer:
        """Return the informer of a kind, or of a part of it; it starts now, or with `run`."""
        part = (endpoint, selection)
        if part not in self._by_part:
            self._by_part[part] = self.new_informer(endpoint, selection)
            self._start(part)
        return self._by_part[part]

    def new_informer(self, endpoint: Endpoint, selection: Selection = EVERYTHING) -> Informer:
        """Return an informer that is not shared, and that the caller runs."""
        return Informer(
            self._client, endpoint, clock=self._clock, chance=self._chance, selection=selection
        )

    def add_cache(self, cache: Cache) -> None:
        """Run another cache as well, now or with `run`, until the current component is over."""
        self._caches.append(cache)
        component = current_component()
        if component is not None:
            component.on_end(lambda: self._stop_cache(cache))
        self._start_cache(cache)

    def find_existing(self, endpoint: Endpoint) -> Informer | None:
        """Return the informer of the whole kind, if there is one."""
        return self._by_part.get((endpoint, EVERYTHING))

    def unsynced(self) -> tuple[str, ...]:
        """Return the kinds whose caches are not complete yet."""
        informers = [each.endpoint for each in self._by_part.values() if not each.synced.is_set()]
        caches = [each.endpoint for each in self._caches if not each.is_known]
        return tuple(endpoint.resource for endpoint in (*informers, *caches))

    async def run(self) -> None:
        """Run all informers and caches, also those that are added later."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for part in self._by_part:
                    self._start(part)
                for cache in self._caches:
                    self._start_cache(cache)
                await asyncio.Event().wait()
            finally:
                self._group = None

    def refresh(self, endpoint: Endpoint) -> None:
        """List a kind again; listeners get the changes that the informer has missed."""
        part = (endpoint, EVERYTHING)
        task = self._tasks.get(part)
        if task is not None:
            self._by_part[part].drop_revision()
            task.cancel()
            self._start(part)

    def drop(self, endpoint: Endpoint) -> None:
        """Stop the informer of a kind that is no longer served."""
        part = (endpoint, EVERYTHING)
        self._by_part.pop(part, None)
        task = self._tasks.pop(part, None)
        if task is not None:
            task.cancel()

    def _start(self, part: _Part) -> None:
        if self._group is not None:
            informer = self._by_part[part]
            name = f"informer {part[0].resource}"
            self._tasks[part] = self._group.create_task(
                self._supervise(name, informer.run), name=name
            )

    def _start_cache(self, cache: Cache) -> None:
        if self._group is not None:
            name = f"cache {cache.endpoint.resource}"
            self._cache_tasks[id(cache)] = self._group.create_task(
                self._supervise(name, cache.run), name=name
            )

    def _stop_cache(self, cache: Cache) -> None:
        self._caches.remove(cache)
        task = self._cache_tasks.pop(id(cache), None)
        if task is not None:
            task.cancel()

    async def _supervise(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        if self._supervisor is None:
            await run()
        else:
            await self._supervisor.run(name, run)
