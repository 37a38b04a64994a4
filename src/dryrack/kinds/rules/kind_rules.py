"""
Defaults and validation of one kind.

Objects are raw JSON, and are never changed in place: a method answers with the object that it was
given, or with a copy of the parts that it changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.decode import decode
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.paths import metadata_of
from dryrack.kinds.rules.json_edit import without
from dryrack.kinds.validation.meta import SUBDOMAIN, common_metadata, metadata
from dryrack.kinds.validation.problems import required

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem
    from dryrack.kinds.validation.meta import Naming

# Stand-ins for what a server makes up. The server appends five characters to a generateName.
_UID = "00000000-0000-4000-8000-000000000000"
_NOW = "2026-01-01T00:00:00Z"
_GENERATE_NAME_BYTES_KEPT = 58


class KindRules:
    """A kind with metadata and nothing else to say about it; others derive from it."""

    def __init__(
        self, *, namespaced: bool, naming: Naming = SUBDOMAIN, has_status: bool = False
    ) -> None:
        self.namespaced = namespaced
        self.naming = naming
        self.has_status = has_status

    def default(self, obj: Raw) -> Raw:
        return obj

    def as_new(self, obj: Raw) -> Raw:
        """A new object as it is judged, with stand-ins for what only a cluster could add."""
        return without(obj, "status") if self.has_status else obj

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        """What is wrong with the kind's own fields."""
        return ()

    def new_problems(self, obj: Raw, meta: ObjectMeta) -> Sequence[FieldProblem]:
        """All that is wrong with a new object, whose metadata is given as a model besides."""
        found = [*metadata(meta, self.naming, namespaced=self.namespaced), *self.problems(obj)]
        if found or self.naming is SUBDOMAIN:
            # A subdomain is more than what is asked of any name.
            return found
        return tuple(common_metadata(meta, namespaced=self.namespaced))

    def creation_problems(self, obj: Raw, namespace: str) -> Sequence[FieldProblem]:
        """Return what a server has against creating a decoded object in an empty cluster."""
        given = metadata_of(obj)
        meta = {**given, "uid": given.get("uid") or _UID, "creationTimestamp": _NOW}
        if self.namespaced:
            meta["namespace"] = namespace or "default"
        if not meta.get("name") and meta.get("generateName"):
            prefix = meta["generateName"].encode()[:_GENERATE_NAME_BYTES_KEPT]
            meta["name"] = f"{prefix.decode('utf-8', 'replace')}xxxxx"
        new = self.as_new(self.default({**obj, "metadata": meta}))
        problems = self.new_problems(new, decode(new["metadata"], ObjectMeta))
        if not new["metadata"].get("name") and not problems:
            return (required("metadata.name", "name or generateName is required"),)
        return problems
