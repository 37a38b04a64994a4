"""What the request pipeline calls on every write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from dryrack.apiserver.schemas import Schema

Object = dict[str, Any]


class Versions(Protocol):
    """The versions that a kind is served in."""

    def schema(self, api_version: str) -> Schema | None:
        """The schema of the kind in a version; None if it is not served in it."""

    def convert(self, value: Object, api_version: str) -> Object:
        """The object in another version in which it is served."""


@dataclass(frozen=True, slots=True)
class Tracked:
    """
    What is written to: a kind in a version, or one of its subresources.

    `reset` are the fields that this endpoint never writes, whatever is sent, such as `status`
    at the main resource and `spec` at the status subresource; so nobody owns them by it.
    """

    api_version: str
    kind: str
    versions: Versions
    subresource: str = ""
    reset: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ApplyConflicts:
    """An apply that would change what others own: a 409 with these causes."""

    message: str
    # Field and message of each cause, whose reason is FieldManagerConflict.
    causes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ApplyProblem:
    """Why an apply cannot be done at all, as the server's `Status` tells it."""

    code: int
    reason: str
    message: str


def managed_after_update(
    live: Object | None, new: Object, *, manager: str, now: str, tracked: Tracked
) -> Object:
    """
    The new object with `managedFields` as they are after a create, update or patch.

    To be called when the request is decoded and defaulted, before the strategy prepares it: what
    controllers and admission change afterwards is not the author's. `live` is None on create.
    `now` is RFC 3339 with seconds.
    """
    raise NotImplementedError


def applied(
    live: Object | None,
    configuration: Object,
    *,
    manager: str,
    force: bool,
    now: str,
    tracked: Tracked,
) -> Object | ApplyConflicts | ApplyProblem:
    """The live object with a configuration applied, not yet defaulted; `live` is None on create."""
    raise NotImplementedError


def keep_times(live: Object, new: Object) -> Object:
    """
    The new object, with the times of the live one if times are all that differ.

    To be called after the strategy has prepared an update: an apply that changes nothing must
    not make a new revision.
    """
    raise NotImplementedError


def manager_name(field_manager: str, user_agent: str) -> str:
    """Whom a write is ascribed to: who the request says, or else the program that sent it."""
    raise NotImplementedError
