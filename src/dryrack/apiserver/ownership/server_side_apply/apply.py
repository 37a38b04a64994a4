"""
Server-side apply of a configuration, as the request pipeline calls it.

`kubectl apply` on the client keeps the applied configuration in an annotation. When kubectl
applies on the server, it owns the fields of the annotation that still have its values: they do
not conflict with the update by which kubectl wrote them. An existing annotation is kept up to
date, so that a user can return to apply on the client.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.ownership.patching.merge_patch import without_nulls
from dryrack.apiserver.ownership.server_side_apply import fieldsets, typed
from dryrack.apiserver.ownership.server_side_apply.atoms import atom_of
from dryrack.apiserver.ownership.server_side_apply.comparing import compare
from dryrack.apiserver.ownership.server_side_apply.entries import (
    APPLY,
    Author,
    Managed,
    ManagedFieldsError,
    author_of,
    decode,
)
from dryrack.apiserver.ownership.server_side_apply.managed_fields import (
    NEVER_OWNED,
    after_update,
    ownership_of,
    with_managed,
    without_managed,
)
from dryrack.apiserver.ownership.server_side_apply.owning import (
    WITHOUT_REQUIRED_KEYS,
    ConflictError,
)
from dryrack.kinds.paths import get, metadata_of
from dryrack.kinds.schemas.shape import fill_unset

if TYPE_CHECKING:
    from dryrack.apiserver.ownership.server_side_apply.atoms import Atom
    from dryrack.apiserver.ownership.server_side_apply.fieldsets import FieldSet
    from dryrack.apiserver.ownership.server_side_apply.owning import Object, Tracked

_BEFORE_FIRST_APPLY = "before-first-apply"
_KUBECTL = "kubectl"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_ANNOTATIONS_BYTES_MAX = 256 * 1024


@dataclass(frozen=True, slots=True)
class ApplyConflicts:
    """An apply that would change fields of other managers: a 409 with these causes."""

    message: str
    # Field and message of each cause, whose reason is FieldManagerConflict.
    causes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ApplyProblem:
    """The `Status` of an apply that is not possible."""

    code: int
    reason: str
    message: str


class _RefusedError(typed.TypeViolationError):
    """A configuration that is not of its type, with the whole text of the refusal."""

    def __init__(self, text: str) -> None:
        super().__init__([typed.Violation((), text)])


def apply_configuration(
    live: Object | None,
    configuration: Object,
    *,
    manager: str,
    force: bool,
    now: str,
    tracked: Tracked,
) -> Object | ApplyConflicts | ApplyProblem:
    """
    Return the live object with a configuration applied, not yet defaulted.

    `live` is None on create.
    """
    api_version = _text(configuration, "apiVersion")
    kind = _text(configuration, "kind")
    if (api_version, kind) != (tracked.api_version, tracked.kind):
        shown = _group_version_kind(api_version, kind)
        return ApplyProblem(400, "BadRequest", f"invalid object type: {shown}")
    metadata = configuration.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        return ApplyProblem(400, "BadRequest", "metadata.managedFields must be nil")
    try:
        managed = decode(get(live or {}, "metadata.managedFields"))
    except ManagedFieldsError as error:
        return ApplyProblem(500, "", f"failed to decode managed fields: {error}")
    apply = _Apply(live, configuration, manager=manager, now=now, tracked=tracked)
    try:
        new = apply.result(managed, force=force)
    except ConflictError as error:
        return _conflicts_of(error)
    except typed.TypeViolationError as error:
        return ApplyProblem(500, "", str(error))
    return _with_new_annotation(new, configuration) if manager == _KUBECTL else new


def _text(obj: Object, name: str) -> str:
    """Return a field if it is a string, or ""."""
    value = obj.get(name)
    return value if isinstance(value, str) else ""


def _group_version_kind(api_version: str, kind: str) -> str:
    if api_version.count("/") > 1:
        return "/, Kind="
    group, slash, version = api_version.rpartition("/")
    return f"{group}/{version if slash else api_version}, Kind={kind}"


class _Apply:
    """One apply."""

    def __init__(
        self, live: Object | None, wanted: Object, *, manager: str, now: str, tracked: Tracked
    ) -> None:
        self.live = live
        self.wanted = wanted
        self.now = now
        self.tracked = tracked
        self.manager = manager
        self.author = author_of(manager, APPLY, tracked.api_version, tracked.subresource)
        self.schema = tracked.schema
        self.atom = atom_of(self.schema)
        self.ownership = ownership_of(tracked)

    def result(self, managed: Managed, *, force: bool) -> Object:
        """Return the new object; raise a `ConflictError` or a `TypeViolationError`."""
        live = {} if self.live is None else without_managed(self.live)
        if not managed and self.live is not None:
            managed = self._own_before_first_apply(live)
        live = fill_unset(self.schema, live)
        try:
            typed.check(self.atom, self.wanted, allow_duplicates=False)
        except typed.TypeViolationError as error:
            where = self._where(self.wanted)
            raise _RefusedError(
                f"failed to create typed patch object ({where}): {error}"
            ) from error
        is_struct = self.schema is not None and self.schema.struct is not None
        if not is_struct:
            # A stored object of a built-in kind is always of its type.
            typed.check(self.atom, live, allow_duplicates=True)
        elif self.tracked.kind in WITHOUT_REQUIRED_KEYS:
            self._check_live(live)
        new, managed = self._apply_or_conflict(live, managed, force=force)
        owned = managed.get(self.author)
        if typed.same(new, live):
            new = live
        elif owned is not None:
            owned = owned.at(self.now)
        if owned is not None:
            fields = fieldsets.difference(owned.fields, NEVER_OWNED)
            managed = {author: each for author, each in managed.items() if author != self.author}
            if fields:
                managed[self.author] = owned.with_fields(fields)
        # Go's structs have no null; a custom object is no struct, and keeps its nulls.
        return with_managed(without_nulls(new) if is_struct else new, managed)

    def _check_live(self, live: Object) -> None:
        """Raise a `TypeViolationError` if the live object is not of its type."""
        try:
            typed.check(self.atom, live, allow_duplicates=True)
        except typed.TypeViolationError as error:
            where = self._where(live)
            raise _RefusedError(f"failed to create typed live object ({where}): {error}") from error

    def _where(self, obj: Object) -> str:
        metadata = obj.get("metadata")
        named = metadata if isinstance(metadata, dict) else {}
        place = f"{_text(named, 'namespace')}/{_text(named, 'name')}"
        return f"{place}; {_group_version_kind(self.tracked.api_version, self.tracked.kind)}"

    def _own_before_first_apply(self, live: Object) -> Managed:
        """Return an owner of all existing fields, so that an apply cannot take them silently."""
        try:
            typed.check(self.atom, live, allow_duplicates=True)
            return after_update(
                None, live, {}, manager=_BEFORE_FIRST_APPLY, now=self.now, tracked=self.tracked
            )
        except typed.TypeViolationError as error:
            what = f"failed to convert new object ({self._where(live)}) to smd typed: {error}"
            raise _RefusedError(f"failed to create manager for existing fields: {what}") from error

    def _apply_or_conflict(
        self, live: Object, managed: Managed, *, force: bool
    ) -> tuple[Object, Managed]:
        after_apply = self.ownership.after_apply
        wanted = self.wanted
        try:
            return after_apply(live, wanted, managed, author=self.author, force=force)
        except ConflictError as error:
            if self.manager != _KUBECTL:
                raise
            own = _fields_of_annotation(live, self.atom, self.tracked.api_version)
            others = [each for each in error.conflicts if not fieldsets.has(own, each[1])]
            if others:
                raise ConflictError(others) from error
            return after_apply(live, wanted, managed, author=self.author, force=True)


def _conflicts_of(error: ConflictError) -> ApplyConflicts:
    causes = tuple(
        (fieldsets.path_text(path), f"conflict with {author}") for author, path in error.conflicts
    )
    if len(error.conflicts) == 1:
        author, path = error.conflicts[0]
        shown = fieldsets.path_text(path)
        return ApplyConflicts(
            f"Apply failed with 1 conflict: conflict with {author}: {shown}", causes
        )
    lines: list[str] = []
    authors: list[Author] = sorted(
        {author for author, _ in error.conflicts}, key=lambda author: author.identifier
    )
    for author in authors:
        lines.append(f"conflicts with {author}:")
        paths = (path for other, path in error.conflicts if other == author)
        lines += [f"- {fieldsets.path_text(path)}" for path in paths]
    count = len(error.conflicts)
    return ApplyConflicts(f"Apply failed with {count} conflicts: " + "\n".join(lines), causes)


def _fields_of_annotation(live: Object, atom: Atom, api_version: str) -> FieldSet:
    """Return the fields of kubectl's annotation that still have its values."""
    text = _annotations(live).get(_LAST_APPLIED)
    if not isinstance(text, str) or not text:
        return {}
    try:
        last_applied = json.loads(text)
        if not isinstance(last_applied, dict) or last_applied.get("apiVersion") != api_version:
            return {}
        typed.check(atom, last_applied, allow_duplicates=False)
        changes = compare(atom, last_applied, live)
    except (ValueError, RecursionError, typed.TypeViolationError):
        return {}
    fields = typed.field_set(atom, last_applied)
    for changed in (changes.modified, changes.added, changes.removed):
        fields = fieldsets.difference(fields, changed)
    return fields


def _with_new_annotation(new: Object, configuration: Object) -> Object:
    """Return the object with kubectl's annotation as of this apply, if it has one."""
    annotations = dict(_annotations(new))
    if not annotations.get(_LAST_APPLIED):
        return new
    metadata = dict(metadata_of(configuration))
    metadata["annotations"] = {
        key: value for key, value in _annotations(configuration).items() if key != _LAST_APPLIED
    }
    if not metadata["annotations"]:
        del metadata["annotations"]
    shown = {**configuration, "metadata": metadata}
    text = json.dumps(shown, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    annotations[_LAST_APPLIED] = text
    size = sum(len(key.encode()) + len(str(value).encode()) for key, value in annotations.items())
    if size > _ANNOTATIONS_BYTES_MAX:
        del annotations[_LAST_APPLIED]
    return {**new, "metadata": {**new["metadata"], "annotations": annotations}}


def _annotations(obj: Object) -> dict[str, Any]:
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}
