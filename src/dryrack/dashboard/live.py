"""
The state of a cluster for the dashboard, kept up to date by watches while clients are connected.

No request goes to the cluster before the first visit, or some time after the last one; the caches
stay for later visits. Changes of a short time become one update for all streams, and updates are
kept for clients that reconnect. The revision of an update only rises, even over a restart of the
server: a client that sends its last revision gets the later updates or must read everything again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.base.errors import DryrackError
from dryrack.base.limits import (
    DASHBOARD_BACKLOG_UPDATES_MAX,
    DASHBOARD_UPDATES_BYTES_MAX,
    DASHBOARD_UPDATES_MAX,
)
from dryrack.client.client import Selection
from dryrack.client.discovery import newest_version
from dryrack.client.endpoints import (
    CLAIMS,
    CLASSES,
    CONFIG_MAPS,
    EVENTS,
    NODES,
    PODS,
    SLICES,
    TAINT_RULES,
)
from dryrack.client.errors import ApiError, ForbiddenError, NotFoundError, TransportError
from dryrack.client.informer import Informers
from dryrack.client.timekeeping import micro_timestamp, sleep
from dryrack.cluster import (
    COMPONENTS,
    GROUP_KINDS,
    MODELS,
    Need,
    check_needs,
    component_failures,
    describe_failure,
)
from dryrack.dashboard.data.decision_inputs import decides
from dryrack.dashboard.data.tracked import Tracked
from dryrack.dashboard.data.updates import update_document
from dryrack.dashboard.history import History
from dryrack.dashboard.replay import Known, replay

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.informer import Informer
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.cluster.process.launching import ReadPast
    from dryrack.kinds.raw import Raw

COMMAND = "dryrack dashboard"
NEEDED = (NODES, PODS, CLAIMS, SLICES, CLASSES)
# Kinds that a cluster may not serve, and that an account may not be allowed to list.
OPTIONAL = (TAINT_RULES, EVENTS, *GROUP_KINDS)

# Changes within this time become one update. People do not notice a fifth of a second, and the
# way to the page takes a part of it.
GATHER_SECONDS = 0.05
# The watches stay while a person reloads the page or looks at another tab.
LINGER_SECONDS = 60.0
# Interval to check for clients, and for kinds that the cluster did not serve before.
CHECK_AGAIN_SECONDS = 15.0
# Number of writes before the first visit that are repeated: about a second of work.
PAST_WRITES_MAX = 2000
_OF_THE_PAST = (NODES, PODS, CLAIMS, SLICES, TAINT_RULES)

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Update:
    """An event of the stream: the changes at a revision."""

    revision: int
    time: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Trouble:
    """The present problems of the cluster."""

    text: str
    """The reason why the cluster cannot be watched; empty if it can."""
    failures: tuple[str, ...] = ()
    """One sentence for each component of the control plane that has failed."""


class Subscription:
    """The updates for one client; None after the last one, or if too many are waiting."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Update | Trouble | None] = asyncio.Queue()
        self._bytes = 0

    async def next(self) -> Update | Trouble | None:
        """Return the oldest waiting update; wait for the next one if the queue is empty."""
        update = await self._queue.get()
        if isinstance(update, Update):
            self._bytes -= len(update.body)
        return update

    def send(self, update: Update | Trouble) -> None:
        if isinstance(update, Update):
            self._bytes += len(update.body)
        self._queue.put_nowait(update)
        is_long = self._queue.qsize() > DASHBOARD_BACKLOG_UPDATES_MAX
        # More bytes would be kept for this client alone.
        if is_long or self._bytes > DASHBOARD_UPDATES_BYTES_MAX:
            self.end()

    def end(self) -> None:
        """Drop the waiting updates; a client that reconnects gets those after its last one."""
        while not self._queue.empty():
            self._queue.get_nowait()
        self._bytes = 0
        self._queue.put_nowait(None)


