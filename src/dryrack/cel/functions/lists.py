"""
Functions on lists: Kubernetes' own, those of the lists extension, sets, and `includes`.

Most lists have elements of one plain type. For these Python's own sets and orders do the work;
otherwise it takes a comparison of each element with each.
"""

from __future__ import annotations

import operator
from functools import cmp_to_key
from typing import TYPE_CHECKING

from dryrack.cel.evaluation.runtime_cost import RANGE_SIZE_MAX
from dryrack.cel.evaluation.values import (
    INT_MAX,
    LIST_SIZE_MAX,
    Duration,
    Err,
    MutableMap,
    Optional,
    Value,
    contains_key,
    decode_key,
    encode_key,
    no_such_overload,
    too_large,
    type_name,
)
from dryrack.cel.functions.arithmetic import add, lacking, list_contains
from dryrack.cel.functions.equality import ORDERED, are_alike, compare, equals_method
from dryrack.cel.functions.formatting import go_text
from dryrack.cel.parsing.ast import Uint

if TYPE_CHECKING:
    from collections.abc import Callable

# The API's limit on the values of one list attribute.
INCLUDES_VALUES_MAX = 48
# A range longer than the cost limit ends the evaluation.
RANGE_MAX = 2_000_000


def size(value: Value) -> Value:
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    return lacking("size", value)


def _is_sorted(values: list[Value]) -> Value:
    if are_alike(values):
        return all(map(operator.le, values, values[1:]))
    previous: Value = None
    for position, value in enumerate(values):
        if type(value) not in ORDERED:
            return no_such_overload(value)
        if position and compare(previous, value) == 1:
            return False
        previous = value
    return True


def _are_small(values: list[Value]) -> bool:
    """Return whether all are ints of which no partial sum can be too large for one."""
    return set(map(type, values)) == {int} and max(map(abs, values)) * len(values) <= INT_MAX


def _sum(zero: Value) -> Callable[[list[Value]], Value]:
    def total(values: list[Value]) -> Value:
        if type(zero) is int and _are_small(values):
            return sum(values)
        result = zero
        for value in values:
            result = add(result, value)
            if isinstance(result, Err):
                return result
        return result

    return total


def _extreme(name: str, replaced_when: int) -> Callable[[list[Value]], Value]:
    plain = max if replaced_when < 0 else min

    def extreme(values: list[Value]) -> Value:
        if not values:
            return Err(f"{name} called on empty list")
        if are_alike(values):
            return plain(values)
        best = values[0]
        for value in values:
            if type(value) not in ORDERED:
                return no_such_overload(value)
            if compare(best, value) == replaced_when:
                best = value
        return best

    return extreme


def _index_of(values: list[Value], item: Value) -> int:
    return next((i for i, value in enumerate(values) if equals_method(value, item) is True), -1)


def _last_index_of(values: list[Value], item: Value) -> int:
    for index in range(len(values) - 1, -1, -1):
        if equals_method(values[index], item) is True:
            return index
    return -1


