"""
The page's view of a cluster, kept by watches while somebody looks.

Nothing is asked of the cluster before the first visit, and nothing any more some time after the
last one; who comes back goes on where it was, for the caches stay. Changes are gathered for a
moment, told to every stream as one update, and kept for those who were away for a short while.
Each update has a revision, a number that only rises, also over a restart of the server: whoever
knows one is told all that came later, or that it has to begin anew.
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
# What a cluster need not serve, and an account need not see.
OPTIONAL = (TAINT_RULES, EVENTS, *GROUP_KINDS)

# Changes of one moment come as one update; a fifth of a second is what a person waits without
# noticing, and the way to the page takes some of it.
GATHER_SECONDS = 0.05
# Who reloads the page, or looks at another tab for a while, finds everything as it was.
LINGER_SECONDS = 60.0
# Whether anybody still looks, and whether the cluster serves kinds that it did not before.
LOOK_AGAIN_SECONDS = 15.0
# What a plane has written before the first visit, as far as it is made again: a second's work.
PAST_WRITES_MAX = 2000
_OF_THE_PAST = (NODES, PODS, CLAIMS, SLICES, TAINT_RULES)

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Update:
    """What the stream tells at a revision."""

    revision: int
    time: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with the cluster at the moment."""

    text: str
    """Why the cluster cannot be followed; "" if it can."""
    failures: tuple[str, ...] = ()
    """One sentence for each component of the control plane that has failed."""


