"""
Where other parts of the server plug into the pipeline.

Each seam is a `Protocol` with few methods and a plain stand-in: what the server does when nobody
is there to do better. `ExtensionPoints` carries them all, so that the pipeline takes one argument.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from dryrack.apiserver.answer.status import not_implemented

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.apiserver.registry import Resource
    from dryrack.apiserver.request_context import Authorizer, Page
    from dryrack.apiserver.strategy import Write
    from dryrack.apiserver.verbs.writing import Writer
    from dryrack.apiserver.webhooks.admission_reviews import T, Unanswered, WebhookRequest
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.schemas.strict_decode import Conformed
    from dryrack.kinds.validation import FieldProblem


class Admission(Protocol):
    """Looks at an object before its strategy does, and raises a `StatusError` to refuse it."""

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
    Looks at an object that is prepared and valid, and raises a `StatusError` to refuse it.

    Answers with what else is to be written just before the object is, if there is anything.
    """

    def __call__(
        self, resource: Resource, new: Raw, *, old: Raw | None, write: Write
    ) -> Callable[[Writer], None] | None: ...


class FieldRights(Protocol):
    """
    Finds what an update changes and its writer may not, although he may write the object.

    What it finds is told with whatever else is wrong, and before it.
    """

    def __call__(
        self, resource: Resource, new: Raw, *, old: Raw, write: Write, verb: str
    ) -> Sequence[FieldProblem]: ...


class Posting(Protocol):
    """Admission of what is posted to a part of an object, as a Binding to a pod."""

    def is_needed(self) -> bool:
        """Whether there is anything to hold it against."""
        ...

    def admitted(self, resource: Resource, posted: Raw, write: Write) -> Raw:
        """What is posted, as webhooks leave it; raises a `StatusError` to refuse it."""
        ...


class DeletionApproval(Protocol):
    """Looks at an object that is to be deleted, and raises a `StatusError` to keep it."""

    def __call__(self, resource: Resource, old: Raw, write: Write) -> None: ...


class Shapes(Protocol):
    """
    Knows the fields of every kind: drops unknown ones, finds those of the wrong type.

    The object comes back as the real server's would from a decoder and an encoder: null is as
    good as absent, and what is empty is left out where the kind leaves it out.
    """

    def conform(self, resource: Resource, obj: Raw) -> Conformed: ...


@dataclass(frozen=True, slots=True)
class Manager:
    """Who changes fields, for managedFields."""

    name: str
    operation: str
    """`Update` or `Apply`."""
    subresource: str
    now: str


class FieldManagement(Protocol):
    """Keeps metadata.managedFields. Objects are in the version of `resource`."""

    def record(self, resource: Resource, new: Raw, old: Raw | None, manager: Manager) -> Raw:
        """
        The new object with its managedFields brought up to date.

        It is decoded and defaulted, but not yet admitted or prepared: what the server changes of
        its own accord is nobody's. What the client sent as managedFields is in `new`. `old` is
        None for a create. Not called for an apply.
        """
        ...

    def settle(self, old: Raw, new: Raw) -> Raw:
        """The prepared new object, with the times of the old one if they are all that differs."""
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

    `shown` is what a refusal shows of it if a strict request is refused; None for an apply, which
    is refused as an object is.
    """

    object: Raw
    strict: tuple[str, ...] = ()
    shown: Callable[[], str] | None = None


class Patching(Protocol):
    """
    All kinds of patches.

    Answers with the patched object, not yet defaulted: for an apply with managedFields as they
    shall be stored, for the others with managedFields as the patch left them (`record` follows).
    Raises a `StatusError` for a patch that cannot be read, does not fit or conflicts. `current`
    is None only for an apply that creates.
    """

    def media_types(self, resource: Resource) -> Sequence[str]:
        """What a patch of this resource may be, in the server's order."""
        ...

    def apply_patch(self, resource: Resource, current: Raw | None, patch: Patch) -> Patched: ...


class Tables(Protocol):
    """Objects as rows for people."""

    def columns(self, resource: Resource) -> list[Raw]:
        """columnDefinitions."""
        ...

    def cells(self, resource: Resource, obj: Raw, now: float) -> list[Any]:
        """The cells of one object, in the order of the columns."""
        ...

    def conditions(self, resource: Resource, obj: Raw) -> list[dict[str, str]]:
        """What a client may hide a row by: that a pod has completed."""
        ...


class NoShapes:
    """Takes every object as it is."""

    def conform(self, resource: Resource, obj: Raw) -> Conformed:
        from dryrack.kinds.schemas.strict_decode import Conformed

        return Conformed(obj)


class NoManagement:
    """Nobody keeps managedFields."""

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
    """Name and nothing else."""

    def columns(self, resource: Resource) -> list[Raw]:
        column = {"name": "Name", "type": "string", "format": "name", "description": ""}
        return [column | {"priority": 0}]

    def cells(self, resource: Resource, obj: Raw, now: float) -> list[Any]:
        return [obj["metadata"].get("name", "")]

    def conditions(self, resource: Resource, obj: Raw) -> list[dict[str, str]]:
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionPoints:
    """Everything that plugs in."""

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
