"""
Strategic merge patch: a merge patch that knows the kind it patches.

Lists whose schema names a merge key are merged item by item, lists of scalars that are merged
are united, and directives in the patch delete, replace and order. What the schema does not mark
is replaced, as by a merge patch. Neither the object nor the patch is changed.
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


def merged(live: Map, patch: Map, schema: Schema | None) -> Map:
    """The live object with the patch merged into it; raises `PatchError`."""
    return _map(live, patch, schema)


def _map(live: Map | None, patch: Map, schema: Schema | None) -> Map:
    if _DIRECTIVE in patch:
        return _directed(patch)
    made = _retained(dict(live or {}), patch)
    left = {name: value for name, value in patch.items() if name != _RETAIN}
    for name in [each for each in left if each.startswith(_ORDER)]:
        _place_in_order(made, left, name, schema)
    for name, value in left.items():
        if name.startswith(_DELETE_FROM):
            _delete_from(made, _target(name, _DELETE_FROM), value)
        elif value is None:
            made.pop(name, None)
        else:
            _put(made, name, _value(made.get(name, _MISSING), value, name, schema))
    return made


def _put(made: Map, name: str, value: Any) -> None:
    if value is _MISSING:
        made.pop(name, None)
    else:
        made[name] = value


def _directed(patch: Map) -> Map:
    match patch[_DIRECTIVE]:
        case "replace":
            return {name: value for name, value in patch.items() if name != _DIRECTIVE}
        case "delete":
            return {}
        case other:
            raise _unknown_directive(other, patch)


def _unknown_directive(directive: Any, patch: Map) -> PatchError:
    shown = compact(directive)
    return failed(f"unknown patch type: {shown} in map: {compact(patch)}")


def _retained(live: Map, patch: Map) -> Map:
    """Without what the patch does not retain."""
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
    """The field that `$directive/field` is about."""
    prefix, slash, target = name.partition("/")
    if prefix == directive and slash:
        return target
    what = "primitive list" if directive == _DELETE_FROM else "setElementOrder list"
    raise bad_patch(f"invalid patch format of {what}")


def _delete_from(made: Map, name: str, unwanted: Any) -> None:
    live = made.get(name, _MISSING)
    if unwanted is None:
        made.pop(name, None)
    elif isinstance(live, list) and isinstance(unwanted, list):
        if live or unwanted:
            ordering.element_type(live, unwanted)
        tokens = {ordering.token(item) for item in unwanted}
        made[name] = [item for item in live if ordering.token(item) not in tokens]


def _value(live: Any, patch: Any, name: str, schema: Schema | None) -> Any:
    """What comes to be at a field; `_MISSING` if nothing does."""
    if isinstance(live, dict) and isinstance(patch, dict):
        below = _field(schema, name)
        if "replace" in _strategies(below):
            return patch
        return _map(live, patch, below)
    if isinstance(live, list) and isinstance(patch, list):
        return _list(live, patch, _field(schema, name))
    return undirected(without_nulls(patch))


def _field(schema: Schema | None, name: str) -> Schema | None:
    """The schema of a field whose value is to be merged: only structs know how."""
    if schema is None:
        return None
    found = schema.named(name)
    if found is None and not schema.property_names:
        raise failed("merging an object in json but data type is not struct, instead is: map")
    if found is None:
        kind = schema.name.rpartition(".")[2]
        raise failed(f'unable to find api field in struct {kind} for the json field "{name}"')
    return found


def _strategies(schema: Schema | None) -> frozenset[str]:
    return frozenset() if schema is None else schema.patch_strategies


def _list(live: List, patch: List, schema: Schema | None) -> List:
    if schema is None or "merge" not in schema.patch_strategies:
        return patch
    if not live and not patch:
        return live
    kind = ordering.element_type(live, patch)
    key = schema.merge_key
    if kind is not dict:
        both = ordering.without_repeated([*live, *patch])
        return ordering.normalised(both, wanted=patch, live=live, key="")
    if not key:
        raise failed("cannot merge lists without merge key for struct")
    before, left = _special(live, patch, key)
    made = _items(before, left, key, schema.items)
    return ordering.normalised(made, wanted=left, live=before, key=key)


def _special(live: List, patch: List, key: str) -> tuple[List, List]:
    """The live items and those of the patch, after items that are directives are obeyed."""
    left: List = []
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
                left.append(item)
    if replaces:
        return left, []
    kept = [each for each in live if ordering.token(each.get(key, _MISSING)) not in deleted]
    return kept if deleted else live, left


def _items(live: List, patch: List, key: str, schema: Schema | None) -> List:
    made = list(live)
    places: dict[Hashable, int] = {}
    for at, each in enumerate(live):
        places.setdefault(ordering.token(each.get(key, _MISSING)), at)
    for item in patch:
        if key not in item:
            raise ordering.no_merge_key(item, key)
        place = places.setdefault(ordering.token(item[key]), len(made))
        if place == len(made):
            made.append(item)
        else:
            made[place] = _map(made[place], item, schema)
    return made


def _place_in_order(made: Map, left: Map, name: str, schema: Schema | None) -> None:
    """Merges a list and puts it in the order that the patch asks for; takes both out of it."""
    order = left.pop(name)
    if not isinstance(order, list):
        raise ordering.bad_type("[]interface {}", order)
    target = _target(name, _ORDER)
    for value in (made.get(target, []), left.get(target, [])):
        if not isinstance(value, list):
            raise ordering.bad_type("[]interface {}", value)
    live = made.get(target)
    patch = left.pop(target, None)
    below = _field(schema, target)
    key = "" if below is None else below.merge_key
    ordering.check_order(patch or [], order, key)
    if live is None and patch is None:
        return
    if live is None:
        merged_list = undirected(patch)
    else:
        merged_list = live if patch is None else _list(live, patch, below)
    ordering.element_type(live or [], patch or [])
    made[target] = ordering.normalised(merged_list, wanted=order, live=live or [], key=key)


def undirected(value: Any) -> Any:
    """A new value: what carries a directive has nothing to act on, and is left out."""
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return _MISSING
        kept = {name: undirected(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each is not _MISSING}
    if isinstance(value, list):
        items = (undirected(each) for each in value)
        return [each for each in items if each is not _MISSING]
    return value
