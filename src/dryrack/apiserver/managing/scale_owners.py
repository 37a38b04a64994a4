"""
Who owns the number of replicas, told of a scale and told of what it scales.

A scale is written by owners of its own one field; what it scales keeps them, at the place where
its number stands. Going there and back the server loses the time of those who are new, and takes
an update in the scale's version for another author than one in its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.managing import fieldsets
from dryrack.apiserver.managing.entries import Managed, ManagedFieldsError, Owned, decode, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

Raw = dict[str, Any]

SCALE_VERSION = "autoscaling/v1"
_REPLICAS = ("f:spec", "f:replicas")


@dataclass(frozen=True, slots=True)
class ScaleOwners:
    """The owners of an object that is scaled."""

    managed: Managed
    api_version: str
    path: fieldsets.Path

    @staticmethod
    def of(obj: Raw, path: Sequence[str]) -> ScaleOwners:
        """Of an object whose number of replicas stands at a path."""
        try:
            managed = decode(obj["metadata"].get("managedFields"))
        except ManagedFieldsError:
            managed = {}
        return ScaleOwners(managed, obj["apiVersion"], tuple(f"f:{name}" for name in path))

    def of_scale(self) -> list[Raw]:
        """The entries of those who own the number."""
        fields = fieldsets.of_paths([_REPLICAS])
        return encode(
            {
                author: Owned(fields, SCALE_VERSION, owned.time)
                for author, owned in self.managed.items()
                if self._is_known(owned) and fieldsets.has(owned.fields, self.path)
            }
        )

    def with_scale(self, entries: Any) -> list[Raw]:
        """All entries, after a scale with these was written."""
        written = {
            author: owned
            for author, owned in decode(entries).items()
            if fieldsets.has(owned.fields, _REPLICAS)
        }
        mine = fieldsets.of_paths([self.path])
        made: Managed = {}
        for author, owned in self.managed.items():
            if not self._is_known(owned):
                continue
            left = owned.fields
            if author not in written:
                left = fieldsets.difference(left, mine)
            if left:
                made[author] = owned if left == owned.fields else owned.with_fields(left)
        for author in written:
            made.setdefault(author, Owned(mine, self.api_version))
        return encode(made)

    def _is_known(self, owned: Owned) -> bool:
        return owned.api_version.rpartition("/")[0] == self.api_version.rpartition("/")[0]
