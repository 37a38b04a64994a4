"""`managedFields` as entries by author, and back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.ownership.server_side_apply import fieldsets
from dryrack.kinds.paths import get
from dryrack.kinds.text.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.apiserver.ownership.server_side_apply.fieldsets import FieldSet

APPLY = "Apply"
UPDATE = "Update"
_UPDATERS_MAX = 10
_BUCKET = "ancient-changes"


class ManagedFieldsError(ValueError):
    """`managedFields` that cannot be read."""


@dataclass(frozen=True, slots=True)
class Author:
    """
    Who wrote, and how.

    Updates in different versions are different authors; whoever applies is one author, whichever
    version is applied, so `api_version` is empty then.
    """

    manager: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    @property
    def identifier(self) -> str:
        """By what authors are sorted in messages."""
        parts = (
            ("manager", self.manager),
            ("operation", self.operation),
            ("apiVersion", self.api_version),
            ("subresource", self.subresource),
        )
        given = {name: value for name, value in parts if value}
        return json.dumps(given, separators=(",", ":"), ensure_ascii=False)

    def __str__(self) -> str:
        shown = quoted(self.manager)
        if self.subresource:
            shown += f" with subresource {quoted(self.subresource)}"
        if self.operation == UPDATE:
            shown += f" using {self.api_version}"
        return shown


@dataclass(frozen=True, slots=True)
class Owned:
    """What an author owns, in the version in which it was written, and since when."""

    fields: FieldSet
    api_version: str
    time: str = ""
    # The entry that this was read from, which need not be written anew.
    entry: dict[str, Any] | None = field(default=None, compare=False)

    def with_fields(self, fields: FieldSet) -> Owned:
        return Owned(fields, self.api_version, self.time)

    def at(self, time: str) -> Owned:
        return Owned(self.fields, self.api_version, time)


Managed = dict[Author, Owned]


def author_of(manager: str, operation: str, api_version: str, subresource: str) -> Author:
    version = "" if operation == APPLY else api_version
    return Author(manager or "unknown", operation, version, subresource)


def decode(entries: Any) -> Managed:
    """The entries by author; raises `ManagedFieldsError`."""
    managed: Managed = {}
    for index, entry in enumerate(entries or ()):
        if not isinstance(entry, dict):
            raise ManagedFieldsError(f"managed fields entry {index} is not an object")
        author = _author(entry, index)
        try:
            fields = fieldsets.decoded(get(entry, "fieldsV1", {}))
        except fieldsets.FieldSetError as error:
            raise ManagedFieldsError(f"error decoding set: {error}") from error
        kept = entry if fields == entry.get("fieldsV1") else None
        managed[author] = Owned(fields, entry["apiVersion"], entry.get("time") or "", kept)
    return managed


def _author(entry: Mapping[str, Any], index: int) -> Author:
    operation = entry.get("operation")
    if operation not in (APPLY, UPDATE):
        raise ManagedFieldsError("operation must be `Apply` or `Update`")
    if not entry.get("apiVersion"):
        raise ManagedFieldsError("apiVersion must not be empty")
    kind = entry.get("fieldsType") or ""
    if not kind:
        raise ManagedFieldsError(f"missing fieldsType in managed fields entry {index}")
    if kind != "FieldsV1":
        raise ManagedFieldsError(f'invalid fieldsType "{kind}" in managed fields entry {index}')
    version = "" if operation == APPLY else entry["apiVersion"]
    return Author(entry.get("manager") or "", operation, version, entry.get("subresource") or "")


def encode(managed: Managed) -> list[dict[str, Any]]:
    """The entries in the order in which the server keeps them."""
    return [_entry(author, managed[author]) for author in in_order(managed)]


def in_order(managed: Managed) -> list[Author]:
    return sorted(managed, key=lambda author: _rank(author, managed[author]))


def _rank(author: Author, owned: Owned) -> tuple[str, ...]:
    return author.operation, owned.time, author.manager, owned.api_version, author.subresource


def _entry(author: Author, owned: Owned) -> dict[str, Any]:
    if owned.entry is not None:
        return owned.entry
    entry: dict[str, Any] = {"manager": author.manager, "operation": author.operation}
    entry["apiVersion"] = owned.api_version
    if owned.time:
        entry["time"] = owned.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = fieldsets.in_order(owned.fields)
    if author.subresource:
        entry["subresource"] = author.subresource
    return entry


def capped(managed: Managed) -> Managed:
    """At most ten authors of updates: the oldest of a version become one."""
    updaters = [author for author in managed if author.operation == UPDATE]
    if len(updaters) <= _UPDATERS_MAX:
        return managed
    updaters.sort(key=lambda author: (managed[author].time, author.identifier))
    made = dict(managed)
    count = len(updaters)
    first: dict[str, Author] = {}
    for author in updaters:
        if count <= _UPDATERS_MAX:
            break
        owned = made[author]
        before = first.setdefault(owned.api_version, author)
        if before != author:
            _pour(made, before, author)
            count -= 1
    return made


def _pour(made: Managed, first: Author, author: Author) -> None:
    """Puts what an author owns into the bucket of its version, which the first one becomes."""
    owned = made[author]
    bucket = Author(_BUCKET, UPDATE, owned.api_version)
    if bucket not in made:
        made[bucket] = made.pop(first)
    poured = fieldsets.union(owned.fields, made[bucket].fields)
    made.pop(author)
    made[bucket] = owned.with_fields(poured)
