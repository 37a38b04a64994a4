"""
The strategy of a kind: its part in creates, updates and deletions.

The pipeline does what is common to all kinds: metadata, revisions, finalizers, patches. A
`Strategy` adds defaults, immutable fields, validation, selectable fields and grace periods. Objects
are raw JSON in the version of the request's path; **they are never changed in place**: a method
returns the object that it was given, or a copy of the parts that it changes, because an object may
be stored and shared by every watcher.

The order of a create: `default`, `admit`, system metadata (uid, times, name), `prepare_create`,
`validate_create`, `approve`, managedFields. Of an update: `default`, `admit`, `prepare_update`,
metadata that cannot change put back, `validate_update`, `approve`, managedFields.
`Write.subresource` says which subresource is written; "" is the object itself.

Defaults and validation of a single object come from the kind's rules (`kinds.rules`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from dryrack.apiserver.answer.status import bad_request
from dryrack.apiserver.webhooks.admission_reviews import Reviews
from dryrack.base.ports import Chance
from dryrack.client.transport import User
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.paths import metadata_of
from dryrack.kinds.raw import Raw
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation import FieldProblem
from dryrack.kinds.validation.meta import common_metadata_change, metadata_change
from dryrack.store import Stored


class Lookup(Protocol):
    """Reads what is stored; `resource` is "plural.group", or the plural alone in the core group."""

    def get(self, resource: str, namespace: str, name: str) -> Raw | None: ...

    def list(self, resource: str, namespace: str | None) -> Sequence[Raw]: ...


class Write(msgspec.Struct, frozen=True):
    """The circumstances of a write."""

    now: str
    """The time, in the form of metadata (RFC 3339, seconds)."""
    user: User
    namespace: str
    subresource: str
    dry_run: bool
    chance: Chance
    lookup: Lookup
    warn: Callable[[str], None]
    """Adds a warning header to the response."""
    name: str = ""
    """As the path has it."""
    field_manager: str = ""
    """Who the request says that it is, if it says so."""
    shown: Callable[[Raw], Raw] | None = None
    """The object as admission sees it, if it is written by a part with a kind of its own."""
    reviews: Reviews | None = None
    """The answers of admission webhooks; None if none is asked about this write."""


class Strategy:
    """
    A kind with metadata and no behaviour of its own; other strategies derive from it.

    See the module's docstring for when each method is called.
    """

    creates_on_update: bool = False
    """Whether a PUT of an object that does not exist creates it."""
    updates_unconditionally: bool = True
    """Whether a PUT may leave out the resourceVersion."""
    orphans_by_default: bool = False
    """Whether a deletion without a propagation policy leaves the dependents alone."""
    selectable_fields: tuple[str, ...] = ()
    """What a field selector may name besides metadata.name and metadata.namespace."""
    field_refusal: str = ""
    """
    The message for a field that is not selectable, with `{label}` and `{gvk}`.

    "": as the server does it for a kind with no selectable fields of its own.
    """

    converts: bool = False
    """Whether objects of this version are converted by a webhook; see `ready_all`."""

    def __init__(self, rules: KindRules) -> None:
        self.rules = rules
        self.namespaced = rules.namespaced
        self.naming = rules.naming
        self.has_status = rules.has_status
        self.empty_status: Callable[[], Raw | None] = lambda: None
        """The status of a new object: built-in kinds always have one; asked for when needed."""
        self.notice = ""
        """A warning about every new object of the kind that is stored."""

    def default(self, obj: Raw, write: Write) -> Raw:
        return self.rules.default(obj)

    def admit(self, obj: Raw, old: Raw | None, write: Write) -> Raw:
        """Complete the object as admission plugins do, or raise a `StatusError`."""
        return obj

    def approve(self, obj: Raw, old: Raw | None, write: Write) -> None:
        """Raise a `StatusError` if an admission plugin refuses the prepared and valid object."""

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        """Reset the status, which only the status subresource writes."""
        if not self.has_status:
            return obj
        empty = self.empty_status()
        if empty is not None:
            return {**obj, "status": empty}
        return {key: value for key, value in obj.items() if key != "status"}

    def validate_create(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        found = self.rules.new_problems(obj, object_meta(obj))
        for warning in self.warnings(obj) if not found else ():
            write.warn(warning)
        if self.notice and not found and not write.dry_run:
            write.warn(self.notice)
        return found

    def warnings(self, obj: Raw) -> Iterable[str]:
        """Return warnings about a new object that is valid."""
        return ()

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        """The status subresource leaves the spec alone, and nothing else writes the status."""
        if not self.has_status:
            return obj
        if write.subresource == "status":
            return status_and_metadata(obj, old)
        return keep_status(obj, old)

    def validate_update(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        meta = object_meta(obj)
        before = object_meta(old)
        return [
            *common_metadata_change(
                meta, before, namespaced=self.namespaced, behaviour=self.rules.behaviour
            ),
            *metadata_change(meta, before, self.rules.behaviour),
            *self.change_problems(obj, old, write),
        ]

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        """Return the problems of an update; by default those of the new object."""
        return tuple(self.rules.problems(obj))

    def to_storage(self, obj: Raw) -> Raw:
        """Convert from the version of the path to the stored version."""
        return obj

    def from_storage(self, obj: Raw) -> Raw:
        return obj

    def read(self, stored: Stored) -> Raw:
        """Return a stored object in the version of the path."""
        return self.from_storage(stored.object)

    def read_metadata(self, stored: Stored) -> Raw:
        """Return a stored object of which only the metadata matters, even if it is not complete."""
        return self.read(stored)

    def ready_all(self, items: Iterable[Stored]) -> None:
        """Have a webhook convert objects at once; raises `ReviewNeededError` the first time."""

    def fields(self, obj: Raw) -> Mapping[str, str]:
        """The values of `selectable_fields`; one that is not set is ""."""
        return {path: field_text(obj, path) for path in self.selectable_fields}

    def grace_seconds(self, obj: Raw, requested: int | None) -> int | None:
        """
        Return the seconds that a deletion waits for confirmation.

        None: the kind has no grace period. 0: it has one, and nothing confirms this deletion; the
        object is marked before it is removed.
        """
        return None

    def prepare_delete(self, obj: Raw, write: Write) -> Raw:
        """Return the object as it changes when a deletion begins (metadata is set already)."""
        return obj

    def is_held(self, obj: Raw) -> bool:
        """Return whether something besides metadata.finalizers keeps a deleted object."""
        return False


def object_meta(obj: Raw) -> ObjectMeta:
    """Return the metadata as a model; raise a bad request if a value has the wrong type."""
    try:
        return decode(metadata_of(obj), ObjectMeta)
    except DecodeError as error:
        raise bad_request(f"metadata: {error}") from error


def keep_status(obj: Raw, old: Raw) -> Raw:
    """Return the object with the stored status."""
    if obj.get("status") == old.get("status"):
        return obj
    kept = {key: value for key, value in obj.items() if key != "status"}
    if "status" in old:
        kept["status"] = old["status"]
    return kept


# The metadata that a write to a subresource changes.
_META_OF_STATUS = ("resourceVersion", "managedFields", "uid", "name", "namespace")


def status_and_metadata(obj: Raw, old: Raw) -> Raw:
    """Return the stored object with the status and the metadata of the new one."""
    changed = {key: value for key, value in old.items() if key != "status"}
    changed["metadata"] = obj["metadata"]
    if "status" in obj:
        changed["status"] = obj["status"]
    return changed


def status_only(obj: Raw, old: Raw) -> Raw:
    """Return the stored object with the status of the new one."""
    changed = {key: value for key, value in part_only(obj, old).items() if key != "status"}
    if "status" in obj:
        changed["status"] = obj["status"]
    return changed


def part_only(obj: Raw, old: Raw) -> Raw:
    """Return the stored object with the metadata that a write to a subresource changes."""
    given = metadata_of(obj)
    kept = {key: value for key, value in old["metadata"].items() if key != "managedFields"}
    return {**old, "metadata": kept | {key: given[key] for key in _META_OF_STATUS if key in given}}


def field_text(obj: Raw, path: str) -> str:
    """Return the value at a dotted path, as a field selector compares it."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)
