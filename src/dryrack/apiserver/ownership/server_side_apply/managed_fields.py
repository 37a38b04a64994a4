"""managedFields after a create, an update or a patch."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.apiserver.ownership.server_side_apply import fieldsets, typed
from dryrack.apiserver.ownership.server_side_apply.atoms import atom_of
from dryrack.apiserver.ownership.server_side_apply.comparing import differing_parts
from dryrack.apiserver.ownership.server_side_apply.entries import (
    UPDATE,
    Managed,
    ManagedFieldsError,
    Owned,
    author_of,
    cap_updaters,
    decode,
    encode,
)
from dryrack.apiserver.ownership.server_side_apply.owning import WITHOUT_REQUIRED_KEYS, Ownership
from dryrack.base.limits import LARGE_OBJECT_BYTES
from dryrack.kinds.paths import get, metadata_of
from dryrack.kinds.schemas.shape import fill_unset_to_atoms, skeleton

if TYPE_CHECKING:
    from dryrack.apiserver.ownership.server_side_apply.owning import Object, Tracked

_MANAGER_BYTES_MAX = 128
# Fields that every object needs and that no manager decides about.
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
NEVER_OWNED = fieldsets.of_paths(
    [
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(("f:metadata", f"f:{name}") for name in sorted(_NEVER_OWNED_METADATA)),
    ]
)
# Pods come from few templates at a time, which are small.
_TEMPLATES_MAX = 256
_fields_by_template: dict[tuple[str, tuple[tuple[str, ...], ...], bytes], bytes] = {}
_encode_json = msgspec.json.Encoder().encode
_decode_json = msgspec.json.Decoder(dict[str, Any]).decode


def managed_after_update(
    live: Object | None, new: Object, *, manager: str, now: str, tracked: Tracked
) -> Object:
    """
    Return the new object with `managedFields` as they are after a create, update or patch.

    To be called when the request is decoded and defaulted, before the strategy prepares it: what
    controllers and admission change afterwards is not the manager's. `live` is None on create.
    `now` is RFC 3339 with seconds.
    """
    sent = get(new, "metadata.managedFields")
    managed: Managed = {}
    is_reset = False
    if sent is not None and not tracked.subresource:
        is_reset = sent in ([], [{}])
        managed = {} if is_reset else _decode_or_empty(sent)
    if live is not None and not managed and not is_reset:
        managed = _decode_or_empty(get(live, "metadata.managedFields"))
    bare = without_managed(new)
    if live is not None and not managed:
        # An object whose fields were not tracked until now stays untracked.
        return bare
    try:
        if live is not None and tracked.kind in WITHOUT_REQUIRED_KEYS:
            typed.check(atom_of(tracked.schema), bare, allow_duplicates=True)
        managed = after_update(live, bare, managed, manager=manager, now=now, tracked=tracked)
    except typed.TypeViolationError:
        if not tracked.keeps_owners_on_failure:
            return bare
        entries = get(live or {}, "metadata.managedFields")
        return with_managed(bare, _decode_or_empty(entries)) if entries else bare
    return with_managed(bare, managed)


def _decode_or_empty(entries: Any) -> Managed:
    try:
        return decode(entries)
    except ManagedFieldsError:
        return {}


def after_update(
    live: Object | None,
    new: Object,
    managed: Managed,
    *,
    manager: str,
    now: str,
    tracked: Tracked,
) -> Managed:
    """Return the owners after a create, update or patch of an object without managedFields."""
    if live is None and not managed:
        fields = _fields_of_new(new, tracked)
    else:
        managed, fields = _compare_with_live(live, new, managed, tracked)
    if fields:
        author = author_of(manager, UPDATE, tracked.api_version, tracked.subresource)
        previous = managed.get(author)
        owned = fields if previous is None else fieldsets.union(fields, previous.fields)
        managed = {**managed, author: Owned(owned, tracked.api_version, now)}
    return cap_updaters(managed)


def _fields_of_new(new: Object, tracked: Tracked) -> fieldsets.FieldSet:
    """Return the fields of a new object, from a cache for pods of one template."""
    schema = tracked.schema
    if tracked.kind != "Pod" or schema is None or schema.struct is None:
        return _compare_with_live(None, new, {}, tracked)[1]
    metadata = {
        name: value for name, value in metadata_of(new).items() if name not in _NEVER_OWNED_METADATA
    }
    template_json = _encode_json({**new, "metadata": metadata})
    template = (tracked.api_version, tracked.reset, template_json)
    fields_json = _fields_by_template.get(template)
    if fields_json is not None:
        return _decode_json(fields_json)
    fields = _compare_with_live(None, new, {}, tracked)[1]
    if len(template_json) <= LARGE_OBJECT_BYTES:
        if len(_fields_by_template) >= _TEMPLATES_MAX:
            del _fields_by_template[next(iter(_fields_by_template))]
        # As JSON it is one Python object, not a tree of them.
        _fields_by_template[template] = _encode_json(fields)
    return fields


def _compare_with_live(
    live: Object | None, new: Object, managed: Managed, tracked: Tracked
) -> tuple[Managed, fieldsets.FieldSet]:
    """Return the other owners after a write, and the fields that the write owns."""
    schema = tracked.schema
    old = skeleton(schema)
    new = without_managed(new)
    if live is not None:
        old = without_managed(live)
        if all(each.api_version == tracked.api_version for each in managed.values()):
            # Most of an object is unchanged, and need not be filled and compared.
            old, new = differing_parts(old, new)
        old = fill_unset_to_atoms(schema, old)
    new = fill_unset_to_atoms(schema, new)
    managed, fields = ownership_of(tracked).after_update(old, new, managed)
    return managed, fieldsets.difference(fields, NEVER_OWNED)


def ownership_of(tracked: Tracked) -> Ownership:
    return Ownership(tracked.versions, tracked.api_version, _fields_at(tracked.reset))


@cache
def _fields_at(paths: tuple[tuple[str, ...], ...]) -> fieldsets.FieldSet:
    return fieldsets.of_paths([tuple(f"f:{name}" for name in path) for path in paths])


def without_managed(obj: Object) -> Object:
    """Return the object without `managedFields`."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    others = {name: value for name, value in metadata.items() if name != "managedFields"}
    return {**obj, "metadata": others}


def with_managed(obj: Object, managed: Managed) -> Object:
    """Return the object with these owners."""
    if not managed:
        return without_managed(obj)
    return {**obj, "metadata": {**metadata_of(obj), "managedFields": encode(managed)}}


def keep_times(live: Object, new: Object) -> Object:
    """
    Return the new object, with the times of the live one if nothing else differs.

    To be called after the strategy has prepared an update: an apply that changes nothing must
    not make a new revision.
    """
    live_entries = get(live, "metadata.managedFields", [])
    new_entries = get(new, "metadata.managedFields", [])
    if not live_entries or len(live_entries) != len(new_entries) or live_entries == new_entries:
        return new
    for live_entry, new_entry in zip(live_entries, new_entries, strict=True):
        if {**live_entry, "time": ""} != {**new_entry, "time": ""}:
            return new
    if not typed.same(without_managed(live), without_managed(new)):
        return new
    return {**new, "metadata": {**new["metadata"], "managedFields": live_entries}}


def manager_name(field_manager: str, user_agent: str) -> str:
    """Return the manager that the request names, or the name of the program that sent it."""
    if field_manager:
        return field_manager
    name = ""
    for character in user_agent.partition("/")[0]:
        if not character.isprintable():
            continue
        if len((name + character).encode()) > _MANAGER_BYTES_MAX:
            break
        name += character
    return name
