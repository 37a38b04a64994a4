"""
What a plan wants written, as values; and the executor that writes it.

A plan says `Create`, `Patch`, `Delete`; it never talks to a cluster. `WriteExecutor` carries writes
out in order, and then waits until the caches that the next plan will read have seen them: a plan
never acts on a world that lacks its own last deeds. The first refusal ends it; the rest is planned
anew.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

from dryrack.base.metrics import Registry
from dryrack.base.ports import Chance
from dryrack.client.client import MERGE_PATCH, Client, Selection
from dryrack.client.endpoints import Endpoint
from dryrack.client.errors import ApiError, NotFoundError
from dryrack.client.events import EventRecorder
from dryrack.client.informer import Informers, Name, name_of
from dryrack.client.timekeeping import Timekeeper, sleep
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

if TYPE_CHECKING:
    from dryrack.controllers.pods.drivers import Drivers

Sight = Callable[[], Awaitable[None]]

_logger = logging.getLogger(__name__)

# A cache that lags more than this has lost its watch; planning again is then the lesser evil,
# and the server refuses what does not fit its state.
CATCH_UP_SECONDS_MAX = 10.0


@dataclass(frozen=True, slots=True)
class Create:
    """
    A new object.

    What came of it is reported, with "{}" in the message replaced: in `accepted` by the name that
    the object got, in `refused` by the server's words.
    """

    endpoint: Endpoint
    object: Raw
    refused: "Report | None" = None
    accepted: "Report | None" = None


@dataclass(frozen=True, slots=True)
class Update:
    """The whole object, at the revision it was read or the same plan wrote it."""

    endpoint: Endpoint
    object: Raw
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Patch:
    """A change; `patch` names a uid or a resourceVersion where it must meet that very object."""

    endpoint: Endpoint
    name: Name
    patch: Any
    subresource: str = ""
    media_type: str = MERGE_PATCH


@dataclass(frozen=True, slots=True)
class Apply:
    """Fields in the name of a manager, taken from others if need be."""

    endpoint: Endpoint
    object: Raw
    manager: str
    subresource: str


@dataclass(frozen=True, slots=True)
class Delete:
    """The end of that very object."""

    endpoint: Endpoint
    name: Name
    uid: str
    revision: str = ""
    grace_seconds: int | None = None
    propagation: str = ""


@dataclass(frozen=True, slots=True)
class DeleteAll:
    """The end of everything of a kind in a namespace."""

    endpoint: Endpoint
    namespace: str


@dataclass(frozen=True, slots=True)
class Report:
    """An event for people; losing one is no failure."""

    regarding: Raw
    type: str
    reason: str
    message: str
    once: str = ""
    """Reports about one object with the same word here are one event, whoever makes them."""


def without_finalizer(endpoint: Endpoint, obj: Raw, finalizer: str) -> Patch:
    """Lets that very object go, for one of those who keep it."""
    metadata = obj["metadata"]
    left = [each for each in get(metadata, "finalizers", ()) if each != finalizer]
    patch = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    return Patch(endpoint, name_of(obj), {"metadata": patch | {"finalizers": left or None}})


Write = Create | Update | Patch | Apply | Delete | DeleteAll | Report


@dataclass(frozen=True, slots=True)
class Plan:
    """What to write now, and in how many seconds to look again even if nothing changes."""

    writes: tuple[Write, ...] = ()
    again_seconds: float | None = None


NOTHING = Plan()


@dataclass(frozen=True, slots=True)
class EngineContext:
    """All that an engine is given."""

    client: Client
    informers: Informers
    clock: Timekeeper
    chance: Chance
    authority: str = ""
    """The certificates by which pods know the server, in PEM; "" where there are none."""
    metrics: Registry | None = None
    """Where engines count what they do; None: nobody asks."""
    drivers: "Drivers | None" = None
    """What prepares devices on virtual nodes; None: every claim that is allocated is ready."""
    node_lease_seconds: int = 0
    """How long leases of virtual nodes last; 0: as long as a kubelet's."""


