"""
Change an object and keep what is not modelled.

A typed object knows some of the fields of its document. To change the document, give the typed
object as it was read and as it should be: only the differences are applied. A quantity that did
not change keeps its spelling, and a field that nobody here knows keeps its value.

The elements of a list are paired by what Kubernetes merges them by (name, uid, type, key), so
that an unknown field stays with its element when another is removed before it.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from dryrack.kinds import shape
from dryrack.kinds.decode import to_json

T = TypeVar("T", bound=msgspec.Struct)

# Fields that together identify an element of a list; the first set that the element has, and
# that tells all elements apart, is used.
_IDENTITIES = (
    ("request", "driver", "pool", "device", "shareID"),
    ("driver", "pool", "device", "shareID"),
    ("uid",),
    ("name",),
    ("counterSet",),
    ("type",),
    ("key", "effect", "operator"),
    ("key",),
)


def changed(raw: dict[str, Any], before: T, after: T) -> dict[str, Any]:
    """The document `raw`, of which `before` was read, such that it reads as `after`."""
    known = shape.of(type(before))
    change = msgspec.json.decode(to_json(before)), msgspec.json.decode(to_json(after))
    result = _merged(raw, change, known)
    assert isinstance(result, dict), "an object stays an object"
    return result


def _merged(raw: Any, change: tuple[Any, Any], known: shape.Shape) -> Any:
    before, after = change
    if before == after:
        return raw
    match known:
        case shape.Fields(fields=fields) if isinstance(raw, dict) and isinstance(after, dict):
            return _merged_fields(raw, (before, after), fields)
        case shape.Entries(value=value) if isinstance(raw, dict) and isinstance(after, dict):
            # An entry of a map can always be removed, whatever its value is.
            left = {key: each for key, each in raw.items() if key in after or key not in before}
            entries = dict.fromkeys(after, value)
            return _merged_fields(left, (before, after), entries)
        case shape.Items(item=item) if isinstance(raw, list) and isinstance(after, list):
            return _merged_items(raw, (before, after), item)
        case _:
            return after


def _merged_fields(
    raw: dict[str, Any],
    change: tuple[dict[str, Any], dict[str, Any]],
    fields: Mapping[str, shape.Shape],
) -> dict[str, Any]:
    before, after = change
    result = dict(raw)
    for key, known in fields.items():
        if key not in before and key not in after:
            continue
        empty = _empty(known)
        # An object that is always there is never removed, only emptied of what is known.
        stays = isinstance(known, shape.Fields) and not known.nullable and key in raw
        if key not in after and not stays:
            result.pop(key, None)
        elif key not in raw:
            result |= {} if before.get(key) == after.get(key) else {key: after[key]}
        else:
            parts = before.get(key, empty), after.get(key, empty)
            result[key] = _merged(raw[key], parts, known)
    return result


def _empty(known: shape.Shape) -> Any:
    match known:
        case shape.Fields() | shape.Entries():
            return {}
        case shape.Items():
            return []
        case _:
            return None


def _merged_items(
    raw: list[Any], change: tuple[list[Any], list[Any]], item: shape.Shape
) -> list[Any]:
    before, after = change
    if len(raw) != len(before):
        return after
    if not isinstance(item, shape.Fields):
        return _paired_equal(raw, before, after)
    for identity in _IDENTITIES:
        if (
            identity[0] in item.fields
            and _distinct(before, identity)
            and _distinct(after, identity)
        ):
            olds = {_identity(old, identity): index for index, old in enumerate(before)}
            pairs = [olds.get(_identity(new, identity)) for new in after]
            break
    else:
        same_length = len(before) == len(after)
        pairs = list(range(len(after))) if same_length else _equal_pairs(before, after)
    return [
        new if index is None else _merged(raw[index], (before[index], new), item)
        for index, new in zip(pairs, after, strict=True)
    ]


def _identity(element: dict[str, Any], fields: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(element.get(field, "") for field in fields)


def _distinct(elements: Sequence[dict[str, Any]], fields: tuple[str, ...]) -> bool:
    return len({_identity(element, fields) for element in elements}) == len(elements)


def _equal_pairs(before: list[Any], after: list[Any]) -> list[int | None]:
    """For each new element the old one that equals it, each old one used once, in order."""
    waiting = deque(enumerate(before))
    pairs: list[int | None] = []
    for new in after:
        found = next((pair for pair in waiting if pair[1] == new), None)
        if found is not None:
            waiting.remove(found)
        pairs.append(found[0] if found else None)
    return pairs


def _paired_equal(raw: list[Any], before: list[Any], after: list[Any]) -> list[Any]:
    pairs = _equal_pairs(before, after)
    return [new if index is None else raw[index] for index, new in zip(pairs, after, strict=True)]
