"""
Creates and updates: from an object that a client sent to one that is stored.

The order of steps is that of the real server, because refusals show which came first; see
`strategy` for what a kind adds. Nothing here waits, so nobody else writes between the look at
what is stored and the write.
"""

from collections.abc import Callable

import msgspec

from dryrack.apiserver import metadata
from dryrack.apiserver.answer.status import (
    Status,
    StatusError,
    already_exists,
    conflict,
    invalid,
    not_found,
)
from dryrack.apiserver.extension_points import ExtensionPoints, Manager
from dryrack.apiserver.http.queries import DEFAULT_WRITE, WriteOptions
from dryrack.apiserver.lookup import StoreLookup
from dryrack.apiserver.names import generated, timestamp
from dryrack.apiserver.registry import Resource
from dryrack.apiserver.strategy import Write
from dryrack.apiserver.verbs import lifecycle
from dryrack.apiserver.verbs.selection import mark
from dryrack.apiserver.webhooks.admission_reviews import Reviews
from dryrack.base.limits import OBJECT_BYTES_MAX
from dryrack.base.ports import Chance, Clock
from dryrack.client.transport import User
from dryrack.kinds.paths import metadata_of
from dryrack.kinds.raw import Raw
from dryrack.kinds.validation.problems import invalid as invalid_value
from dryrack.kinds.validation.problems import required
from dryrack.store import Conflict, Key, Store, Stored

# As often as the real server tries another suffix when a generated name is taken.
_GENERATE_ATTEMPTS = 8
_MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
# Below this an object cannot exceed the limit, whatever the server adds to it.
_SURELY_SMALL = OBJECT_BYTES_MAX // 2


class Order(msgspec.Struct, frozen=True):
    """A write, as a request or a handler orders it."""

    resource: Resource
    namespace: str
    name: str
    user: User
    subresource: str = ""
    options: WriteOptions = DEFAULT_WRITE
    manager: str = ""
    size: int = 0
    """How large the body was: small ones are not measured."""
    warnings: list[str] = msgspec.field(default_factory=list)
    reviews: Reviews | None = None
    """The answers of admission webhooks; None if none is asked."""
    shown: Callable[[Raw], Raw] | None = None
    """The object as admission sees it, if it is written by a part with a kind of its own."""

    @property
    def key(self) -> Key:
        return Key(self.resource.storage, self.namespace, self.name)


class Written(msgspec.Struct, frozen=True):
    """
    What came of a write.

    `stored` is None if nothing was: of a dry run, and of the update that ended an object.
    """

    object: Raw
    stored: Stored | None
    is_new: bool = False


class Proposal(msgspec.Struct, frozen=True):
    """What an update would make of an object, and whether it may create it."""

    object: Raw
    creates: bool = False
    is_managed: bool = False
    is_patch: bool = False
    """A patch of the uid is a bad change; an update with another uid is of another object."""


Change = Callable[[Raw | None], Proposal]
Due = Callable[["Writer"], None] | None


