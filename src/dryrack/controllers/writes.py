"""
Writes as values, and the executor that carries them out.

A plan has values such as `Create`, `Patch` and `Delete`; it never calls a cluster. `WriteExecutor`
carries writes out in order, and then waits until the caches have seen them, so the next plan never
lacks the writes of the last one. The first refusal ends a plan; the rest is planned again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

from dryrack.base.metrics import Registry
from dryrack.base.ports import Chance
from dryrack.client.client import MERGE_PATCH, Client, Selection
from dryrack.client.endpoints import PODS, Endpoint
from dryrack.client.errors import ApiError, NotFoundError
from dryrack.client.events import EventRecorder
from dryrack.client.informer import Informers, Name, name_of
from dryrack.client.timekeeping import Timekeeper, sleep
from dryrack.controllers.pods.virtual import is_played
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.releases import (
    CONTROLLERS,
    DEFAULT_RELEASE,
    ControllerBehaviour,
    FeatureSet,
    Release,
)

if TYPE_CHECKING:
    from dryrack.controllers.containers.sandboxes import Sandboxes
    from dryrack.controllers.pods.drivers import Drivers

CacheWait = Callable[[], Awaitable[None]]
"""Waits until a cache has seen a write."""

_logger = logging.getLogger(__name__)

# A cache that lags more than this has lost its watch. Planning with it is better than waiting: the
# server refuses writes that do not fit its state.
CATCH_UP_SECONDS_MAX = 10.0


@dataclass(frozen=True, slots=True)
class Create:
    """
    Create an object.

    An event reports the result. "{}" in its message is replaced: in `accepted` by the name of the
    object, in `refused` by the error.
    """

    endpoint: Endpoint
    object: Raw
    refused: "Report | None" = None
    accepted: "Report | None" = None


@dataclass(frozen=True, slots=True)
class Update:
    """Update an object at the revision that was read, or that the same plan wrote."""

    endpoint: Endpoint
    object: Raw
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Patch:
    """Patch an object; `patch` has a UID or a resourceVersion if it is for that object only."""

    endpoint: Endpoint
    name: Name
    patch: Any
    subresource: str = ""
    media_type: str = MERGE_PATCH


@dataclass(frozen=True, slots=True)
class Apply:
    """Apply fields as a field manager, and take them from other managers."""

    endpoint: Endpoint
    object: Raw
    manager: str
    subresource: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the object with that UID."""

    endpoint: Endpoint
    name: Name
    uid: str
    revision: str = ""
    grace_seconds: int | None = None
    propagation: str = ""


@dataclass(frozen=True, slots=True)
class Evict:
    """Delete the pod with that UID, unless a PodDisruptionBudget forbids it."""

    name: Name
    uid: str


@dataclass(frozen=True, slots=True)
class DeleteAll:
    """Delete all objects of a kind in a namespace."""

    endpoint: Endpoint
    namespace: str


@dataclass(frozen=True, slots=True)
class Report:
    """Write an event; losing one is no failure."""

    regarding: Raw
    type: str
    reason: str
    message: str
    once: str = ""
    """Events about one object with the same text here are one event."""


def without_finalizer(endpoint: Endpoint, obj: Raw, finalizer: str) -> Patch:
    """Remove one finalizer of an object."""
    metadata = obj["metadata"]
    left = [each for each in get(metadata, "finalizers", ()) if each != finalizer]
    patch = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    return Patch(endpoint, name_of(obj), {"metadata": patch | {"finalizers": left or None}})


Write = Create | Update | Patch | Apply | Delete | Evict | DeleteAll | Report


@dataclass(frozen=True, slots=True)
class Plan:
    """The writes of a decision, and the seconds until the next one even without changes."""

    writes: tuple[Write, ...] = ()
    again_seconds: float | None = None


NOTHING = Plan()


