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
    A manager with its operation.

    Updates in different versions have different authors. All applies of a manager have one author,
    so `api_version` is empty for them.
    """

    manager: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    @property
    def identifier(self) -> str:
        """Return the text by which messages sort authors."""
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
    """The fields of an author, in the version in which they were written, and their time."""

    fields: FieldSet
    api_version: str
    time: str = ""
    # The entry from which this was decoded; `encode` returns it unchanged.
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
    """Return the entries by author; raise `ManagedFieldsError`."""
    managed: Managed = {}
    for index, entry in enumerate(entries or ()):
        if not isinstance(entry, dict):
            raise ManagedFieldsError(f"managed fields entry {index} is not an object")
        author = _decode_author(entry, index)
        try:
            fields = fieldsets.decode(get(entry, "fieldsV1", {}))
        except fieldsets.FieldSetError as error:
            raise ManagedFieldsError(f"error decoding set: {error}") from error
        unchanged = entry if fields == entry.get("fieldsV1") else None
        managed[author] = Owned(fields, entry["apiVersion"], entry.get("time") or "", unchanged)
    return managed


def _decode_author(entry: Mapping[str, Any], index: int) -> Author:
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
    """Return the entries in the order in which the server stores them."""
    entries: list[dict[str, Any]] = []
    for author in sort_authors(managed):
        owned = managed[author]
        if owned.entry is not None:
            entries.append(owned.entry)
            continue
        entry: dict[str, Any] = {
            "manager": author.manager,
            "operation": author.operation,
            "apiVersion": owned.api_version,
        }
        if owned.time:
            entry["time"] = owned.time
        entry["fieldsType"] = "FieldsV1"
        entry["fieldsV1"] = fieldsets.in_order(owned.fields)
        if author.subresource:
            entry["subresource"] = author.subresource
        entries.append(entry)
    return entries


def sort_authors(managed: Managed) -> list[Author]:
    """Return the authors in the order of their entries."""
    if len(managed) < 2:
        return list(managed)

    def rank(author: Author) -> tuple[str, ...]:
        owned = managed[author]
        manager = author.manager
        return author.operation, owned.time, manager, owned.api_version, author.subresource

    return sorted(managed, key=rank)


def cap_updaters(managed: Managed) -> Managed:
    """Return at most ten authors of updates: the oldest of a version become one bucket."""
    if len(managed) <= _UPDATERS_MAX:
        return managed
    updaters = [author for author in managed if author.operation == UPDATE]
    updaters.sort(key=lambda author: (managed[author].time, author.identifier))
    result = dict(managed)
    count = len(updaters)
    oldest: dict[str, Author] = {}
    for author in updaters:
        if count <= _UPDATERS_MAX:
            break
        owned = result[author]
        first = oldest.setdefault(owned.api_version, author)
        if first == author:
            continue
        bucket = Author(_BUCKET, UPDATE, owned.api_version)
        if bucket not in result:
            result[bucket] = result.pop(first)
        united = fieldsets.union(owned.fields, result[bucket].fields)
        del result[author]
        result[bucket] = owned.with_fields(united)
        count -= 1
    return result