class Writer:
    """Writes into a store."""

    def __init__(
        self, store: Store, extensions: ExtensionPoints, *, clock: Clock, chance: Chance
    ) -> None:
        self._store = store
        self._extensions = extensions
        self._clock = clock
        self._chance = chance
        self._lookup = StoreLookup(store)

    def context(self, order: Order) -> Write:
        """The circumstances, for a strategy."""
        return Write(
            now=timestamp(self._clock.now()),
            user=order.user,
            namespace=order.namespace,
            subresource=order.subresource,
            dry_run=order.options.dry_run,
            chance=self._chance,
            lookup=self._lookup,
            warn=order.warnings.append,
            name=order.name,
            field_manager=order.options.field_manager,
            reviews=order.reviews,
            shown=order.shown,
        )

    def create(self, order: Order, obj: Raw, *, is_managed: bool = False) -> Written:
        """Creates a decoded object; `is_managed` if its managedFields are done already."""
        write = self.context(order)
        resource = order.resource
        strategy = resource.strategy
        new = metadata.for_create(obj, resource, order.namespace)
        if metadata.revision_of(new["metadata"]):
            message = "resourceVersion should not be set on objects to be created"
            raise StatusError(Status(500, "", message))
        new = metadata.without_repeated_owners(new, write.warn)
        new = strategy.default(new, write)
        if resource.namespaced:
            name = new["metadata"].get("name") or ""
            lifecycle.check_namespace(self._store, resource, order.namespace, name)
        admitted = self._admitted(resource, new, old=None, write=write)
        return self._insert(order, admitted, write, sent=None if is_managed else new)

    def _admitted(self, resource: Resource, new: Raw, *, old: Raw | None, write: Write) -> Raw:
        if self._extensions.admission is not None:
            self._extensions.admission(resource, new, old=old, write=write)
        admitted = resource.strategy.admit(new, old, write)
        if self._extensions.mutation is None or write.shown is not None:
            return admitted
        return self._extensions.mutation(resource, admitted, old=old, write=write)

    def _insert(self, order: Order, admitted: Raw, write: Write, *, sent: Raw | None) -> Written:
        resource = order.resource
        prefix = admitted["metadata"].get("generateName") or ""
        is_generated = bool(prefix) and not admitted["metadata"].get("name")
        for _ in range(_GENERATE_ATTEMPTS):
            new = self._completed(admitted, resource, write)
            due = self._approved(resource, new, old=None, write=write)
            made = self._stored(order, self._owned(order, new, sent, old=None, write=write), due)
            if made is not None:
                return made
            if not is_generated:
                break
        raise self._taken(resource, new["metadata"]["name"], is_generated=is_generated)

    def _completed(self, admitted: Raw, resource: Resource, write: Write) -> Raw:
        """With what only the server knows, and found to be valid."""
        meta = {**admitted["metadata"], "uid": self._chance.uuid(), "creationTimestamp": write.now}
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = generated(meta["generateName"], self._chance)
        new = resource.strategy.prepare_create({**admitted, "metadata": meta}, write)
        name = meta.get("name") or ""
        problems = resource.strategy.validate_create(new, write)
        if not name and not problems:
            problems = (required("metadata.name", "name or generateName is required"),)
        if problems:
            raise invalid(resource.as_kind, name, problems)
        return new

    def _approved(self, resource: Resource, new: Raw, *, old: Raw | None, write: Write) -> Due:
        """What is due when the object is written, if it may be."""
        resource.strategy.approve(new, old, write)
        if self._extensions.approval is None:
            return None
        return self._extensions.approval(resource, new, old=old, write=write)

    def approve_deletion(self, order: Order, old: Raw, write: Write) -> None:
        """Raises if an object may not be deleted; an eviction is judged by itself."""
        if self._extensions.deletion is not None and not order.subresource:
            self._extensions.deletion(order.resource, old, write)

    def _owned(
        self, order: Order, new: Raw, sent: Raw | None, *, old: Raw | None, write: Write
    ) -> Raw:
        """
        With its owners as of what was sent, before the server changed it.

        They are worked out last, because nobody owns what is refused, and who owns a large object
        takes longer to say than anything else about it.
        """
        if sent is None:
            return new
        meta = {key: value for key, value in new["metadata"].items() if key != "managedFields"}
        if not write.dry_run:
            _measured({**new, "metadata": meta}, order.size)
        manager = Manager(order.manager, "Update", order.subresource, write.now)
        recorded = self._extensions.management.record(order.resource, sent, old, manager)
        owners = recorded["metadata"].get("managedFields")
        return {**new, "metadata": meta | ({"managedFields": owners} if owners else {})}

    def _stored(self, order: Order, new: Raw, due: Due) -> Written | None:
        """None if the name is taken."""
        resource = order.resource
        key = Key(resource.storage, order.namespace, new["metadata"]["name"])
        if order.options.dry_run:
            taken = self._store.get(key) is not None
            return None if taken else Written(_as_if_stored(resource, new), None, is_new=True)
        kept = _measured(_ordered(_to_storage(resource, new)), order.size)
        if due is not None and self._store.get(key) is None:
            due(self)
        stored = self._store.put(key, kept, expected=0)
        if isinstance(stored, Conflict):
            return None
        mark(resource, stored)
        return Written(served(resource, stored), stored, is_new=True)

    def _taken(self, resource: Resource, name: str, *, is_generated: bool) -> StatusError:
        error = already_exists(resource.as_resource, name)
        if not is_generated:
            return error
        message = f"{error.status.message}, the server was not able to generate a unique name"
        message += " for the object"
        details = {**(error.status.details or {}), "retryAfterSeconds": 1}
        return StatusError(Status(409, "AlreadyExists", message, details, retry_after_seconds=1))

    def update(self, order: Order, change: Change) -> Written:
        """Updates by what `change` makes of the stored object (None: there is none)."""
        resource = order.resource
        stored = self._store.get(order.key)
        if stored is None:
            proposal = change(None)
            if not proposal.creates:
                raise not_found(resource.as_resource, order.name)
            return self.create(order, proposal.object, is_managed=proposal.is_managed)
        old = served(resource, stored)
        proposal = change(old)
        self._check_preconditions(order, proposal, stored)
        return self._replace(order, proposal, stored)

    def _check_preconditions(self, order: Order, proposal: Proposal, stored: Stored) -> None:
        meta = metadata_of(proposal.object)
        uid = meta.get("uid")
        stored_uid = stored.object["metadata"].get("uid")
        if uid and uid != stored_uid and not proposal.is_patch:
            path = metadata.registry_path(order.resource, order.namespace, order.name)
            detail = (
                f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, "
                f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
                f"UID in object meta: {stored_uid}"
            )
            raise conflict(order.resource.as_resource, order.name, detail)
        revision = metadata.revision_of(meta)
        if not revision and not order.resource.strategy.updates_unconditionally:
            problem = invalid_value(
                "metadata.resourceVersion", 0, "must be specified for an update"
            )
            raise invalid(order.resource.as_resource, order.name, (problem,))
        if revision and revision != stored.revision:
            raise conflict(order.resource.as_resource, order.name, _MODIFIED)

    def _replace(self, order: Order, proposal: Proposal, stored: Stored) -> Written:
        resource = order.resource
        write = self.context(order)
        strategy = resource.strategy
        old = served(resource, stored)
        new = metadata.for_update(proposal.object, resource, order.namespace)
        new["metadata"]["resourceVersion"] = str(stored.revision)
        new = metadata.without_repeated_owners(new, write.warn)
        sent = new = strategy.default(new, write)
        new = self._admitted(resource, new, old=old, write=write)
        new = strategy.prepare_update(metadata.with_generation(new, old), old, write)
        new = metadata.restored(new, old)
        problems = strategy.validate_update(new, old, write)
        if self._extensions.field_rights is not None:
            verb = "patch" if proposal.is_patch else "update"
            denied = self._extensions.field_rights(resource, new, old=old, write=write, verb=verb)
            problems = (*denied, *problems)
        if problems:
            raise invalid(resource.as_kind, order.name, problems)
        due = self._approved(resource, new, old=old, write=write)
        known = None if proposal.is_managed else sent
        new = self._owned(order, new, known, old=old, write=write)
        new = self._extensions.management.settle(old, new)
        if due is not None and not order.options.dry_run:
            due(self)
        return self._put(order, new, stored)

    def _put(self, order: Order, new: Raw, stored: Stored) -> Written:
        strategy = order.resource.strategy
        if _ends(new, stored.object) and not strategy.is_held(new):
            # The answer is the object as the request left it, at the revision it had.
            if not order.options.dry_run:
                self._store.delete(stored.key, expected=stored.revision)
            return Written(new, None)
        if order.options.dry_run:
            return Written(_as_if_stored(order.resource, new), None)
        kept = _ordered(_to_storage(order.resource, new))
        if kept == stored.object:
            return Written(served(order.resource, stored), stored)
        written = self._store.put(stored.key, _measured(kept, order.size), expected=stored.revision)
        assert isinstance(written, Stored), "no other write happens in between"
        mark(order.resource, written)
        return Written(served(order.resource, written), written)