@dataclass(frozen=True, slots=True)
class EngineContext:
    """Everything that an engine needs."""

    client: Client
    informers: Informers
    clock: Timekeeper
    chance: Chance
    authority: str = ""
    """The certificates with which pods verify the server, in PEM, or ""."""
    metrics: Registry | None = None
    """The registry for metrics, if there are any."""
    drivers: "Drivers | None" = None
    """The drivers of virtual nodes; None: every allocated claim is ready."""
    sandboxes: "Sandboxes | None" = None
    """Runs the containers of virtual nodes; the API server reads their output."""
    node_lease_seconds: int = 0
    """The duration of leases of virtual nodes; 0: as for a kubelet."""
    release: Release = DEFAULT_RELEASE
    """The release whose controllers the engines reproduce."""

    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    """The feature gates that are not at the default of the release."""

    kubelets: Callable[[Raw], bool] | None = None
    """Selects the nodes whose kubelets run in this process; None: all virtual nodes."""
    reads_configuration: bool = True
    """False: pods start without the ConfigMaps and Secrets that they name."""

    def plays(self, node: Raw | None) -> bool:
        """Return True if the kubelet of a node runs in this process."""
        if self.kubelets is None:
            return is_played(node)
        return node is not None and self.kubelets(node)

    @property
    def behaviour(self) -> ControllerBehaviour:
        return CONTROLLERS[self.release]

    @property
    def features(self) -> FeatureSet:
        return FeatureSet(self.release, self.feature_gates)


Revisions = dict[tuple[Endpoint, Name], str]


def _at(obj: Raw, revision: str | None) -> Raw:
    if revision is None:
        return obj
    return obj | {"metadata": obj["metadata"] | {"resourceVersion": revision}}


class WriteExecutor:
    """Carries out the writes of a component."""

    def __init__(self, context: EngineContext, component: str) -> None:
        self._context = context
        self._component = component
        self._recorder = EventRecorder(context.client, context.clock, context.chance, component)

    async def carry_out(self, writes: Sequence[Write]) -> Sequence[Raw | None]:
        """
        Carry out all writes in order, and wait until the caches have seen them.

        Return the stored object of each write; None for a write that stores none.
        """
        revisions: Revisions = {}
        results = [await self._carry_out(write, revisions) for write in writes]
        waits = [wait for _, wait in results if wait]
        if waits:
            await self._catch_up(waits)
        return [stored for stored, _ in results]

    async def _catch_up(self, waits: Sequence[CacheWait]) -> None:
        async def all_seen() -> None:
            for each in waits:
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
    ) -> tuple[Raw | None, CacheWait | None]:
        if isinstance(write, Report):
            await self._report(write)
            return None, None
        if isinstance(write, Delete):
            return None, await self._delete(write)
        if isinstance(write, Evict):
            await self._evict(write)
            return None, None
        if isinstance(write, DeleteAll):
            selection = Selection(namespace=write.namespace)
            await self._context.client.delete_collection(write.endpoint, selection)
            return None, None
        stored = await self._store(write, revisions)
        revision = stored["metadata"]["resourceVersion"]
        revisions[write.endpoint, name_of(stored)] = revision
        informer = self._context.informers.find_existing(write.endpoint)
        return stored, partial(informer.wait_for_revision, revision) if informer else None

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

    async def _delete(self, write: Delete) -> CacheWait | None:
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
        informer = self._context.informers.find_existing(write.endpoint)
        return partial(informer.wait_for_deletion, write.name, write.uid) if informer else None

    async def _evict(self, write: Evict) -> None:
        metadata = {"namespace": write.name.namespace, "name": write.name.name}
        eviction = {
            "kind": "Eviction",
            "apiVersion": "policy/v1",
            "metadata": metadata,
            "deleteOptions": {"preconditions": {"uid": write.uid}},
        }
        with suppress(NotFoundError):
            await self._context.client.create(PODS, eviction, subresource="eviction")

    async def _report(self, report: Report) -> None:
        await self._recorder.record(
            report.regarding, report.reason, report.message, type=report.type, once=report.once
        )
