"""
The owners of fields after a write.

A manager that gives a field a new value takes it from all other managers; a removed field has no
owner. An apply owns exactly the fields that it names. It is refused where it would take a field
from a manager that has another value, and it removes fields that its author named before and that
no manager owns now. Fields of each author are compared in the version in which they were written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from dryrack.apiserver.ownership.server_side_apply import fieldsets, typed
from dryrack.apiserver.ownership.server_side_apply.atoms import Atom, atom_of
from dryrack.apiserver.ownership.server_side_apply.comparing import Comparison, compare
from dryrack.apiserver.ownership.server_side_apply.entries import (
    Author,
    Managed,
    Owned,
    sort_authors,
)
from dryrack.apiserver.ownership.server_side_apply.merging import merge, remove, with_named_fields

if TYPE_CHECKING:
    from dryrack.apiserver.ownership.server_side_apply.fieldsets import FieldSet, Path
    from dryrack.kinds.schemas import Schema

Object = dict[str, Any]


class Versions(Protocol):
    """The versions in which a kind is served."""

    def serves(self, api_version: str) -> bool:
        """Return whether the kind is served in a version."""

    def schema(self, api_version: str) -> Schema | None:
        """Return the schema of the kind in a version that is served; None if it has none."""

    def convert(self, value: Object, api_version: str) -> Object:
        """Return the object in another version that is served."""


# Kinds of which the server stores items without the keys of their lists: secrets without names.
WITHOUT_REQUIRED_KEYS = frozenset({"ServiceAccount"})


class Tracked(msgspec.Struct, frozen=True):
    """
    A kind in a version, or one of its subresources.

    `reset` are the fields that this endpoint never writes, such as `status`
    at the main resource and `spec` at the status subresource; so no manager owns them through it.
    """

    api_version: str
    kind: str
    versions: Versions
    subresource: str = ""
    reset: tuple[tuple[str, ...], ...] = ()
    # An update whose fields cannot be tracked keeps the owners of the live object.
    keeps_owners_on_failure: bool = False

    @property
    def schema(self) -> Schema | None:
        return self.versions.schema(self.api_version)


class ConflictError(Exception):
    """Other managers own fields that an apply would change."""

    def __init__(self, conflicts: list[tuple[Author, Path]]) -> None:
        super().__init__("conflicts")
        self.conflicts = conflicts


class Ownership(msgspec.Struct, frozen=True):
    """Computes the owners for one endpoint; `ignored` are the fields that it never writes."""

    versions: Versions
    api_version: str
    ignored: FieldSet

    def after_update(self, live: Object, new: Object, managed: Managed) -> tuple[Managed, FieldSet]:
        """Return the other owners after an update, and the fields that the update owns."""
        if not managed:
            return {}, self._compare(live, new, self.api_version).written
        managed, changes = self._drop_changed(live, new, self._in_current_schema(managed))
        return managed, changes.written

    def after_apply(
        self, live: Object, wanted: Object, managed: Managed, *, author: Author, force: bool
    ) -> tuple[Object, Managed]:
        """Return the live object with a configuration applied, and its owners."""
        atom = self._atom(self.api_version)
        managed = self._in_current_schema(managed)
        previous = managed.get(author)
        fields = fieldsets.without(typed.field_set(atom, wanted), self.ignored)
        time = previous.time if previous is not None else ""
        managed = {**managed, author: Owned(fields, self.api_version, time)}
        new: Object = merge(atom, live, wanted)
        if previous is not None:
            new = self._prune(new, managed, previous, author)
        if not force:
            conflicts: list[tuple[Author, Path]] = []
            for other in sort_authors(managed):
                if other != author:
                    owned = managed[other]
                    written = self._compare(live, new, owned.api_version).written
                    common = fieldsets.intersection(owned.fields, written)
                    conflicts += [(other, path) for path in fieldsets.paths(common)]
            if conflicts:
                raise ConflictError(conflicts)
        managed, _ = self._drop_changed(live, new, managed, by=author)
        return new, managed

    def _atom(self, api_version: str) -> Atom:
        assert self.versions.serves(api_version), f"{api_version} is not served"
        return atom_of(self.versions.schema(api_version))

    def _in_current_schema(self, managed: Managed) -> Managed:
        """Return the owners without versions that are no longer served, as the schema is now."""
        result: Managed = {}
        for author, owned in managed.items():
            if not self.versions.serves(owned.api_version):
                continue
            schema = self.versions.schema(owned.api_version)
            if schema is None or schema.struct is None:
                # Only the schema of a custom kind changes while it is served.
                fields = _in_schema(atom_of(schema), owned.fields)
                if fields is not owned.fields:
                    owned = owned.with_fields(fields)
            result[author] = owned
        return result

    def _compare(self, live: Object, new: Object, api_version: str) -> Comparison:
        if api_version != self.api_version:
            live = self.versions.convert(live, api_version)
            new = self.versions.convert(new, api_version)
        return compare(self._atom(api_version), live, new).without(self.ignored)

    def _drop_changed(
        self, live: Object, new: Object, managed: Managed, *, by: Author | None = None
    ) -> tuple[Managed, Comparison]:
        """Return the owners without fields that the write changed or removed, and the changes."""
        changes = self._compare(live, new, self.api_version)
        changes_by_version = {self.api_version: changes}
        result: Managed = {}
        for author, owned in managed.items():
            if author == by:
                if owned.fields:
                    result[author] = owned
                continue
            theirs = changes_by_version.get(owned.api_version)
            if theirs is None:
                theirs = self._compare(live, new, owned.api_version)
                changes_by_version[owned.api_version] = theirs
            fields = fieldsets.difference(owned.fields, theirs.written)
            fields = fieldsets.difference(fields, theirs.removed)
            if fields:
                result[author] = owned if fields == owned.fields else owned.with_fields(fields)
        return result, changes

    def _prune(self, merged: Object, managed: Managed, previous: Owned, author: Author) -> Object:
        """Remove fields that the author named before and that no author names now."""
        version = previous.api_version
        owned = managed[author]
        names_all = version == owned.api_version and not fieldsets.difference(
            previous.fields, owned.fields
        )
        if not previous.fields or names_all:
            return merged
        atom = self._atom(version)
        named_before = with_named_fields(atom, previous.fields)
        before_prune = self._convert(merged, self.api_version, version)
        pruned = remove(atom, before_prune, named_before)
        pruned = self._restore_owned(before_prune, pruned, version, managed)
        # Of what is left to remove, only fields that the author owned go.
        remaining = with_named_fields(atom, typed.field_set(atom, pruned))
        everything = with_named_fields(atom, typed.field_set(atom, before_prune))
        removed = fieldsets.difference(everything, remaining)
        pruned = remove(atom, before_prune, fieldsets.intersection(removed, named_before))
        result: Object = self._convert(pruned, version, self.api_version)
        return result

    def _convert(self, value: Any, from_version: str, to_version: str) -> Any:
        return value if from_version == to_version else self.versions.convert(value, to_version)

    def _restore_owned(
        self, merged: Object, pruned: Object, version: str, managed: Managed
    ) -> Object:
        """Put back the fields that any author owns, version by version."""
        owned_in: dict[str, FieldSet] = {}
        for owned in managed.values():
            fields = owned_in.get(owned.api_version, {})
            owned_in[owned.api_version] = fieldsets.union(fields, owned.fields)
        others = [each for each in sorted(owned_in) if each != version]
        current = version
        for each in ([version] if version in owned_in else []) + others:
            merged = self._convert(merged, current, each)
            pruned = self._convert(pruned, current, each)
            current = each
            atom = self._atom(each)
            remaining = fieldsets.union(
                with_named_fields(atom, typed.field_set(atom, pruned)),
                with_named_fields(atom, owned_in[each]),
            )
            everything = with_named_fields(atom, typed.field_set(atom, merged))
            pruned = remove(atom, merged, fieldsets.difference(everything, remaining))
        result: Object = self._convert(pruned, current, version)
        return result


def _in_schema(atom: Atom, fields: FieldSet) -> FieldSet:
    """
    Return a set of fields as the schema of a custom kind is now.

    The schema may come to say that a list or a map is atomic after managers own parts of it. Then
    an owner of a part owns the whole. Returns the same set if nothing changes.
    """
    result: FieldSet = {}
    for element, node in fields.items():
        child: Atom | None = None
        if element.startswith("f:"):
            child = None if atom.map is None else atom.map.child(element[2:])
        elif element != fieldsets.SELF:
            child = None if atom.list is None else atom.list.element
        if child is not None and node:
            result[element] = {} if _became_atomic(child) else _in_schema(child, node)
        else:
            result[element] = node
    is_same = all(result[element] is node for element, node in fields.items())
    return fields if is_same else result


def _became_atomic(atom: Atom) -> bool:
    """Return whether a schema makes a value atomic; a value without a schema stays as it was."""
    if atom.map is not None:
        return atom.map.atomic and atom.map.schema is not None
    return atom.list is not None and not atom.scalar and not atom.list.associative