class Live:
    """The state of the cluster; `run` keeps it up to date."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Timekeeper,
        chance: Chance,
        read_past: ReadPast | None = None,
        past_writes_max: int = PAST_WRITES_MAX,
    ) -> None:
        """Create the state; `read_past` returns the earlier writes of an embedded cluster."""
        self.client = client
        self._read_past = read_past
        self._past_writes_max = past_writes_max
        self._known = Known()
        self.clock = clock
        self.tracked = Tracked({kind: MODELS[kind] for kind in GROUP_KINDS})
        # There are at most some dozens of updates per second, so the next server begins higher.
        self.revision = int(clock.now() * 1000)
        # Rises when a change can change decisions, and when the server starts again.
        self.decisions = self.revision
        self._sent_decisions = self.decisions
        self.history = History()
        self.notes: tuple[str, ...] = ()
        self._informers = Informers(client, clock=clock, chance=chance)
        self._reads: dict[Endpoint, Informer] = {}
        # Kinds that the cluster does not serve yet, and kinds that the account may not list.
        self._missing = [*NEEDED, *OPTIONAL]
        self._hidden: list[str] = []
        self._wanted = asyncio.Event()
        self._settled = asyncio.Event()
        self._changed = asyncio.Event()
        self._failure: DryrackError | None = None
        self._has_begun = False
        self._visited_at = clock.now()
        # The number of visits that wait for the first state.
        self._waiting = 0
        self._subscriptions: set[Subscription] = set()
        self._updates: deque[Update] = deque()
        self._updates_bytes = 0
        self._oldest = self.revision
        # The error of the watch of each kind.
        self._troubles: dict[Endpoint, str] = {}
        self._failures: tuple[str, ...] = ()
        self._components: Informer | None = None

    async def run(self) -> None:
        """Watch the cluster while clients are connected, until the task is cancelled."""
        try:
            while True:
                await self._wanted.wait()
                try:
                    await self._follow()
                    self._failure = None
                except DryrackError as error:
                    self._failure = error
                    self._settled.set()
                self._wanted.clear()
        finally:
            for each in self._subscriptions:
                each.end()

    async def look(self) -> None:
        """Wait until the state is complete; raise if the cluster cannot be read."""
        self._visited_at = self.clock.now()
        if not self._wanted.is_set():
            self._settled.clear()
            self._failure = None
            self._wanted.set()
        self._waiting += 1
        try:
            await self._settled.wait()
        finally:
            self._waiting -= 1
            self._visited_at = self.clock.now()
        if self._failure is not None:
            raise self._failure

    @contextmanager
    def subscribe(self) -> Iterator[Subscription]:
        """Yield the updates for the length of a block, which counts as a visit."""
        subscription = Subscription()
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)
            self._visited_at = self.clock.now()

    def updates_after(self, revision: int) -> Sequence[Update] | None:
        """Return the later updates; None if some of them are no longer kept."""
        if not self._oldest <= revision <= self.revision:
            return None
        return [each for each in self._updates if each.revision > revision]

    def objects(self, kind: Endpoint) -> tuple[Raw, ...]:
        """Return the objects of a kind, sorted by name; nothing for a kind that is not watched."""
        return self._reads[kind].all() if kind in self._reads else ()

    def find(self, kind: Endpoint, namespace: str, name: str) -> tuple[Endpoint, Raw] | None:
        """Return an object with the version that the cluster serves; None if it does not exist."""
        informer = self._reads.get(kind)
        raw = informer.get(namespace, name) if informer is not None else None
        return (informer.endpoint, raw) if informer is not None and raw is not None else None

    @property
    def kinds(self) -> tuple[Endpoint, ...]:
        """The watched kinds."""
        return tuple(self._reads)

    async def _follow(self) -> None:
        if not self._reads:
            await self._begin()
        await self._find()
        async with asyncio.TaskGroup() as group:
            tasks = (
                group.create_task(self._informers.run(), name="informers of the dashboard"),
                group.create_task(self._send_updates(), name="updates of the dashboard"),
            )
            while self._is_visited:
                await sleep(self.clock, CHECK_AGAIN_SECONDS)
                # Kinds may appear and disappear. The watches report a server that does not answer.
                with suppress(ApiError, TransportError):
                    await self._find()
                    await self._leave()
            for task in tasks:
                task.cancel()

    @property
    def _is_visited(self) -> bool:
        # A first visit can take longer than the watches stay.
        is_recent = self.clock.now() - self._visited_at < LINGER_SECONDS
        return bool(self._subscriptions) or self._waiting > 0 or is_recent

    async def _begin(self) -> None:
        """Check that the cluster can be read, and repeat its earlier writes."""
        await check(self.client)
        if self._read_past is not None:
            kinds = {kind.resource: kind for kind in _OF_THE_PAST}
            past = self._read_past(tuple(kinds), self._past_writes_max)
            self._known = await replay(
                past,
                kinds,
                self.tracked,
                self.history,
                revision=self.revision,
                now=self.clock.now(),
                writes_max=self._past_writes_max,
            )
            # A difference from the end of the past has happened since then.
            self._has_begun = bool(past.writes)

    async def _find(self) -> None:
        """Watch the kinds that the cluster serves and that are not watched yet."""
        for kind in tuple(self._missing):
            try:
                served = await newest_version(self.client, kind)
                await self.client.peek(served)
            except ForbiddenError:
                self._hidden.append(kind.resource)
            except NotFoundError:
                # Not every cluster has taint rules and PodGroups.
                continue
            else:
                self._reads[kind] = self._informers.of(served)
                self._reads[kind].listen(partial(self.change, kind))
                self._reads[kind].on_trouble(partial(self._note_trouble, kind))
            self._missing.remove(kind)
        # The embedded control plane reports failures of its components in a ConfigMap. For another
        # cluster, it is not read: the account of the dashboard needs no right to read ConfigMaps.
        if self._components is None and self._read_past is not None:
            namespace, name = COMPONENTS
            selection = Selection(namespace=namespace, fields=f"metadata.name={name}")
            self._components = self._informers.of(CONFIG_MAPS, selection)
            self._components.listen(self._on_components)
        hidden = ", ".join(self._hidden)
        note = f"not shown: {hidden}: the account of the dashboard has no permission to list them"
        self.notes = (note,) if self._hidden else ()

    def _on_components(self, _: Raw | None, new: Raw | None) -> None:
        before = self.trouble
        self._failures = tuple(map(describe_failure, component_failures(new)))
        self._send_trouble(before)

    async def _leave(self) -> None:
        """Stop watching kinds that the cluster does not serve any more."""
        for kind in [each for each in OPTIONAL if each in self._troubles]:
            served = self._reads[kind].endpoint
            try:
                await self.client.peek(served)
            except NotFoundError:
                for each in self._reads.pop(kind).all():
                    self.change(kind, each, None)
                self._informers.drop(served)
                self._note_trouble(kind, "")
                self._missing.append(kind)

    def change(self, kind: Endpoint, old: Raw | None, new: Raw | None) -> None:
        """Update the state after an object was created, changed or deleted."""
        if old is None and new is not None:
            old = self._known.take(kind, new)
            if old is not None and _revision_of(old) == _revision_of(new):
                return
        self.decisions += decides(kind, old, new)
        self.tracked.change(kind, old, new)
        self._changed.set()

    @property
    def trouble(self) -> Trouble:
        """Return what is wrong with the cluster at the moment."""
        return Trouble(next(iter(self._troubles.values()), ""), self._failures)

    def _note_trouble(self, kind: Endpoint, text: str) -> None:
        before = self.trouble
        if text:
            self._troubles[kind] = text
        else:
            self._troubles.pop(kind, None)
        self._send_trouble(before)

    def _send_trouble(self, before: Trouble) -> None:
        if self.trouble != before:
            for each in self._subscriptions:
                each.send(self.trouble)

    async def _send_updates(self) -> None:
        for informer in tuple(self._reads.values()):
            await informer.synced.wait()
        for kind, gone in self._known.rest():
            self.tracked.change(kind, gone, None)
        while True:
            self._changed.clear()
            await self._send_changes()
            if not self._has_begun:
                self._has_begun = True
                self.history.begin(self.revision, self._time(), self._states())
            self._settled.set()
            await self._changed.wait()
            await sleep(self.clock, GATHER_SECONDS)

    async def _send_changes(self) -> None:
        """Send the marked changes in parts, so that other tasks run in between."""
        if not self._has_begun:
            self._sent_decisions = self.decisions
        while self.tracked.is_marked or self.decisions != self._sent_decisions:
            changes = self.tracked.take()
            is_decided = self.decisions != self._sent_decisions
            self._sent_decisions = self.decisions
            # The objects of the first list are not changes.
            if (changes or is_decided) and self._has_begun:
                summary = self.tracked.fleet.summaries.documents() if changes.pools else None
                self.revision += 1
                time = self._time()
                self.history.add(self.revision, time, changes, self._states())
                document = {"revision": self.revision, "time": time}
                document |= update_document(changes, summary)
                if is_decided:
                    document["decisions"] = self.decisions
                update = Update(self.revision, time, _encode(document))
                self._updates.append(update)
                self._updates_bytes += len(update.body)
                while (
                    len(self._updates) > DASHBOARD_UPDATES_MAX
                    or self._updates_bytes > DASHBOARD_UPDATES_BYTES_MAX
                ):
                    oldest = self._updates.popleft()
                    self._updates_bytes -= len(oldest.body)
                    self._oldest = oldest.revision
                for each in self._subscriptions:
                    each.send(update)
            await asyncio.sleep(0)

    def _time(self) -> str:
        return micro_timestamp(self.clock.now())

    def _states(self) -> Mapping[str, int]:
        return self.tracked.fleet.summaries.states()


async def check(client: Client) -> None:
    """Raise an error with a fix if the cluster cannot be read."""
    await check_needs(client, [Need(kind) for kind in NEEDED], COMMAND)


def _revision_of(raw: Raw) -> object:
    return raw["metadata"].get("resourceVersion")


def encode(document: Any) -> bytes:
    """A document as JSON."""
    return _encode(document)