Revisions = dict[tuple[Endpoint, Name], str]


def _at(obj: Raw, revision: str | None) -> Raw:
    if revision is None:
        return obj
    return obj | {"metadata": obj["metadata"] | {"resourceVersion": revision}}


class WriteExecutor:
    """Carries out what a component plans."""

    def __init__(self, context: EngineContext, component: str) -> None:
        self._context = context
        self._component = component
        self._recorder = EventRecorder(context.client, context.clock, context.chance, component)

    async def carry_out(self, writes: Sequence[Write]) -> Sequence[Raw | None]:
        """
        All writes, in order, and their way into the caches.

        Answers with the objects as they are stored; None for a write that stores none.
        """
        revisions: Revisions = {}
        done = [await self._carry_out(write, revisions) for write in writes]
        seen = [sight for _, sight in done if sight]
        if seen:
            await self._catch_up(seen)
        return [stored for stored, _ in done]

    async def _catch_up(self, seen: Sequence[Sight]) -> None:
        async def all_seen() -> None:
            for each in seen:
                await each()

        async with asyncio.TaskGroup() as group:
            late = group.create_task(
                sleep(self._context.clock, CATCH_UP_SECONDS_MAX), name="catch-up limit"
            )
            waiting = group.create_task(all_seen(), name="catch-up")
            await asyncio.wait((late, waiting), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                _logger.warning("%s: a cache does not follow its own writes", self._component)
            late.cancel()
            waiting.cancel()

    async def _carry_out(
        self, write: Write, revisions: Revisions
    ) -> tuple[Raw | None, Sight | None]:
        if isinstance(write, Report):
            await self._report(write)
            return None, None
        if isinstance(write, Delete):
            return None, await self._delete(write)
        if isinstance(write, DeleteAll):
            selection = Selection(namespace=write.namespace)
            await self._context.client.delete_collection(write.endpoint, selection)
            return None, None
        stored = await self._store(write, revisions)
        revision = stored["metadata"]["resourceVersion"]
        revisions[write.endpoint, name_of(stored)] = revision
        informer = self._context.informers.known(write.endpoint)
        return stored, partial(informer.reached, revision) if informer else None

    async def _store(self, write: Create | Update | Patch | Apply, revisions: Revisions) -> Raw:
        client = self._context.client
        match write:
            case Create():
                try:
                    created = await self._context.client.create(write.endpoint, write.object)
                except ApiError as error:
                    await self._report_on(write.refused, str(error))
                    raise
                await self._report_on(write.accepted, created["metadata"]["name"])
                return created
            case Update(endpoint, obj, subresource):
                obj = _at(obj, revisions.get((endpoint, name_of(obj))))
                return await client.update(endpoint, obj, subresource=subresource)
            case Patch(endpoint, name, patch, subresource, media_type):
                return await client.patch(
                    endpoint,
                    name.name,
                    patch,
                    namespace=name.namespace,
                    subresource=subresource,
                    media_type=media_type,
                )
            case Apply(endpoint, obj, manager, subresource):
                return await client.apply(
                    endpoint, obj, manager=manager, subresource=subresource, force=True
                )
            case _:
                assert_never(write)

    async def _report_on(self, report: Report | None, what: str) -> None:
        if report is not None:
            await self._report(replace(report, message=report.message.replace("{}", what)))

    async def _delete(self, write: Delete) -> Sight | None:
        with suppress(NotFoundError):
            await self._context.client.delete(
                write.endpoint,
                write.name.name,
                namespace=write.name.namespace,
                uid=write.uid,
                revision=write.revision,
                grace_seconds=write.grace_seconds,
                propagation=write.propagation,
            )
        informer = self._context.informers.known(write.endpoint)
        return partial(informer.parted, write.name, write.uid) if informer else None

    async def _report(self, report: Report) -> None:
        await self._recorder.record(
            report.regarding, report.reason, report.message, type=report.type, once=report.once
        )
