"""
Who owns what after a write.

The rules: whoever gives a field a new value takes it from everybody else; a field that is gone
is nobody's. An apply owns exactly what it names, is refused where that would take a field from
somebody with another value, and takes away what its author named before and nobody owns now.
Each author's fields are compared in the version in which they were written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.apiserver.ownership.server_side_apply import fieldsets, typed
from dryrack.apiserver.ownership.server_side_apply.atoms import Atom, atom_of
from dryrack.apiserver.ownership.server_side_apply.comparing import Comparison, compare
from dryrack.apiserver.ownership.server_side_apply.entries import Author, Managed, Owned, in_order
from dryrack.apiserver.ownership.server_side_apply.merging import merge, remove, with_named_fields
from dryrack.apiserver.ownership.server_side_apply.reconciling import reconciled

if TYPE_CHECKING:
    from dryrack.apiserver.ownership.server_side_apply.fieldsets import FieldSet, Path
    from dryrack.apiserver.ownership.server_side_apply.tracked import Object, Versions


class ConflictError(Exception):
    """Others own what an apply would change."""

    def __init__(self, conflicts: list[tuple[Author, Path]]) -> None:
        super().__init__("conflicts")
        self.conflicts = conflicts


class Ownership(msgspec.Struct, frozen=True):
    """Works out owners for one endpoint; `ignored` are the fields that it never writes."""

    versions: Versions
    api_version: str
    ignored: FieldSet

    def _atom(self, api_version: str) -> Atom | None:
        if not self.versions.serves(api_version):
            return None
        return atom_of(self.versions.schema(api_version))

    def _known(self, managed: Managed) -> Managed:
        """Without authors whose version is not served any more; the others as the schema is now."""
        made: Managed = {}
        for author, owned in managed.items():
            atom = self._atom(owned.api_version)
            if atom is not None:
                made[author] = self._as_now(owned, atom)
        return made

    def _as_now(self, owned: Owned, atom: Atom) -> Owned:
        schema = self.versions.schema(owned.api_version)
        if schema is not None and schema.struct is not None:
            # What is built in does not change while it is served.
            return owned
        fields = reconciled(atom, owned.fields)
        return owned if fields is owned.fields else owned.with_fields(fields)

    def _compare(self, live: Object, new: Object, api_version: str) -> Comparison:
        atom = self._atom(api_version)
        assert atom is not None, f"{api_version} is not served"
        if api_version != self.api_version:
            live = self.versions.convert(live, api_version)
            new = self.versions.convert(new, api_version)
        return compare(atom, live, new).without(self.ignored)

    def updated(self, live: Object, new: Object, managed: Managed) -> tuple[Managed, FieldSet]:
        """The owners after an update, and what the update itself now owns."""
        managed, changes = self._taken(live, new, self._known(managed))
        return managed, fieldsets.without(changes.written, self.ignored)

    def _taken(
        self, live: Object, new: Object, managed: Managed, *, by: Author | None = None
    ) -> tuple[Managed, Comparison]:
        """Without what the write gave new values or took away."""
        compared = {self.api_version: self._compare(live, new, self.api_version)}
        made: Managed = {}
        for author, owned in managed.items():
            if author == by:
                made[author] = owned
                continue
            changes = compared.get(owned.api_version)
            if changes is None:
                changes = self._compare(live, new, owned.api_version)
                compared[owned.api_version] = changes
            kept = fieldsets.difference(owned.fields, changes.written)
            kept = fieldsets.difference(kept, changes.removed)
            if kept:
                made[author] = owned if kept == owned.fields else owned.with_fields(kept)
        return {author: each for author, each in made.items() if each.fields}, compared[
            self.api_version
        ]

    def applied(
        self, live: Object, wanted: Object, managed: Managed, *, author: Author, force: bool
    ) -> tuple[Object, Managed]:
        """The live object with what is wanted, and its owners; raises `ConflictError`."""
        atom = self._atom(self.api_version)
        assert atom is not None, f"{self.api_version} is not served"
        managed = self._known(managed)
        before = managed.get(author)
        fields = fieldsets.without(typed.field_set(atom, wanted), self.ignored)
        time = before.time if before is not None else ""
        managed = {**managed, author: Owned(fields, self.api_version, time)}
        merged: Object = merge(atom, live, wanted)
        new = merged if before is None else self._pruned(merged, managed, before, author)
        if not force:
            self._refuse_conflicts(live, new, managed, author)
        managed, _ = self._taken(live, new, managed, by=author)
        return new, managed

    def _refuse_conflicts(
        self, live: Object, new: Object, managed: Managed, author: Author
    ) -> None:
        found: list[tuple[Author, Path]] = []
        for other in in_order(managed):
            owned = managed[other]
            if other == author:
                continue
            written = self._compare(live, new, owned.api_version).written
            disputed = fieldsets.intersection(owned.fields, written)
            found += [(other, path) for path in fieldsets.paths(disputed)]
        if found:
            raise ConflictError(found)

    def _keeps_all(self, before: Owned, managed: Managed, author: Author) -> bool:
        """Whether an author names all that it has named before: then it takes nothing away."""
        owned = managed[author]
        same_version = before.api_version == owned.api_version
        return same_version and not fieldsets.difference(before.fields, owned.fields)

    def _pruned(self, merged: Object, managed: Managed, before: Owned, author: Author) -> Object:
        """Without what the author named before and neither names now nor leaves to another."""
        version = before.api_version
        if not before.fields or self._keeps_all(before, managed, author):
            return merged
        atom = self._atom(version)
        assert atom is not None, f"{version} is not served"
        before_all = with_named_fields(atom, before.fields)
        here = self._in(merged, self.api_version, version)
        pruned = remove(atom, here, before_all)
        pruned = self._owned_back(here, pruned, version, managed)
        pruned = self._dangling_back(atom, here, pruned, before_all)
        made: Object = self._in(pruned, version, self.api_version)
        return made

    def _in(self, value: Any, from_version: str, to_version: str) -> Any:
        return value if from_version == to_version else self.versions.convert(value, to_version)

    def _owned_back(self, merged: Object, pruned: Object, version: str, managed: Managed) -> Object:
        """Puts back what somebody owns, the applying author included, version by version."""
        owned_in: dict[str, FieldSet] = {}
        for owned in managed.values():
            known = owned_in.get(owned.api_version, {})
            owned_in[owned.api_version] = fieldsets.union(known, owned.fields)
        others = [each for each in sorted(owned_in) if each != version]
        current = version
        for each in ([version] if version in owned_in else []) + others:
            merged = self._in(merged, current, each)
            pruned = self._in(pruned, current, each)
            current = each
            pruned = self._owned_back_in(merged, pruned, each, owned_in[each])
        made: Object = self._in(pruned, current, version)
        return made

    def _owned_back_in(
        self, merged: Object, pruned: Object, version: str, owned: FieldSet
    ) -> Object:
        atom = self._atom(version)
        assert atom is not None, f"{version} is not served"
        kept = fieldsets.union(
            with_named_fields(atom, typed.field_set(atom, pruned)), with_named_fields(atom, owned)
        )
        everything = with_named_fields(atom, typed.field_set(atom, merged))
        made: Object = remove(atom, merged, fieldsets.difference(everything, kept))
        return made

    def _dangling_back(
        self, atom: Atom, merged: Object, pruned: Object, before_all: FieldSet
    ) -> Object:
        """Takes away only what the author owned: what nobody ever owned stays."""
        kept = with_named_fields(atom, typed.field_set(atom, pruned))
        everything = with_named_fields(atom, typed.field_set(atom, merged))
        gone = fieldsets.intersection(fieldsets.difference(everything, kept), before_all)
        made: Object = remove(atom, merged, gone)
        return made
