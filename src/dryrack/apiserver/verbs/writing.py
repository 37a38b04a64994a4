"""
Creates and updates: from an object that a client sent to one that is stored.

The order of steps is that of the real server, because a refusal shows which step came first; see
`strategy` for the steps of a kind. Nothing here waits, so no other write happens between the read
of the stored object and the write.
"""

from collections.abc import Callable

import msgspec

from dryrack.apiserver import metadata
from dryrack.apiserver.answer.status import (
    Cause,
    Status,
    StatusError,
    Subject,
    already_exists,
    conflict,
    forbidden,
    invalid,
    not_found,
)
from dryrack.apiserver.extension_points import ExtensionPoints, Manager, StoreLookup
from dryrack.apiserver.http.queries import DEFAULT_WRITE, WriteOptions
from dryrack.apiserver.metadata import generate_name, timestamp
from dryrack.apiserver.registry import Resource
from dryrack.apiserver.strategy import Write
from dryrack.apiserver.verbs.selection import mark
from dryrack.apiserver.webhooks.admission_reviews import Reviews
from dryrack.base.limits import OBJECT_BYTES_MAX
from dryrack.base.ports import Chance, Clock
from dryrack.client.transport import User
from dryrack.kinds.paths import get, metadata_of
from dryrack.kinds.raw import Raw
from dryrack.kinds.validation.problems import invalid as invalid_value
from dryrack.kinds.validation.problems import required
from dryrack.store import Conflict, Key, Store, Stored