def _slice(values: list[Value], start: int, end: int) -> Value:
    if start < 0 or end < 0:
        return Err(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        return Err(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if len(values) < end:
        return Err(f"cannot slice({start}, {end}), list is length {len(values)}")
    return list(values[start:end])


def _declared_name(value: Value) -> str:
    """The type of a value with its parameters, of which it has long forgotten what they were."""
    name = type_name(value)
    return {"list": "list(dyn)", "map": "map(dyn, dyn)"}.get(name, name)


def _flatten_once(values: Value) -> Value:
    if not isinstance(values, list):
        return Err(f"no such overload: {_declared_name(values)}.flatten()")
    return _flatten(values, 1)


def _flatten(values: Value, depth: Value) -> Value:
    if not isinstance(values, list) or type(depth) is not int:
        return Err(f"no such overload: {_declared_name(values)}.flatten({_declared_name(depth)})")
    if depth < 0:
        return Err("level must be non-negative")
    if _flat_size(values, depth) > LIST_SIZE_MAX:
        return too_large("flatten", LIST_SIZE_MAX)
    flat: list[Value] = list(values)
    while depth > 0 and any(isinstance(value, list) for value in flat):
        flat = [
            inner for value in flat for inner in (value if isinstance(value, list) else (value,))
        ]
        depth -= 1
    return flat


def _flat_size(values: list[Value], depth: int) -> int:
    """Return the length of the flat list; the same inner list can occur many times."""
    count = 0
    level = {id(values): (values, 1)}
    while level and count <= LIST_SIZE_MAX:
        deeper: dict[int, tuple[list[Value], int]] = {}
        for each, times in level.values():
            for value in each:
                if depth > 0 and isinstance(value, list):
                    _, before = deeper.get(id(value), (value, 0))
                    deeper[id(value)] = (value, before + times)
                else:
                    count += times
        level = deeper
        depth = depth - 1
    return count


def sort(values: Value) -> Value:
    if not isinstance(values, list):
        return lacking("sort", values)
    return sort_by_keys(values, values)


def sort_by_keys(values: Value, keys: Value) -> Value:
    if not isinstance(values, list):
        return lacking("@sortByAssociatedKeys", values)
    if len(values) != len(keys):
        return Err(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys "
            f"list, but got {len(values)} and {len(keys)} elements respectively"
        )
    if not values:
        return values
    if type(keys[0]) not in ORDERED:
        return Err("list elements must be comparable")
    if any(type(key) is not type(keys[0]) for key in keys):
        return Err("list elements must have the same type")
    if are_alike(keys):
        order = sorted(range(len(keys)), key=keys.__getitem__)
    else:
        order = sorted(range(len(keys)), key=cmp_to_key(lambda i, j: _order(keys[i], keys[j])))
    return [values[index] for index in order]


def _order(left: Value, right: Value) -> int:
    order = compare(left, right)
    return 0 if isinstance(order, Err) else order


def _range(count: int) -> list[Value]:
    return list(range(min(count, RANGE_MAX)))


def _limited_range(count: int) -> Value:
    if count < 0:
        return Err(f"lists.range: size must be non-negative, got {count}")
    if count > RANGE_SIZE_MAX:
        return Err(f"lists.range: size {count} exceeds maximum allowed ({RANGE_SIZE_MAX})")
    return list(range(count))


def _distinct(values: list[Value]) -> Value:
    if are_alike(values):
        return list(dict.fromkeys(values))
    unique: list[Value] = []
    for position, value in enumerate(values):
        seen = (
            equals_method(value, other) is True
            for index, other in enumerate(unique)
            if index != position
        )
        if not any(seen):
            unique.append(value)
    return unique


def _sets_contains(values: list[Value], subset: list[Value]) -> bool:
    if are_alike(values, subset):
        return set(values).issuperset(subset)
    return all(list_contains(values, value) for value in subset)


def _sets_intersects(left: list[Value], right: list[Value]) -> bool:
    if are_alike(left, right):
        return not set(left).isdisjoint(right)
    return any(list_contains(right, value) for value in left)


def _unwrap(values: list[Value]) -> Value:
    for value in values:
        if type(value) is not Optional:
            return Err(f"value {go_text(value)} is not optional")
    return [value.value for value in values if value.present]


def _insert(mapping: dict[object, Value], key: Value, value: Value) -> Value:
    if contains_key(mapping, key):
        return Err(f"insert failed: key {go_text(key)} already exists")
    target = mapping if type(mapping) is MutableMap else dict(mapping)
    target[encode_key(key)] = value
    return target


def _insert_all(mapping: dict[object, Value], entries: dict[object, Value]) -> Value:
    target: Value = mapping
    for key, value in entries.items():
        target = _insert(target, decode_key(key), value)
        if isinstance(target, Err):
            break
    return target


def _includes(target: Value, item: Value) -> Value:
    """Return whether a list has a value, or a single value is it."""
    values = target if isinstance(target, list) else [target]
    return any(equals_method(value, item) is True for value in values)


def _includes_of_attribute(target: Value, item: Value) -> Value:
    """Return whether a list attribute has a value, or a single one is it; lists are limited."""
    if not isinstance(target, list):
        return equals_method(target, item) is True
    for position, value in enumerate(target):
        if position >= INCLUDES_VALUES_MAX:
            return Err(
                "'includes' function cannot be applied to lists longer than "
                f"{INCLUDES_VALUES_MAX} values"
            )
        if equals_method(value, item) is True:
            return True
    return False


_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ZEROS: dict[str, Value] = {
    "int": 0,
    "uint": Uint(0),
    "double": 0.0,
    "duration": Duration(0),
}

OVERLOADS: dict[str, Callable[..., Value]] = {
    **{f"list_{name}_is_sorted_bool": _is_sorted for name in _COMPARABLE},
    **{f"list_{name}_max_{name}": _extreme("max", -1) for name in _COMPARABLE},
    **{f"list_{name}_min_{name}": _extreme("min", 1) for name in _COMPARABLE},
    **{f"list_{name}_sum_{name}": _sum(zero) for name, zero in _ZEROS.items()},
    "list_a_index_of_int": _index_of,
    "list_a_last_index_of_int": _last_index_of,
    "list_slice": _slice,
    "list_flatten": _flatten_once,
    "list_flatten_int": _flatten,
    "list_flatten_depth": _flatten,
    "lists_range": _range,
    "lists_range_limited": _limited_range,
    "list_reverse": lambda values: values[::-1],
    "list_distinct": _distinct,
    "list_first": lambda values: Optional(values[0]) if values else Optional(),
    "list_last": lambda values: Optional(values[-1]) if values else Optional(),
    "optional_unwrap": _unwrap,
    "optional_unwrapOpt": _unwrap,
    "list_sets_contains_list": _sets_contains,
    "list_sets_equivalent_list": lambda left, right: (
        _sets_contains(left, right) and _sets_contains(right, left)
    ),
    "list_sets_intersects_list": _sets_intersects,
    "@mapInsert_map_key_value": _insert,
    "@mapInsert_map_map": _insert_all,
    "dra_includes_dyn_dyn": _includes_of_attribute,
    "list_includes_dyn": _includes,
}

FUNCTIONS: dict[str, Callable[..., Value]] = {
    "size": size,
    "sort": sort,
    "@sortByAssociatedKeys": sort_by_keys,
}
