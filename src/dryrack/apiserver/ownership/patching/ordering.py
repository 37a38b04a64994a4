"""
The order of a list after a strategic merge patch.

Items of the patch come in the order that the patch names, the others in their order in the live
list; where both orders allow it, they are interleaved as in the live list.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.ownership.patching.problems import PatchError, does_not_apply, failed
from dryrack.kinds.text.go_json import compact, type_name

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

List = list[Any]
_DIRECTIVE = "$patch"


def no_merge_key(item: Any, key: str) -> PatchError:
    return failed(f"map: {compact(item)} does not contain declared merge key: {key}")


def bad_type(expected: str, value: Any) -> PatchError:
    return failed(f"expected a {expected}, but received a {type_name(value)}")


def element_type(*lists: List) -> type:
    """Return the type of all items; raise if types differ or items are lists."""
    kinds = [type(item) for each in lists for item in each]
    if not kinds:
        raise failed("no elements in any of the given slices")
    if kinds[0] is list:
        raise does_not_apply("lists of lists are not supported")
    if any(kind is not kinds[0] for kind in kinds):
        shown = " ".join(compact(each) for each in lists)
        raise failed(f"list element types are not identical: [{shown}]")
    return kinds[0]


def without_repeated(items: Sequence[Any]) -> List:
    """Return each scalar once; `sort_items` orders them afterwards."""
    unique: dict[Hashable, Any] = {}
    for item in items:
        unique.setdefault(token(item), item)
    return list(unique.values())


def token(value: Any) -> Hashable:
    """Return a hashable key that is equal for equal values."""
    if isinstance(value, dict | list):
        return type(value), json.dumps(value, sort_keys=True)
    scalar: Hashable = value
    return scalar


def _key_of(item: Any, key: str) -> Any:
    if not key:
        return item
    return item.get(key) if isinstance(item, dict) else None


class _Places:
    """The index of the first item with each key in a list."""

    def __init__(self, items: List, key: str) -> None:
        self._key = key
        self._indexes: dict[Hashable, int] = {}
        for index, each in enumerate(items):
            self._indexes.setdefault(token(_key_of(each, key)), index)

    def of(self, item: Any) -> int:
        """Return the index of an item, or -1."""
        return self._indexes.get(token(_key_of(item, self._key)), -1)


def _check_keys(items: List, key: str) -> None:
    for item in items if key else ():
        if not isinstance(item, dict):
            raise bad_type("map[string]interface {}", item)
        if key not in item:
            raise no_merge_key(item, key)


def check_order(patch: List, order: List, key: str) -> None:
    """Raise unless the order that a patch names has all items of the patch, in their order."""
    if not patch or not order:
        return
    _check_keys(order, key)
    items = [item for item in patch if not (key and _is_directive(item))]
    index = 0
    for ordered in order:
        if index == len(items):
            break
        _check_keys([items[index]], key)
        index += _key_of(items[index], key) == _key_of(ordered, key)
    if index < len(items):
        raise failed(
            f"The order in patch list:\n{compact(patch)}\n doesn't match $setElementOrder "
            f"list:\n{compact(order)}\n"
        )


def _is_directive(item: Any) -> bool:
    if not isinstance(item, dict):
        raise bad_type("map[string]interface {}", item)
    return _DIRECTIVE in item


def sort_items(items: List, *, wanted: List, live: List, key: str) -> List:
    """Return the items: those of `wanted` in its order, the others at their place in `live`."""
    for each in (items, wanted, live):
        _check_keys(each, key)
    wanted_places = _Places(wanted, key)
    live_places = _Places(live, key)
    ordered = sorted((item for item in items if wanted_places.of(item) >= 0), key=wanted_places.of)
    others = sorted((item for item in items if wanted_places.of(item) < 0), key=live_places.of)
    # Another item comes before the first ordered one that followed it in the live list.
    result: List = []
    index = 0
    for item in ordered:
        place = live_places.of(item)
        while index < len(others) and 0 <= live_places.of(others[index]) < place:
            result.append(others[index])
            index += 1
        result.append(item)
    return result + others[index:]
