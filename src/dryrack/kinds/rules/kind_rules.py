"""
Defaults and validation of one kind.

Objects are raw JSON and are never changed in place: a method returns the given object, or a copy
with the changed parts.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Self

from dryrack.kinds.decode import decode
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.paths import metadata_of
from dryrack.kinds.releases import DEFAULT_RELEASE, UNDECLARED_GROUPS, VALIDATION, FeatureSet
from dryrack.kinds.rules.json_edit import without
from dryrack.kinds.validation.declared import declared_of, merge
from dryrack.kinds.validation.meta import SUBDOMAIN, common_metadata, metadata
from dryrack.kinds.validation.problems import required

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem
    from dryrack.kinds.validation.declared import Declared
    from dryrack.kinds.validation.meta import Naming

# Stand-ins for what a server makes up. The server appends five characters to a generateName.
_UID = "00000000-0000-4000-8000-000000000000"
_NOW = "2026-01-01T00:00:00Z"
_GENERATE_NAME_BYTES_KEPT = 58


class KindRules:
    """Rules of a kind with only metadata; the base of all other rules."""

    def __init__(
        self, *, namespaced: bool, naming: Naming = SUBDOMAIN, has_status: bool = False
    ) -> None:
        self.namespaced = namespaced
        self.naming = naming
        self.has_status = has_status
        self.features = FeatureSet()
        self.behaviour = VALIDATION[DEFAULT_RELEASE]
        self._declared: Declared | None = None

    def follow(self, features: FeatureSet, group: str, kind: str) -> Self:
        """Give the answers of a release about a kind; without this, those of the default."""
        release = features.release
        self.features = features
        self.behaviour = VALIDATION[release]
        if group in UNDECLARED_GROUPS:
            self.behaviour = replace(self.behaviour, repeats_problems=True)
        self._declared = declared_of(kind, release)
        return self

    def default(self, obj: Raw) -> Raw:
        return obj

    def as_new(self, obj: Raw) -> Raw:
        """Return a new object for validation, with stand-ins for fields that a cluster sets."""
        return without(obj, "status") if self.has_status else obj

    def problems(self, obj: Raw) -> Iterable[FieldProblem]:
        """Return the problems of the fields of the kind."""
        return ()

    def new_problems(self, obj: Raw, meta: ObjectMeta) -> Sequence[FieldProblem]:
        """Return all problems of a new object; `meta` is its metadata as a model."""
        problems = [
            *metadata(meta, self.naming, namespaced=self.namespaced, behaviour=self.behaviour),
            *self.problems(obj),
        ]
        if problems or self.naming is SUBDOMAIN:
            # A subdomain meets all requirements of other names.
            return problems
        return tuple(common_metadata(meta, namespaced=self.namespaced, behaviour=self.behaviour))

    def report(
        self, problems: Sequence[FieldProblem], obj: Raw, old: Raw | None = None
    ) -> Sequence[FieldProblem]:
        """Return these problems and the declared ones, as the server reports them."""
        if self.behaviour.repeats_problems:
            return problems
        declared = self.declared_problems(obj, old)
        if not problems and not declared:
            return ()
        version = obj.get("apiVersion", "")
        return merge(map(self._correct, problems), declared, partial(self.written_path, version))

    def written_path(self, api_version: str, field: str) -> str:
        """Return the path of a declared problem in a version of the kind."""
        return field

    def _correct(self, problem: FieldProblem) -> FieldProblem:
        for wrong, right in self.behaviour.corrected_paths.items():
            if problem.field.endswith(wrong):
                return replace(problem, field=f"{problem.field.removesuffix(wrong)}{right}")
        return problem

    def declared_problems(self, obj: Raw, old: Raw | None) -> Sequence[FieldProblem]:
        """Return the problems of the checks that the release declares with the type."""
        return self._declared.problems(obj, old) if self._declared else ()

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
        handwritten = self.new_problems(new, decode(new["metadata"], ObjectMeta))
        problems = self.report(handwritten, new)
        if not new["metadata"].get("name") and not problems:
            return (required("metadata.name", "name or generateName is required"),)
        return problems
