"""
The order of a list after a strategic merge patch.

Items of the patch come in the order that the patch asks for, the others in the order that they
have; where both orders allow it they are interleaved as they were.
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
    """The type that all items have; raises if they differ or are lists."""
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
    """Each scalar once; their order is `normalised` afterwards."""
    kept: dict[Hashable, Any] = {}
    for item in items:
        kept.setdefault(token(item), item)
    return list(kept.values())


def token(value: Any) -> Hashable:
    """What two equal values have in common, to find one among thousands."""
    if isinstance(value, dict | list):
        return type(value), json.dumps(value, sort_keys=True)
    found: Hashable = value
    return found


def _key_of(item: Any, key: str) -> Any:
    if not key:
        return item
    return item.get(key) if isinstance(item, dict) else None


class _Places:
    """Where items are in a list, by their keys; of several the first."""

    def __init__(self, items: List, key: str) -> None:
        self._key = key
        self._found: dict[Hashable, int] = {}
        for at, each in enumerate(items):
            self._found.setdefault(token(_key_of(each, key)), at)

    def of(self, item: Any) -> int:
        """-1 if it is not there."""
        return self._found.get(token(_key_of(item, self._key)), -1)


def _check_keys(items: List, key: str) -> None:
    for item in items if key else ():
        if not isinstance(item, dict):
            raise bad_type("map[string]interface {}", item)
        if key not in item:
            raise no_merge_key(item, key)


def check_order(patch: List, order: List, key: str) -> None:
    """Raises unless the items of the patch are in the order that it asks for, all of them."""
    if not patch or not order:
        return
    _check_keys(order, key)
    kept = [item for item in patch if not (key and _is_directive(item))]
    at = 0
    for wanted in order:
        if at == len(kept):
            break
        _check_keys([kept[at]], key)
        at += _key_of(kept[at], key) == _key_of(wanted, key)
    if at < len(kept):
        raise failed(
            f"The order in patch list:\n{compact(patch)}\n doesn't match $setElementOrder "
            f"list:\n{compact(order)}\n"
        )


def _is_directive(item: Any) -> bool:
    if not isinstance(item, dict):
        raise bad_type("map[string]interface {}", item)
    return _DIRECTIVE in item


def normalised(items: List, *, wanted: List, live: List, key: str) -> List:
    """The items: those that are wanted in the order of the wish, the others where they were."""
    for each in (items, wanted, live):
        _check_keys(each, key)
    in_wish = _Places(wanted, key)
    in_live = _Places(live, key)
    asked = sorted((item for item in items if in_wish.of(item) >= 0), key=in_wish.of)
    others = sorted((item for item in items if in_wish.of(item) < 0), key=in_live.of)
    return _interleaved(others, asked, in_live)


def _interleaved(others: List, asked: List, live: _Places) -> List:
    """Puts an other item before the first wanted one that came after it in the live list."""
    made: List = []
    at = 0
    for item in asked:
        mine = live.of(item)
        while at < len(others) and 0 <= live.of(others[at]) < mine:
            made.append(others[at])
            at += 1
        made.append(item)
    return made + others[at:]
