"""
The extension points of the pipeline, and the call that handlers and pages receive.

Each extension point is a `Protocol` with few methods. A plain default does what a server does
without the extension. `ExtensionPoints` carries them all, so that the pipeline takes one argument.

`Call.server` is the way back into the pipeline, for a handler that reads or writes other objects
under the usual rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from dryrack.apiserver.answer.status import Status, Success, not_implemented
from dryrack.client.transport import Request, Response
from dryrack.store import Key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from dryrack.apiserver.registry import Resource
    from dryrack.apiserver.server import ApiServer
    from dryrack.apiserver.strategy import Write
    from dryrack.apiserver.verbs.writing import Writer
    from dryrack.apiserver.webhooks.admission_reviews import (
        Reviews,
        T,
        Unanswered,
        WebhookRequest,
    )
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.schemas.strict_decode import Conformed
    from dryrack.kinds.validation import FieldProblem
    from dryrack.store import Store


class Target(msgspec.Struct, frozen=True):
    """
    The resource, object or subresource that a path names.

    `name` is "" for a collection; `subresource` is "" for a collection or a whole object.
    """

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    """The part of the path after the subresource, as for proxies."""


class Call(msgspec.Struct, frozen=True):
    """A request, its target and its options."""

    server: ApiServer
    request: Request
    verb: str
    target: Target
    parameters: Mapping[str, list[str]]
    warnings: list[str] = msgspec.field(default_factory=list)
    """Handlers add to it; each becomes a header of the response."""
    reviews: Reviews | None = None
    """The answers of admission webhooks; None if there are no webhooks."""

    def parameter(self, name: str) -> str:
        """Return the first value of a query parameter, or ""."""
        values = self.parameters.get(name)
        return values[0] if values else ""


class Reply(msgspec.Struct, frozen=True):
    """An object for an answer; the server writes it in the form that the client accepts."""

    object: Raw
    code: int = 200


Answer = Reply | Status | Success | Response


class Page(Protocol):
    """Serves paths that belong to no resource; returns None for a path of another page."""

    def __call__(self, request: Request) -> Awaitable[Response | None]: ...


Authorizer = Callable[[Call], "str | None"]
"""Returns why a call is forbidden, or None if it is allowed."""


class StoreLookup:
    """Reads of other objects, for strategies and handlers."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, resource: str, namespace: str, name: str) -> Raw | None:
        stored = self._store.get(Key(resource, namespace, name))
        return stored.object if stored else None

    def list(self, resource: str, namespace: str | None) -> tuple[Raw, ...]:
        return tuple([each.object for each in self._store.list(resource, namespace)[0]])


class Admission(Protocol):
    """Checks an object before its strategy does; raises a `StatusError` to refuse it."""

    def __call__(self, resource: Resource, new: Raw, *, old: Raw | None, write: Write) -> None: ...


class Mutation(Protocol):
    """Changes an admitted object, or raises a `StatusError` to refuse it."""

    def __call__(self, resource: Resource, new: Raw, *, old: Raw | None, write: Write) -> Raw: ...


class WebhookCaller(Protocol):
    """Calls admission and conversion webhooks."""

    def are_there(self) -> bool:
        """Return whether any admission webhook is registered."""
        ...

    async def ask(self, question: WebhookRequest[T]) -> T | Unanswered: ...


class Approval(Protocol):
    """
    Checks an object that is prepared and valid; raises a `StatusError` to refuse it.

    Returns a function to call just before the object is written, or None.
    """

    def __call__(
        self, resource: Resource, new: Raw, *, old: Raw | None, write: Write
    ) -> Callable[[Writer], None] | None: ...


class FieldRights(Protocol):
    """
    Finds changes of fields for which the writer needs a permission that they do not have.

    The problems come first in the refusal, before those of validation.
    """

    def __call__(
        self, resource: Resource, new: Raw, *, old: Raw, write: Write, verb: str
    ) -> Sequence[FieldProblem]: ...


class Posting(Protocol):
    """Admission of an object that is posted to a subresource, such as a Binding to a pod."""

    def is_needed(self) -> bool:
        """Return whether any policy or webhook is registered."""
        ...

    def admit(self, resource: Resource, posted: Raw, write: Write) -> Raw:
        """Return the object as webhooks leave it; raise a `StatusError` to refuse it."""
        ...


class DeletionApproval(Protocol):
    """Checks a deletion; raises a `StatusError` to refuse it."""

    def __call__(self, resource: Resource, old: Raw, write: Write) -> None: ...


