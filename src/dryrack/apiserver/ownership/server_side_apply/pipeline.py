"""What the request pipeline calls on every write."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.apiserver.ownership.patching.merge_patch import without_nulls
from dryrack.apiserver.ownership.server_side_apply import fieldsets, last_applied, typed
from dryrack.apiserver.ownership.server_side_apply.atoms import atom_of
from dryrack.apiserver.ownership.server_side_apply.comparing import differing_parts
from dryrack.apiserver.ownership.server_side_apply.entries import (
    APPLY,
    UPDATE,
    Author,
    Managed,
    ManagedFieldsError,
    Owned,
    author_of,
    capped,
    decode,
    encode,
)
from dryrack.apiserver.ownership.server_side_apply.owning import ConflictError, Ownership
from dryrack.base.limits import LARGE_OBJECT_BYTES
from dryrack.kinds.paths import get, metadata_of
from dryrack.kinds.schemas.shape import filled, filled_to_atoms, skeleton

if TYPE_CHECKING:
    from dryrack.apiserver.ownership.server_side_apply.tracked import Object, Tracked

_MANAGER_BYTES_MAX = 128
_BEFORE_FIRST_APPLY = "before-first-apply"
# What everybody needs and nobody decides about.
_NEVER_OWNED_METADATA = frozenset(
    (
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    )
)
_NEVER_OWNED = fieldsets.of_paths(
    [
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(("f:metadata", f"f:{name}") for name in sorted(_NEVER_OWNED_METADATA)),
    ]
)
# Pods come from few templates at a time, which are small.
_TEMPLATES_MAX = 256
_known: dict[tuple[str, tuple[tuple[str, ...], ...], bytes], bytes] = {}
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class ApplyConflicts:
    """An apply that would change what others own: a 409 with these causes."""

    message: str
    # Field and message of each cause, whose reason is FieldManagerConflict.
    causes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ApplyProblem:
    """Why an apply cannot be done at all, as the server's `Status` tells it."""

    code: int
    reason: str
    message: str


def managed_after_update(
    live: Object | None, new: Object, *, manager: str, now: str, tracked: Tracked
) -> Object:
    """
    The new object with `managedFields` as they are after a create, update or patch.

    To be called when the request is decoded and defaulted, before the strategy prepares it: what
    controllers and admission change afterwards is not the author's. `live` is None on create.
    `now` is RFC 3339 with seconds.
    """
    managed = _managed_of(live, new, is_subresource=bool(tracked.subresource))
    bare = without_managed(new)
    if not managed and live is not None:
        # Nobody's fields were tracked until now, so they are not from now on either.
        return bare
    try:
        managed = _after_update(live, bare, managed, manager=manager, now=now, tracked=tracked)
    except typed.TypeViolationError:
        return bare
    return with_managed(bare, managed)


def _after_update(
    live: Object | None,
    new: Object,
    managed: Managed,
    *,
    manager: str,
    now: str,
    tracked: Tracked,
) -> Managed:
    if live is None and not managed:
        fields = _created(new, tracked)
    else:
        managed, fields = _updated(live, new, managed, tracked)
    if fields:
        author = author_of(manager, UPDATE, tracked.api_version, tracked.subresource)
        before = managed.get(author)
        owned = fields if before is None else fieldsets.union(fields, before.fields)
        managed = {**managed, author: Owned(owned, tracked.api_version, now)}
    return capped(managed)


def _created(new: Object, tracked: Tracked) -> fieldsets.FieldSet:
    """What an object gives its first owner: the same for all pods of a template."""
    schema = tracked.schema
    if tracked.kind != "Pod" or schema is None or schema.struct is None:
        return _updated(None, new, {}, tracked)[1]
    metadata = metadata_of(new)
    kept = {name: each for name, each in metadata.items() if name not in _NEVER_OWNED_METADATA}
    template = (tracked.api_version, tracked.reset, _encode({**new, "metadata": kept}))
    known = _known.get(template)
    if known is not None:
        return _decode(known)
    fields = _updated(None, new, {}, tracked)[1]
    if len(template[-1]) <= LARGE_OBJECT_BYTES:
        if len(_known) >= _TEMPLATES_MAX:
            del _known[next(iter(_known))]
        # As JSON it is one object, and not a tree of them.
        _known[template] = _encode(fields)
    return fields


