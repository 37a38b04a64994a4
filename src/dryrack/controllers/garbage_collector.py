"""
Garbage collection: delete objects that have lost all their owners.

Background: the owner is deleted first, then the dependents. Foreground: the owner waits until the
dependents that block it are deleted; in a circle of owners, one stops blocking. Orphan: the
dependents lose the owner, then the owner is deleted. An owner that is not in the graph is requested
from the server; only "not found" or another UID means that it is deleted.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from dryrack.client.discovery import Served, discover
from dryrack.client.endpoints import Endpoint
from dryrack.client.errors import ApiError, NotFoundError, TransportError
from dryrack.client.informer import Name, name_of
from dryrack.controllers.objects import finalizers_of, is_deleted, owners_of, uid_of
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, Delete, EngineContext, Patch, Plan, Write
from dryrack.kinds.raw import Raw

if TYPE_CHECKING:
    from dryrack.client.informer import Informer


_logger = logging.getLogger(__name__)


# The interval of discovery, as in kube-controller-manager.
DISCOVERY_SECONDS = 30.0

# While a kind is still being listed, a missing object means nothing.
UNSYNCED_SECONDS = 1.0

# A change of a definition starts discovery at once.
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"

# Events expire by themselves, and there are many.
IGNORED = frozenset({"events", "events.events.k8s.io"})

# More owners than are ever deleted at one time; forgetting one only costs a request.
ABSENT_MAX = 5000


class OwnerState(Enum):
    """The state of an owner."""

    SOLID = "solid"
    WAITING = "waiting"
    """The owner is being deleted and waits for its dependents."""
    GONE = "gone"
    UNKNOWN = "unknown"
    """The kind of the owner is not served."""


FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


@dataclass(frozen=True, slots=True)
class Item:
    """The parts of an object that the graph keeps."""

    endpoint: Endpoint
    name: Name
    uid: str
    revision: str
    owners: tuple[Raw, ...]
    finalizers: tuple[str, ...]
    is_deleted: bool

    @property
    def waits_for_dependents(self) -> bool:
        """True if it is deleted in the foreground, after its dependents."""
        return self.is_deleted and FOREGROUND in self.finalizers

    @property
    def orphans_dependents(self) -> bool:
        return self.is_deleted and ORPHAN in self.finalizers

    @property
    def blocks(self) -> bool:
        """True if the deletion of an owner in the foreground waits for it."""
        return any(owner.get("blockOwnerDeletion") for owner in self.owners)

    def is_blocking(self, owner: str) -> bool:
        """Return True if the deletion of that owner in the foreground waits for it."""
        return any(o["uid"] == owner and o.get("blockOwnerDeletion") for o in self.owners)


def plan(item: Item, states: Mapping[str, OwnerState], dependents: Sequence[Item]) -> Plan:
    """Return the writes for an object; `states` has the states of its owners by UID."""
    if item.orphans_dependents:
        if dependents:
            return Plan(tuple(_without_owners(each, [{"uid": item.uid}]) for each in dependents))
        return Plan((_without_finalizer(item, ORPHAN),))
    if item.waits_for_dependents:
        # Dependents that block the deletion are deleted first.
        if any(each.is_blocking(item.uid) for each in dependents):
            return NOTHING
        return Plan((_without_finalizer(item, FOREGROUND),))
    if item.is_deleted or not item.owners:
        return NOTHING
    lost = [
        each for each in item.owners if states[each["uid"]] in (OwnerState.GONE, OwnerState.WAITING)
    ]
    if len(lost) < len(item.owners):
        unclear = any(state is OwnerState.UNKNOWN for state in states.values())
        return NOTHING if unclear or not lost else Plan((_without_owners(item, lost),))
    is_awaited = any(states[each["uid"]] is OwnerState.WAITING for each in lost)
    if not (is_awaited and dependents):
        return Plan((_deletion(item, ""),))
    if item.blocks and any(each.waits_for_dependents for each in dependents):
        # The two may wait for each other, so this one stops blocking and is decided again.
        owners = [each | {"blockOwnerDeletion": False} for each in item.owners]
        return Plan((_metadata(item, ownerReferences=owners),))
    return Plan((_deletion(item, "Foreground"),))


def _deletion(item: Item, propagation: str) -> Write:
    if not propagation:
        policies = {ORPHAN: "Orphan", FOREGROUND: "Foreground"}
        propagation = next(
            (policies[each] for each in item.finalizers if each in policies), "Background"
        )
    return Delete(
        item.endpoint, item.name, item.uid, revision=item.revision, propagation=propagation
    )


def _without_owners(item: Item, lost: Sequence[Raw]) -> Write:
    uids = {each["uid"] for each in lost}
    left = [each for each in item.owners if each["uid"] not in uids]
    return _metadata(item, ownerReferences=left or None)


def _metadata(item: Item, **parts: Any) -> Write:
    identity = {"uid": item.uid, "resourceVersion": item.revision}
    return Patch(item.endpoint, item.name, {"metadata": identity | parts})


def _without_finalizer(item: Item, finalizer: str) -> Write:
    left = [each for each in item.finalizers if each != finalizer]
    return _metadata(item, finalizers=left or None)


class Collection(Reconciler[str]):
    """Watches all kinds that can be deleted."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "garbage-collector-controller", workers=8)
        self._graph = Graph()
        self._watched: dict[Endpoint, Informer] = {}
        self._kinds: dict[tuple[str, str], Endpoint] = {}
        self._absent: dict[str, None] = {}
        # Objects with an owner of a kind that is not served: decided again when other kinds are.
        self._served: tuple[Served, ...] = ()
        self._unresolved: dict[str, None] = {}
        self._kinds_changed = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep_watching(), name="garbage collector kinds")
            group.create_task(super().run(), name="garbage collector")

    async def _keep_watching(self) -> None:
        clock = self._context.clock
        while True:
            self._kinds_changed.clear()
            try:
                self._watch(await discover(self._context.client))
            except (ApiError, TransportError) as error:
                _logger.warning("garbage collector: discovery: %s", error)
            timer = clock.call_at(clock.now() + DISCOVERY_SECONDS, self._kinds_changed.set)
            try:
                await self._kinds_changed.wait()
            finally:
                timer.cancel()

    def _watch(self, served: tuple[Served, ...]) -> None:
        if served == self._served:
            return
        self._served = served
        wanted = {
            each.endpoint
            for each in served
            if each.allows("delete", "list", "watch") and each.endpoint.resource not in IGNORED
        }
        kinds = {(each.endpoint.group, each.endpoint.kind): each.endpoint for each in served}
        if kinds != self._kinds:
            self._kinds = kinds
            for uid in self._unresolved:
                self.queue.add(uid)
            self._unresolved.clear()
        for endpoint in sorted(self._watched.keys() - wanted, key=lambda each: each.resource):
            for obj in self._watched.pop(endpoint).all():
                self._graph.remove(uid_of(obj))
            self._context.informers.drop(endpoint)
        for endpoint in sorted(wanted - self._watched.keys(), key=lambda each: each.resource):
            informer = self._context.informers.of(endpoint)
            self._watched[endpoint] = informer
            informer.listen(partial(self._on_change, endpoint))

    def _on_change(self, endpoint: Endpoint, old: Raw | None, new: Raw | None) -> None:
        if endpoint not in self._watched:
            return
        if endpoint.resource == DEFINITIONS:
            self._kinds_changed.set()
        if new is None:
            self._on_removal(uid_of(old or {"metadata": {}}))
            return
        item = item_of(endpoint, new)
        before = self._graph.get(item.uid)
        self._graph.put(item)
        if before is not None and replace(before, revision=item.revision) == item:
            # Most writes change nothing that matters here.
            return
        for owner in before.owners if before else ():
            # An owner that orphans its dependents waits for the last of them.
            if owner not in item.owners:
                self.queue.add(owner["uid"])
        self._absent.pop(item.uid, None)
        if item.owners or item.is_deleted:
            self.queue.add(item.uid)
        if item.waits_for_dependents or item.orphans_dependents:
            for each in self._graph.dependents(item.uid):
                self.queue.add(each.uid)

    def _on_removal(self, uid: str) -> None:
        item = self._graph.get(uid)
        self._graph.remove(uid)
        self._unresolved.pop(uid, None)
        self._remember_absent(uid)
        for each in self._graph.dependents(uid):
            self.queue.add(each.uid)
        for owner in item.owners if item else ():
            self.queue.add(owner["uid"])

    def _remember_absent(self, uid: str) -> None:
        self._absent[uid] = None
        while len(self._absent) > ABSENT_MAX:
            del self._absent[next(iter(self._absent))]

    async def decide(self, uid: str) -> Plan:
        item = self._graph.get(uid)
        if item is None:
            return NOTHING
        if (item.orphans_dependents or item.waits_for_dependents) and not self._is_whole():
            return Plan(again_seconds=UNSYNCED_SECONDS)
        states = {each["uid"]: await self._owner_state(item, each) for each in item.owners}
        answer = plan(item, states, self._graph.dependents(uid))
        if OwnerState.UNKNOWN in states.values():
            self._unresolved[uid] = None
        if item.waits_for_dependents:
            for each in self._graph.dependents(uid):
                if not each.is_deleted:
                    self.queue.add(each.uid)
        return answer

    def _is_whole(self) -> bool:
        return bool(self._watched) and all(each.synced.is_set() for each in self._watched.values())

    async def _owner_state(self, item: Item, owner: Raw) -> OwnerState:
        known = self._graph.get(owner["uid"])
        if known is not None:
            return OwnerState.WAITING if known.waits_for_dependents else OwnerState.SOLID
        if owner["uid"] in self._absent:
            return OwnerState.GONE
        group = owner["apiVersion"].rpartition("/")[0]
        endpoint = self._kinds.get((group, owner["kind"]))
        if endpoint is None or (endpoint.is_namespaced and not item.name.namespace):
            return OwnerState.UNKNOWN
        namespace = item.name.namespace if endpoint.is_namespaced else ""
        try:
            found = await self._context.client.get(endpoint, owner["name"], namespace)
        except NotFoundError:
            found = None
        if found is not None and uid_of(found) == owner["uid"]:
            return OwnerState.SOLID
        self._remember_absent(owner["uid"])
        return OwnerState.GONE