class Subscription:
    """One reader of updates; `None` comes when there will be no more, or too many waited."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Update | Trouble | None] = asyncio.Queue()
        self._bytes = 0

    async def next(self) -> Update | Trouble | None:
        """Return the oldest update that waits; wait for one if there is none."""
        update = await self._queue.get()
        if isinstance(update, Update):
            self._bytes -= len(update.body)
        return update

    def tell(self, update: Update | Trouble) -> None:
        if isinstance(update, Update):
            self._bytes += len(update.body)
        self._queue.put_nowait(update)
        is_long = self._queue.qsize() > DASHBOARD_BACKLOG_UPDATES_MAX
        # More bytes than these, and the updates are kept for this reader alone.
        if is_long or self._bytes > DASHBOARD_UPDATES_BYTES_MAX:
            self.end()

    def end(self) -> None:
        """Drop what waits; a reader that comes again learns where to begin."""
        while not self._queue.empty():
            self._queue.get_nowait()
        self._bytes = 0
        self._queue.put_nowait(None)


class Live:
    """See the module's docstring; `run` keeps it going."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Timekeeper,
        chance: Chance,
        read_past: ReadPast | None = None,
        past_writes_max: int = PAST_WRITES_MAX,
    ) -> None:
        """`read_past` tells what was written before, where that is known."""
        self.client = client
        self._read_past = read_past
        self._past_writes_max = past_writes_max
        self._known = Known()
        self.clock = clock
        self.tracked = Tracked({kind: MODELS[kind] for kind in GROUP_KINDS})
        # Updates are at most some dozens in a second: the next server begins with a higher one.
        self.revision = int(clock.now() * 1000)
        self.history = History()
        self.notes: tuple[str, ...] = ()
        self._informers = Informers(client, clock=clock, chance=chance)
        self._reads: dict[Endpoint, Informer] = {}
        # What the cluster does not serve, as far as is known, and what the account may not see.
        self._missing = [*NEEDED, *OPTIONAL]
        self._hidden: list[str] = []
        self._wanted = asyncio.Event()
        self._settled = asyncio.Event()
        self._changed = asyncio.Event()
        self._failure: DryrackError | None = None
        self._has_begun = False
        self._looked_at = clock.now()
        self._subscriptions: set[Subscription] = set()
        self._updates: deque[Update] = deque()
        self._updates_bytes = 0
        self._oldest = self.revision
        # By kind, what the watch of it suffers from.
        self._troubles: dict[Endpoint, str] = {}
        self._failures: tuple[str, ...] = ()
        self._components: Informer | None = None

    async def run(self) -> None:
        """Follows the cluster whenever somebody looks, until it is cancelled."""
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
        """Returns when the cluster is known; raises if it cannot be."""
        self._looked_at = self.clock.now()
        if not self._wanted.is_set():
            self._settled.clear()
            self._failure = None
            self._wanted.set()
        await self._settled.wait()
        if self._failure is not None:
            raise self._failure

    @contextmanager
    def subscribed(self) -> Iterator[Subscription]:
        """Hears of updates for the length of a block, during which somebody looks."""
        subscription = Subscription()
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)
            self._looked_at = self.clock.now()

    def updates_after(self, revision: int) -> Sequence[Update] | None:
        """All that came later; None if that is not known any more."""
        if not self._oldest <= revision <= self.revision:
            return None
        return [each for each in self._updates if each.revision > revision]

    def objects(self, kind: Endpoint) -> tuple[Raw, ...]:
        """All of a kind that is watched, by name; none of one that cannot be."""
        return self._reads[kind].all() if kind in self._reads else ()

    @property
    def kinds(self) -> tuple[Endpoint, ...]:
        """What is watched."""
        return tuple(self._reads)

    async def _follow(self) -> None:
        if not self._reads:
            await self._begin()
        await self._find()
        async with asyncio.TaskGroup() as group:
            tasks = (
                group.create_task(self._informers.run(), name="informers of the dashboard"),
                group.create_task(self._tell(), name="updates of the dashboard"),
            )
            while self._subscriptions or self.clock.now() - self._looked_at < LINGER_SECONDS:
                await sleep(self.clock, LOOK_AGAIN_SECONDS)
                # Kinds may have come and gone; the watches tell of a server that does not answer.
                with suppress(ApiError, TransportError):
                    await self._find()
                    await self._leave()
            for task in tasks:
                task.cancel()

    async def _begin(self) -> None:
        """Finds out whether it can be read, and what has been before."""
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
            )
            # What is another than at the end of it has happened since.
            self._has_begun = bool(past.writes)

    async def _find(self) -> None:
        """Reads what the cluster serves and is not read yet, from now on."""
        for kind in tuple(self._missing):
            try:
                await self.client.peek(kind)
            except ForbiddenError:
                self._hidden.append(kind.resource)
            except NotFoundError:
                # Not every cluster has taint rules and PodGroups.
                continue
            else:
                self._reads[kind] = self._informers.of(kind)
                self._reads[kind].listen(partial(self.change, kind))
                self._reads[kind].on_trouble(partial(self._note_trouble, kind))
            self._missing.remove(kind)
        self._find_components()
        hidden = ", ".join(self._hidden)
        note = f"not shown: {hidden}: the account of the dashboard has no permission to list them"
        self.notes = (note,) if self._hidden else ()

    def _find_components(self) -> None:
        """
        Follow the ConfigMap in which the embedded control plane of this page reports failures.

        The page of another cluster does not ask: its account needs no right to read ConfigMaps.
        """
        if self._components is not None or self._read_past is None:
            return
        selection = Selection(
            namespace=COMPONENTS.namespace, fields=f"metadata.name={COMPONENTS.name}"
        )
        self._components = self._informers.of(CONFIG_MAPS, selection)
        self._components.listen(self._on_components)

    def _on_components(self, _: Raw | None, new: Raw | None) -> None:
        before = self.trouble
        self._failures = tuple(map(describe_failure, component_failures(new)))
        self._tell_trouble(before)

    async def _leave(self) -> None:
        """Reads no more of what the cluster does not serve any more."""
        for kind in [each for each in OPTIONAL if each in self._troubles]:
            try:
                await self.client.peek(kind)
            except NotFoundError:
                for each in self._reads.pop(kind).all():
                    self.change(kind, each, None)
                self._informers.drop(kind)
                self._note_trouble(kind, "")
                self._missing.append(kind)

    def change(self, kind: Endpoint, old: Raw | None, new: Raw | None) -> None:
        """An informer tells of an object."""
        if old is None and new is not None:
            old = self._known.take(kind, new)
            if old is not None and _revision_of(old) == _revision_of(new):
                return
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
        self._tell_trouble(before)

    def _tell_trouble(self, before: Trouble) -> None:
        if self.trouble != before:
            for each in self._subscriptions:
                each.tell(self.trouble)

    async def _tell(self) -> None:
        for informer in tuple(self._reads.values()):
            await informer.synced.wait()
        for kind, gone in self._known.rest():
            self.tracked.change(kind, gone, None)
        while True:
            self._changed.clear()
            await self._take()
            if not self._has_begun:
                self._has_begun = True
                self.history.begin(self.revision, self._time(), self._states())
            self._settled.set()
            await self._changed.wait()
            await sleep(self.clock, GATHER_SECONDS)

    async def _take(self) -> None:
        """All that is marked, some at a time: others have their turns in between."""
        while self.tracked.is_marked:
            changes = self.tracked.take()
            # What there was from the start is nobody's news.
            if changes and self._has_begun:
                summary = self.tracked.fleet.summaries.documents() if changes.pools else ()
                self.revision += 1
                time = self._time()
                self.history.add(self.revision, time, changes, self._states())
                document = {"revision": self.revision, "time": time}
                document |= update_document(changes, summary)
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
                    each.tell(update)
            await asyncio.sleep(0)

    def _time(self) -> str:
        return micro_timestamp(self.clock.now())

    def _states(self) -> Mapping[str, int]:
        return self.tracked.fleet.summaries.states()


async def check(client: Client) -> None:
    """Raises with a remedy if the cluster is not there, or will not show what is needed."""
    await check_needs(client, [Need(kind) for kind in NEEDED], COMMAND)


def _revision_of(raw: Raw) -> object:
    return raw["metadata"].get("resourceVersion")


def encoded(document: Any) -> bytes:
    """A document as JSON."""
    return _encode(document)