def _updated(
    live: Object | None, new: Object, managed: Managed, tracked: Tracked
) -> tuple[Managed, fieldsets.FieldSet]:
    """The owners after a write, and what the write itself now owns."""
    ownership = _ownership(tracked)
    schema = tracked.schema
    old = skeleton(schema)
    now_there = without_managed(new)
    if live is not None:
        old = without_managed(live)
        if all(each.api_version == tracked.api_version for each in managed.values()):
            # Most of an object stays as it is, and that need not be filled and compared.
            old, now_there = differing_parts(old, now_there)
        old = filled_to_atoms(schema, old)
    managed, fields = ownership.updated(old, filled_to_atoms(schema, now_there), managed)
    return managed, fieldsets.difference(fields, _NEVER_OWNED)


def _ownership(tracked: Tracked) -> Ownership:
    return Ownership(tracked.versions, tracked.api_version, _fields_at(tracked.reset))


@cache
def _fields_at(paths: tuple[tuple[str, ...], ...]) -> fieldsets.FieldSet:
    """Few endpoints differ in what they never write."""
    return fieldsets.of_paths([tuple(f"f:{name}" for name in path) for path in paths])


def _managed_of(live: Object | None, new: Object, *, is_subresource: bool) -> Managed:
    """The owners that a write begins with: those it sends, unless it sends none that count."""
    sent = get(new, "metadata.managedFields")
    kept = get(live or {}, "metadata.managedFields")
    if not is_subresource and sent is not None:
        if sent in ([], [{}]):
            return {}
        managed = _decoded(sent)
        if managed:
            return managed
    return _decoded(kept)


def _decoded(entries: Any) -> Managed:
    try:
        return decode(entries)
    except ManagedFieldsError:
        return {}


def applied(
    live: Object | None,
    configuration: Object,
    *,
    manager: str,
    force: bool,
    now: str,
    tracked: Tracked,
) -> Object | ApplyConflicts | ApplyProblem:
    """The live object with a configuration applied, not yet defaulted; `live` is None on create."""
    problem = _refusal(configuration, tracked)
    if problem is not None:
        return problem
    try:
        managed = decode(get(live or {}, "metadata.managedFields"))
    except ManagedFieldsError as error:
        return ApplyProblem(500, "", f"failed to decode managed fields: {error}")
    applying = _Applying(live, configuration, manager=manager, now=now, tracked=tracked)
    try:
        made = applying.result(managed, force=force)
    except ConflictError as error:
        return _conflicts(error)
    except typed.TypeViolationError as error:
        return ApplyProblem(500, "", str(error))
    return last_applied.renewed(made, configuration) if manager == last_applied.KUBECTL else made


def _refusal(configuration: Object, tracked: Tracked) -> ApplyProblem | None:
    api_version = _text(configuration, "apiVersion")
    kind = _text(configuration, "kind")
    if (api_version, kind) != (tracked.api_version, tracked.kind):
        shown = _spelled(api_version, kind)
        return ApplyProblem(400, "BadRequest", f"invalid object type: {shown}")
    metadata = configuration.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        return ApplyProblem(400, "BadRequest", "metadata.managedFields must be nil")
    return None


def _text(configuration: Object, name: str) -> str:
    """What is no text is as good as not there."""
    value = configuration.get(name)
    return value if isinstance(value, str) else ""


def _spelled(api_version: str, kind: str) -> str:
    if api_version.count("/") > 1:
        return "/, Kind="
    group, slash, version = api_version.rpartition("/")
    return f"{group}/{version if slash else api_version}, Kind={kind}"


