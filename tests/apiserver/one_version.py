"""A kind in one version, for tests of who owns its fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dryrack.kinds.schemas import Schema

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OneVersion:
    """A kind that is served in one version only."""

    api_version: str
    only: Schema | None

    def serves(self, api_version: str) -> bool:
        return api_version == self.api_version

    def schema(self, api_version: str) -> Schema | None:
        return self.only

    def convert(self, value: Object, api_version: str) -> Object:
        raise AssertionError(f"{self.api_version} has no other version, {api_version} was asked")