def item_of(endpoint: Endpoint, obj: Raw) -> Item:
    return Item(
        endpoint,
        name_of(obj),
        uid_of(obj),
        str(obj["metadata"].get("resourceVersion", "")),
        tuple(owners_of(obj)),
        tuple(finalizers_of(obj)),
        is_deleted(obj),
    )


class Graph:
    """
    All objects of all watched kinds by UID, and the dependents of each.

    A missing owner is no proof that the owner does not exist: the server has to confirm it.
    """

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._dependents: dict[str, dict[str, None]] = {}

    def get(self, uid: str) -> Item | None:
        return self._items.get(uid)

    def dependents(self, uid: str) -> Sequence[Item]:
        """Return the items with that owner, whether or not the owner is known, by UID."""
        return [self._items[each] for each in sorted(self._dependents.get(uid, ()))]

    def put(self, item: Item) -> None:
        self.remove(item.uid)
        self._items[item.uid] = item
        for owner in item.owners:
            self._dependents.setdefault(owner["uid"], {})[item.uid] = None

    def remove(self, uid: str) -> None:
        item = self._items.pop(uid, None)
        for owner in item.owners if item else ():
            siblings = self._dependents.get(owner["uid"], {})
            siblings.pop(uid, None)
            if not siblings:
                self._dependents.pop(owner["uid"], None)