class _Applying:
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
        self.atom = atom_of(tracked.schema)
        self.ownership = _ownership(tracked)

    def result(self, managed: Managed, *, force: bool) -> Object:
        live = {} if self.live is None else without_managed(self.live)
        if not managed and self.live is not None:
            managed = self._before_first_apply(live)
        live = filled(self.tracked.schema, live)
        typed_wanted = self._checked()
        if not self._is_struct:
            # What is built in was of its type when it was stored, and is.
            typed.check(self.atom, live, allow_duplicates=True)
        new, managed = self._applied(live, typed_wanted, managed, force=force)
        if not typed.same(new, live):
            if self.author in managed:
                managed = {**managed, self.author: managed[self.author].at(self.now)}
        else:
            new = live
        # Go's structs know no null; a custom object is no struct, and keeps what it was given.
        kept = without_nulls(new) if self._is_struct else new
        return with_managed(kept, self._without_never_owned(managed))

    @property
    def _is_struct(self) -> bool:
        schema = self.tracked.schema
        return schema is not None and schema.struct is not None

    def _checked(self) -> Object:
        """What is applied, known to be of its type."""
        try:
            typed.check(self.atom, self.wanted, allow_duplicates=False)
        except typed.TypeViolationError as error:
            place = self._place(self.wanted)
            raise _Refused(f"failed to create typed patch object ({place}): {error}") from error
        return self.wanted

    def _place(self, value: Object) -> str:
        metadata = value.get("metadata")
        named = metadata if isinstance(metadata, dict) else {}
        place = f"{_text(named, 'namespace')}/{_text(named, 'name')}"
        return f"{place}; {_spelled(self.tracked.api_version, self.tracked.kind)}"

    def _before_first_apply(self, live: Object) -> Managed:
        """Everything that is there has an owner, so that an apply cannot take it unnoticed."""
        try:
            typed.check(self.atom, live, allow_duplicates=True)
            return _after_update(
                None, live, {}, manager=_BEFORE_FIRST_APPLY, now=self.now, tracked=self.tracked
            )
        except typed.TypeViolationError as error:
            what = f"failed to convert new object ({self._place(live)}) to smd typed: {error}"
            raise _Refused(f"failed to create manager for existing fields: {what}") from error

    def _applied(
        self, live: Object, wanted: Object, managed: Managed, *, force: bool
    ) -> tuple[Object, Managed]:
        try:
            return self.ownership.applied(live, wanted, managed, author=self.author, force=force)
        except ConflictError as error:
            if self.manager != last_applied.KUBECTL:
                raise
            kept = last_applied.disputed(error.conflicts, live, self.atom, self.tracked.api_version)
            if kept:
                raise ConflictError(kept) from error
            return self.ownership.applied(live, wanted, managed, author=self.author, force=True)

    def _without_never_owned(self, managed: Managed) -> Managed:
        owned = managed.get(self.author)
        if owned is None:
            return managed
        fields = fieldsets.difference(owned.fields, _NEVER_OWNED)
        others = {author: each for author, each in managed.items() if author != self.author}
        return {**others, self.author: owned.with_fields(fields)} if fields else others


class _Refused(typed.TypeViolationError):
    """A configuration that is not of its type, with the whole sentence about it."""

    def __init__(self, sentence: str) -> None:
        super().__init__([typed.Violation((), sentence)])


def _conflicts(error: ConflictError) -> ApplyConflicts:
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
        mine = (path for other, path in error.conflicts if other == author)
        lines += [f"- {fieldsets.path_text(path)}" for path in mine]
    count = len(error.conflicts)
    return ApplyConflicts(f"Apply failed with {count} conflicts: " + "\n".join(lines), causes)


def without_managed(value: Object) -> Object:
    """The object without `managedFields`."""
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return value
    kept = {name: inner for name, inner in metadata.items() if name != "managedFields"}
    return {**value, "metadata": kept}


def with_managed(value: Object, managed: Managed) -> Object:
    """The object with these owners."""
    if not managed:
        return without_managed(value)
    return {
        **value,
        "metadata": {**metadata_of(value), "managedFields": encode(managed)},
    }


def keep_times(live: Object, new: Object) -> Object:
    """
    The new object, with the times of the live one if times are all that differ.

    To be called after the strategy has prepared an update: an apply that changes nothing must
    not make a new revision.
    """
    mine = get(live, "metadata.managedFields", [])
    yours = get(new, "metadata.managedFields", [])
    if not mine or len(mine) != len(yours) or mine == yours:
        return new
    if [_timeless(each) for each in mine] != [_timeless(each) for each in yours]:
        return new
    if not typed.same(without_managed(live), without_managed(new)):
        return new
    return {**new, "metadata": {**new["metadata"], "managedFields": mine}}


def _timeless(entry: Object) -> Object:
    return {name: value for name, value in entry.items() if name != "time"}


def manager_name(field_manager: str, user_agent: str) -> str:
    """Whom a write is ascribed to: who the request says, or else the program that sent it."""
    if field_manager:
        return field_manager
    made = ""
    for character in user_agent.partition("/")[0]:
        if not character.isprintable():
            continue
        if len((made + character).encode()) > _MANAGER_BYTES_MAX:
            break
        made += character
    return made
