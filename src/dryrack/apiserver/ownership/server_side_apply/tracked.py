"""What is written to, as far as owners are concerned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from dryrack.kinds.schemas import Schema

Object = dict[str, Any]


class Versions(Protocol):
    """The versions that a kind is served in."""

    def serves(self, api_version: str) -> bool:
        """Whether the kind is served in a version."""

    def schema(self, api_version: str) -> Schema | None:
        """The schema of the kind in a version that is served; None if it has none."""

    def convert(self, value: Object, api_version: str) -> Object:
        """The object in another version that is served."""


class Tracked(msgspec.Struct, frozen=True):
    """
    A kind in a version, or one of its subresources.

    `reset` are the fields that this endpoint never writes, whatever is sent, such as `status`
    at the main resource and `spec` at the status subresource; so nobody owns them by it.
    """

    api_version: str
    kind: str
    versions: Versions
    subresource: str = ""
    reset: tuple[tuple[str, ...], ...] = ()

    @property
    def schema(self) -> Schema | None:
        return self.versions.schema(self.api_version)