# As often as the real server tries another suffix when a generated name is taken.
_GENERATE_ATTEMPTS = 8
_MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
# An object of this size cannot exceed the limit with the additions of the server.
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
    """The length of the body: small objects are not measured."""
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
    The result of a write.

    `stored` is None after a dry run, and after the update that ended an object.
    """

    object: Raw
    stored: Stored | None
    is_new: bool = False


class Proposal(msgspec.Struct, frozen=True):
    """The object that an update proposes, and whether the update may create it."""

    object: Raw
    creates: bool = False
    is_managed: bool = False
    """Whether the object has the managedFields to store."""
    is_patch: bool = False
    """A patch of the uid is an invalid change; an update with another uid is a conflict."""


Change = Callable[[Raw | None], Proposal]


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
        """Return the circumstances of a write, for strategies and admission."""
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
        """Create a decoded object; `is_managed` if it has the managedFields to store."""
        write = self.context(order)
        resource = order.resource
        strategy = resource.strategy
        sent = metadata.for_create(obj, resource, order.namespace, write.warn)
        sent = strategy.default(sent, write)
        if resource.namespaced:
            check_namespace(self._store, resource, order.namespace, sent["metadata"].get("name"))
        admitted = self._admit(resource, sent, old=None, write=write)
        meta = admitted["metadata"]
        prefix = "" if meta.get("name") else meta.get("generateName") or ""
        for _ in range(_GENERATE_ATTEMPTS if prefix else 1):
            uid = self._chance.uuid()
            new_meta = {**meta, "uid": uid, "creationTimestamp": write.now}
            if prefix:
                new_meta["name"] = generate_name(prefix, self._chance)
            name = new_meta.get("name") or ""
            new = strategy.prepare_create({**admitted, "metadata": new_meta}, write)
            problems = strategy.rules.report(strategy.validate_create(new, write), new)
            if not name and not problems:
                problems = (required("metadata.name", "name or generateName is required"),)
            if problems:
                raise invalid(resource.as_kind, name, problems)
            before_write = self._approve(resource, new, old=None, write=write)
            if not is_managed:
                new = self._with_owners(order, new, sent, old=None, write=write)
            key = Key(resource.storage, order.namespace, new["metadata"]["name"])
            if write.dry_run:
                if self._store.get(key) is None:
                    return Written(_as_if_stored(resource, new), None, is_new=True)
                continue
            metadata.check_unversioned(new["metadata"])
            document = _to_storage(resource, new)
            if order.size > _SURELY_SMALL:
                _check_size(document)
            if before_write is not None and self._store.get(key) is None:
                before_write(self)
            stored = self._store.put(key, document, expected=0)
            if not isinstance(stored, Conflict):
                mark(resource, stored)
                return Written(resource.read(stored), stored, is_new=True)
        name = new["metadata"]["name"]
        raise already_exists(resource.as_resource, name, is_generated=bool(prefix))

    def update(self, order: Order, change: Change) -> Written:
        """Update an object to what `change` makes of the stored one (None: not stored)."""
        stored = self._store.get(order.key)
        if stored is not None:
            old = order.resource.read(stored)
            return self._replace(order, change(old), stored, old)
        proposal = change(None)
        if not proposal.creates:
            raise not_found(order.resource.as_resource, order.name)
        return self.create(order, proposal.object, is_managed=proposal.is_managed)

    def _replace(self, order: Order, proposal: Proposal, stored: Stored, old: Raw) -> Written:
        resource = order.resource
        strategy = resource.strategy
        _check_preconditions(order, proposal, stored)
        write = self.context(order)
        sent = metadata.for_update(proposal.object, resource, order.namespace)
        sent["metadata"]["resourceVersion"] = str(stored.revision)
        if "ownerReferences" in sent["metadata"]:
            metadata.drop_repeated_owners(sent["metadata"], write.warn)
        sent = strategy.default(sent, write)
        new = self._admit(resource, sent, old=old, write=write)
        new = strategy.prepare_update(metadata.with_stored_generation(new, old), old, write)
        new = metadata.with_stored_identity(new, old)
        problems = strategy.validate_update(new, old, write)
        if self._extensions.field_rights is not None:
            verb = "patch" if proposal.is_patch else "update"
            denied = self._extensions.field_rights(resource, new, old=old, write=write, verb=verb)
            problems = (*denied, *problems)
        problems = strategy.rules.report(problems, new, old)
        if problems:
            raise invalid(resource.as_kind, order.name, problems)
        before_write = self._approve(resource, new, old=old, write=write)
        if not proposal.is_managed:
            new = self._with_owners(order, new, sent, old=old, write=write)
        new = self._extensions.management.settle(old, new)
        if before_write is not None and not write.dry_run:
            before_write(self)
        if _ends(new, stored.object) and not strategy.is_held(new):
            # The answer is the object as the request left it, at the revision it had.
            if not write.dry_run:
                self._store.delete(stored.key, expected=stored.revision)
            return Written(new, None)
        if write.dry_run:
            return Written(_as_if_stored(resource, new), None)
        document = _to_storage(resource, new)
        if document == stored.object:
            return Written(resource.read(stored), stored)
        if order.size > _SURELY_SMALL:
            _check_size(document)
        written = self._store.put(stored.key, document, expected=stored.revision)
        assert isinstance(written, Stored), "no other write happens in between"
        mark(resource, written)
        return Written(resource.read(written), written)

    def _admit(self, resource: Resource, new: Raw, *, old: Raw | None, write: Write) -> Raw:
        """Run admission: RBAC escalation checks, the plugins of the kind, mutating webhooks."""
        if self._extensions.admission is not None:
            self._extensions.admission(resource, new, old=old, write=write)
        admitted = resource.strategy.admit(new, old, write)
        if self._extensions.mutation is None or write.shown is not None:
            return admitted
        return self._extensions.mutation(resource, admitted, old=old, write=write)

    def _approve(
        self, resource: Resource, new: Raw, *, old: Raw | None, write: Write
    ) -> Callable[["Writer"], None] | None:
        """Check a valid object; return a function to call just before the object is written."""
        resource.strategy.approve(new, old, write)
        if self._extensions.approval is None:
            return None
        return self._extensions.approval(resource, new, old=old, write=write)

    def _with_owners(
        self, order: Order, new: Raw, sent: Raw, *, old: Raw | None, write: Write
    ) -> Raw:
        """
        Return the object with managedFields for what was sent, before the server changed it.

        They are computed last, because a refused object needs none, and for a large object they
        take longer than all other steps.
        """
        meta = {key: value for key, value in new["metadata"].items() if key != "managedFields"}
        if not write.dry_run and order.size > _SURELY_SMALL:
            _check_size({**new, "metadata": meta})
        manager = Manager(order.manager, "Update", order.subresource, write.now)
        recorded = self._extensions.management.record(order.resource, sent, old, manager)
        owners = recorded["metadata"].get("managedFields")
        if owners:
            meta["managedFields"] = owners
        return {**new, "metadata": meta}


def check_namespace(store: Store, resource: Resource, namespace: str, name: str | None) -> None:
    """Raise if the namespace of a new object does not exist or terminates."""
    stored = store.get(Key("namespaces", "", namespace))
    if stored is None:
        raise not_found(Subject("", "namespaces"), namespace)
    if get(stored.object, "status.phase") != "Terminating":
        return
    detail = f"unable to create new content in namespace {namespace} because it is being terminated"
    status = forbidden(resource.as_resource, name or "", detail).status
    cause = Cause(
        "NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace"
    )
    details = {**(status.details or {}), "causes": [cause.to_raw()]}
    raise StatusError(Status(status.code, status.reason, status.message, details))


def _check_preconditions(order: Order, proposal: Proposal, stored: Stored) -> None:
    """Raise if the client has seen another object, or another revision of it."""
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
        problem = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid(order.resource.as_resource, order.name, (problem,))
    if revision and revision != stored.revision:
        raise conflict(order.resource.as_resource, order.name, _MODIFIED)


def _ends(new: Raw, old: Raw) -> bool:
    """Return whether an update removes the last finalizer of a deleted object."""
    meta = old["metadata"]
    if "deletionTimestamp" not in meta or new["metadata"].get("finalizers"):
        return False
    return not meta.get("deletionGracePeriodSeconds")


def _to_storage(resource: Resource, new: Raw) -> Raw:
    """Return an object to store, which can be read again in the version of the resource."""
    document = resource.strategy.to_storage(new)
    if resource.strategy.converts:
        # The answer shows the stored object, and a request that has written cannot start again
        # because a webhook has to be called.
        resource.strategy.from_storage(document)
    # Kind and apiVersion come first, so that a list can cut them off without decoding.
    return {"kind": document["kind"], "apiVersion": document["apiVersion"], **document}


def _as_if_stored(resource: Resource, new: Raw) -> Raw:
    """Return the object that a write would have stored, in the version of the resource."""
    return resource.strategy.from_storage(resource.strategy.to_storage(new))


def _check_size(obj: Raw) -> None:
    if len(Stored(Key("", "", ""), 0, obj).json) > OBJECT_BYTES_MAX:
        raise StatusError(Status(500, "", "etcdserver: request is too large"))