def served(resource: Resource, stored: Stored) -> Raw:
    """A stored object in the version of a resource."""
    return resource.read(stored)


def _to_storage(resource: Resource, new: Raw) -> Raw:
    """Return an object to store, which can be read again in the version of the resource."""
    kept = resource.strategy.to_storage(new)
    if resource.strategy.converts:
        # The answer shows the stored object, and a request that has written cannot start again
        # because a webhook has to be called.
        resource.strategy.from_storage(kept)
    return kept


def _as_if_stored(resource: Resource, new: Raw) -> Raw:
    """What a dry run would have stored, as it would be read."""
    return resource.strategy.from_storage(resource.strategy.to_storage(new))


def _ends(new: Raw, old: Raw) -> bool:
    """Whether an update takes away the last thing that kept a deleted object."""
    before = old["metadata"]
    if "deletionTimestamp" not in before or new["metadata"].get("finalizers"):
        return False
    return not before.get("deletionGracePeriodSeconds")


def _ordered(obj: Raw) -> Raw:
    """With kind and apiVersion first: items of a list are told without them."""
    kind = obj["kind"]
    version = obj["apiVersion"]
    return {"kind": kind, "apiVersion": version, **obj}


def _measured(obj: Raw, body_bytes: int) -> Raw:
    if body_bytes > _SURELY_SMALL and len(Stored(Key("", "", ""), 0, obj).json) > OBJECT_BYTES_MAX:
        raise StatusError(Status(500, "", "etcdserver: request is too large"))
    return obj
