"""
Strategic merge patch: a merge patch that follows the schema of the kind.

Lists whose schema names a merge key are merged item by item, merged lists of scalars become their
union, and directives in the patch delete, replace and order. Other lists are replaced, as by a
merge patch. Neither the object nor the patch is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.ownership.patching import ordering
from dryrack.apiserver.ownership.patching.merge_patch import without_nulls
from dryrack.apiserver.ownership.patching.problems import PatchError, bad_patch, failed
from dryrack.kinds.text.go_json import compact

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dryrack.kinds.schemas import Schema

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList"
_ORDER = "$setElementOrder"
_MISSING: Any = object()

Map = dict[str, Any]
List = list[Any]


def merge(live: Map | None, patch: Map, schema: Schema | None) -> Map:
    """Return the live object with the patch merged into it; raise a `PatchError`."""
    match patch.get(_DIRECTIVE, _MISSING):
        case other if other is _MISSING:
            pass
        case "replace":
            return {name: value for name, value in patch.items() if name != _DIRECTIVE}
        case "delete":
            return {}
        case other:
            raise _unknown_directive(other, patch)
    merged = _retain_keys(dict(live or {}), patch)
    rest = {name: value for name, value in patch.items() if name != _RETAIN}
    for name in [each for each in rest if each.startswith(_ORDER)]:
        _merge_in_order(merged, rest, name, schema)
    for name, value in rest.items():
        if name.startswith(_DELETE_FROM):
            _delete_from(merged, _target(name, _DELETE_FROM), value)
            continue
        new = _MISSING
        if value is not None:
            new = _merge_value(merged.get(name, _MISSING), value, name, schema)
        if new is _MISSING:
            merged.pop(name, None)
        else:
            merged[name] = new
    return merged


def _unknown_directive(directive: Any, patch: Map) -> PatchError:
    shown = compact(directive)
    return failed(f"unknown patch type: {shown} in map: {compact(patch)}")


def _retain_keys(live: Map, patch: Map) -> Map:
    """Return the live object with the keys alone that the patch retains, if it names any."""
    if _RETAIN not in patch:
        return live
    keys = patch[_RETAIN]
    if not isinstance(keys, list):
        raise bad_patch("invalid patch format of retainKeys")
    names = {each for each in keys if isinstance(each, str)}
    for name, value in patch.items():
        is_directive = name == _RETAIN or name.startswith((_DELETE_FROM, _ORDER))
        if value is not None and not is_directive and name not in names:
            raise bad_patch("invalid patch format of retainKeys")
    return {name: value for name, value in live.items() if name in names}


def _target(name: str, directive: str) -> str:
    """Return the field in `$directive/field`."""
    prefix, slash, target = name.partition("/")
    if prefix == directive and slash:
        return target
    what = "primitive list" if directive == _DELETE_FROM else "setElementOrder list"
    raise bad_patch(f"invalid patch format of {what}")


def _delete_from(merged: Map, name: str, unwanted: Any) -> None:
    live = merged.get(name, _MISSING)
    if unwanted is None:
        merged.pop(name, None)
    elif isinstance(live, list) and isinstance(unwanted, list):
        if live or unwanted:
            ordering.element_type(live, unwanted)
        tokens = {ordering.token(item) for item in unwanted}
        merged[name] = [item for item in live if ordering.token(item) not in tokens]


def _merge_value(live: Any, patch: Any, name: str, schema: Schema | None) -> Any:
    """Return the new value of a field, or `_MISSING`."""
    if isinstance(live, dict) and isinstance(patch, dict):
        below = _field(schema, name)
        if below is not None and "replace" in below.patch_strategies:
            return patch
        return merge(live, patch, below)
    if isinstance(live, list) and isinstance(patch, list):
        return _merge_lists(live, patch, _field(schema, name))
    return without_directives(without_nulls(patch))


def _field(schema: Schema | None, name: str) -> Schema | None:
    """Return the schema of a field to merge; raise if the kind has no such field."""
    if schema is None:
        return None
    below = schema.named(name)
    if below is None and not schema.property_names:
        raise failed("merging an object in json but data type is not struct, instead is: map")
    if below is None:
        kind = schema.name.rpartition(".")[2]
        raise failed(f'unable to find api field in struct {kind} for the json field "{name}"')
    return below


def _merge_lists(live: List, patch: List, schema: Schema | None) -> List:
    if schema is None or "merge" not in schema.patch_strategies:
        return patch
    if not live and not patch:
        return live
    kind = ordering.element_type(live, patch)
    key = schema.merge_key
    if kind is not dict:
        both = ordering.without_repeated([*live, *patch])
        return ordering.sort_items(both, wanted=patch, live=live, key="")
    if not key:
        raise failed("cannot merge lists without merge key for struct")
    live, patch = _apply_directives(live, patch, key)
    merged = list(live)
    places: dict[Hashable, int] = {}
    for index, each in enumerate(live):
        places.setdefault(ordering.token(each.get(key, _MISSING)), index)
    for item in patch:
        if key not in item:
            raise ordering.no_merge_key(item, key)
        place = places.setdefault(ordering.token(item[key]), len(merged))
        if place == len(merged):
            merged.append(item)
        else:
            merged[place] = merge(merged[place], item, schema.items)
    return ordering.sort_items(merged, wanted=patch, live=live, key=key)


def _apply_directives(live: List, patch: List, key: str) -> tuple[List, List]:
    """Return both lists after the items of the patch that are directives were applied."""
    items: List = []
    replaces = False
    deleted = set()
    for item in patch:
        match item.get(_DIRECTIVE, _MISSING):
            case "delete":
                if key not in item:
                    raise ordering.no_merge_key(item, key)
                deleted.add(ordering.token(item[key]))
            case "replace":
                replaces = True
            case "merge":
                raise failed("merging lists cannot yet be specified in the patch")
            case other if other is not _MISSING:
                raise _unknown_directive(other, item)
            case _:
                items.append(item)
    if replaces:
        return items, []
    if deleted:
        live = [each for each in live if ordering.token(each.get(key, _MISSING)) not in deleted]
    return live, items


def _merge_in_order(merged: Map, rest: Map, name: str, schema: Schema | None) -> None:
    """Merge a list in the order that the patch names; remove the list and the order from `rest`."""
    order = rest.pop(name)
    if not isinstance(order, list):
        raise ordering.bad_type("[]interface {}", order)
    target = _target(name, _ORDER)
    for value in (merged.get(target, []), rest.get(target, [])):
        if not isinstance(value, list):
            raise ordering.bad_type("[]interface {}", value)
    live = merged.get(target)
    patch = rest.pop(target, None)
    below = _field(schema, target)
    key = "" if below is None else below.merge_key
    ordering.check_order(patch or [], order, key)
    if live is None and patch is None:
        return
    if live is None:
        items = without_directives(patch)
    else:
        items = live if patch is None else _merge_lists(live, patch, below)
    ordering.element_type(live or [], patch or [])
    merged[target] = ordering.sort_items(items, wanted=order, live=live or [], key=key)


def without_directives(value: Any) -> Any:
    """Return a new value without the maps that are directives: they have nothing to act on."""
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return _MISSING
        members = {name: without_directives(each) for name, each in value.items()}
        return {name: each for name, each in members.items() if each is not _MISSING}
    if isinstance(value, list):
        items = (without_directives(each) for each in value)
        return [each for each in items if each is not _MISSING]
    return value