class Shapes(Protocol):
    """
    Knows the fields of every kind: drops unknown ones, finds those of the wrong type.

    It returns the object as the real server's decoder and encoder do: null counts as absent, and
    empty fields are left out where the kind leaves them out.
    """

    def conform(self, resource: Resource, obj: Raw) -> Conformed: ...


@dataclass(frozen=True, slots=True)
class Manager:
    """The manager of fields, for managedFields."""

    name: str
    operation: str
    """`Update` or `Apply`."""
    subresource: str
    now: str


class FieldManagement(Protocol):
    """Keeps metadata.managedFields. Objects are in the version of `resource`."""

    def record(self, resource: Resource, new: Raw, old: Raw | None, manager: Manager) -> Raw:
        """
        Return the new object with its managedFields brought up to date.

        `new` is decoded and defaulted, but not yet admitted or prepared, because changes of the
        server belong to no manager. It has the managedFields that the client sent. `old` is None
        for a create. Not called for an apply.
        """
        ...

    def settle(self, old: Raw, new: Raw) -> Raw:
        """Return the prepared object; with the old times if nothing else differs."""
        ...


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch as it was sent."""

    media_type: str
    """Without parameters: `application/merge-patch+json`."""
    body: bytes
    manager: Manager
    force: bool
    """Whether an apply takes fields from other managers."""


@dataclass(frozen=True, slots=True)
class Patched:
    """
    The object with a patch applied; `strict` are complaints about the patch itself.

    `shown` returns the text that the refusal of a strict request shows. It is None for an apply,
    which is refused as an object is.
    """

    object: Raw
    strict: tuple[str, ...] = ()
    shown: Callable[[], str] | None = None
    strict_text: str = ""
    """Precedes the first of `strict` if a strict apply is refused."""


class Patching(Protocol):
    """
    All kinds of patches.

    The patched object is not yet defaulted. An apply returns the managedFields to store; the other
    patches return managedFields as the patch left them (`record` follows). Raises a `StatusError`
    for a patch that cannot be read, does not fit or conflicts. `current` is None only for an apply
    that creates.
    """

    def media_types(self, resource: Resource) -> Sequence[str]:
        """Return the media types of a patch of this resource, in the server's order."""
        ...

    def apply_patch(self, resource: Resource, current: Raw | None, patch: Patch) -> Patched: ...


class Tables(Protocol):
    """Objects as rows for people."""

    def columns(self, resource: Resource) -> list[Raw]:
        """Return columnDefinitions."""
        ...

    def cells(
        self, resource: Resource, objects: Sequence[Raw], now: float, *, is_list: bool
    ) -> list[list[Any]]:
        """Return the cells of each object, in the order of the columns."""
        ...

    def conditions(self, resource: Resource, obj: Raw) -> list[dict[str, str]]:
        """Return conditions by which a client may hide a row, such as Completed for a pod."""
        ...


class NoShapes:
    """Takes every object as it is."""

    def conform(self, resource: Resource, obj: Raw) -> Conformed:
        from dryrack.kinds.schemas.strict_decode import Conformed

        return Conformed(obj)


class NoManagement:
    """Leaves managedFields as they are."""

    def record(self, resource: Resource, new: Raw, old: Raw | None, manager: Manager) -> Raw:
        return new

    def settle(self, old: Raw, new: Raw) -> Raw:
        return new


class NoPatching:
    """Refuses every patch."""

    def media_types(self, resource: Resource) -> Sequence[str]:
        return ()

    def apply_patch(self, resource: Resource, current: Raw | None, patch: Patch) -> Patched:
        raise not_implemented("this server was built without patches")


class NameTables:
    """Tables with the name as the only column."""

    def columns(self, resource: Resource) -> list[Raw]:
        column = {"name": "Name", "type": "string", "format": "name", "description": ""}
        return [column | {"priority": 0}]

    def cells(
        self, resource: Resource, objects: Sequence[Raw], now: float, *, is_list: bool
    ) -> list[list[Any]]:
        return [[obj["metadata"].get("name", "")] for obj in objects]

    def conditions(self, resource: Resource, obj: Raw) -> list[dict[str, str]]:
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionPoints:
    """The extensions of one server."""

    shapes: Shapes = field(default_factory=NoShapes)
    management: FieldManagement = field(default_factory=NoManagement)
    patching: Patching = field(default_factory=NoPatching)
    tables: Tables = field(default_factory=NameTables)
    pages: Sequence[Page] = ()
    authorizer: Authorizer | None = None
    admission: Admission | None = None
    mutation: Mutation | None = None
    webhooks: WebhookCaller | None = None
    field_rights: FieldRights | None = None
    approval: Approval | None = None
    deletion: DeletionApproval | None = None
    posting: Posting | None = None
