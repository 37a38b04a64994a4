"""
When two values are equal, and which comes first.

Equality never fails between the language's own types; values that Kubernetes adds refuse to be
compared with anything else. An element of a list or map whose comparison fails counts as equal,
as it does upstream, except in the sum of two lists.

A list that holds another one twice, which holds a third one twice, and so on, is small, but has
very many elements. So what is inside a list or map is compared once, however often it is there.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from dryrack.cel.evaluation.values import (
    CIDR,
    IP,
    URL,
    ComputedQuantity,
    ConcatList,
    DomainMap,
    Duration,
    EmptyMessage,
    Err,
    MutableList,
    MutableMap,
    NamedFormat,
    Optional,
    OwnQuantity,
    StringMap,
    Timestamp,
    TypeValue,
    Value,
    Version,
    decode_key,
    find,
    no_such_overload,
)
from dryrack.cel.mutation import JsonPatchValue, ObjectValue
from dryrack.cel.parsing.ast import Uint
from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# The outcome for two values, known by where they are; they live as long as the comparison.
Known: TypeAlias = "dict[tuple[int, int], bool | Err]"

_LARGEST_FLOAT_INT = float(2**63)
_LARGEST_FLOAT_UINT = float(2**64)


def equal(left: Value, right: Value) -> bool | Err:
    if left is None or right is None:
        return left is right
    return equals_method(left, right)


def equals_method(left: Value, right: Value) -> bool | Err:
    """Compare as the left value does it, with no special case for null."""
    kind = type(left)
    if kind is str or kind is bool or kind is bytes:
        return type(right) is kind and bool(left == right)
    return _EQUALS[kind](left, right)


def _null(_left: None, right: Value) -> bool:
    return right is None


def _number(left: Value, right: Value) -> bool:
    order = compare_numbers(left, right)
    return order == 0 if isinstance(order, int) else False


def _list(left: list[Value], right: Value, known: Known | None = None) -> bool | Err:
    if not isinstance(right, list) or len(left) != len(right):
        return False
    if are_alike(left, right):
        return left == right
    known = {} if known is None else known
    failed: Err | None = None
    for one, other in zip(left, right, strict=True):
        same = _inside(one, other, known)
        if same is False:
            return False
        if isinstance(same, Err):
            failed = failed or same
    return failed if failed is not None and type(left) is ConcatList else True


def are_alike(*values: Iterable[Value]) -> bool:
    """Return whether all are of one class in which equality and order are Python's."""
    kinds = set(map(type, chain(*values)))
    return len(kinds) == 1 and kinds <= _PLAIN


def _map(left: dict[Any, Value], right: Value, known: Known | None = None) -> bool:
    if not isinstance(right, dict) or len(left) != len(right):
        return False
    known = {} if known is None else known
    for key, value in left.items():
        other, is_there = find(right, decode_key(key))
        if not is_there or _inside(value, other, known) is False:
            return False
    return True


def _inside(left: Value, right: Value, known: Known) -> bool | Err:
    holder = _HOLDERS.get(type(left))
    if holder is None:
        return equal(left, right)
    place = (id(left), id(right))
    if place not in known:
        known[place] = holder(left, right, known)
    return known[place]


def _same_kind(left: Value, right: Value) -> bool:
    return type(left) is type(right) and bool(left == right)


def _timestamp(left: Timestamp, right: Value) -> bool:
    return type(right) is Timestamp and left.nanos == right.nanos


def _quantity(left: Quantity, right: Value) -> bool | Err:
    # The class decides, not isinstance: a computed quantity on the right is refused.
    if type(right) is Quantity or type(right) is OwnQuantity:
        return left.nanos == right.nanos
    return no_such_overload(right)


def _opaque(left: Value, right: Value) -> bool | Err:
    return bool(left == right) if type(left) is type(right) else no_such_overload(right)


def _version(left: Version, right: Value) -> bool | Err:
    return left.key == right.key if type(right) is Version else no_such_overload(right)


def _url(left: URL, right: Value) -> bool | Err:
    return left.text == right.text if type(right) is URL else no_such_overload(right)


def _format(left: NamedFormat, right: Value) -> bool | Err:
    return left.name == right.name if type(right) is NamedFormat else no_such_overload(right)


def _optional(left: Optional, right: Value, known: Known | None = None) -> bool | Err:
    if type(right) is not Optional or left.present != right.present:
        return False
    if not left.present:
        return True
    if type(left.value) not in _HOLDERS:
        return equals_method(left.value, right.value)
    return _inside(left.value, right.value, {} if known is None else known)


def _error(left: Err, _right: Value) -> Err:
    return left


_PLAIN = frozenset((str, int, bool, bytes))
# Values that hold others.
_HOLDERS: dict[type, Callable[..., bool | Err]] = {
    Optional: _optional,
    **dict.fromkeys((list, ConcatList, MutableList), _list),
    **dict.fromkeys((dict, MutableMap, DomainMap, StringMap), _map),
}

_EQUALS: dict[type, Callable[[Any, Value], bool | Err]] = {
    **dict.fromkeys((ObjectValue, JsonPatchValue), _same_kind),
    type(None): _null,
    int: _number,
    Uint: _number,
    float: _number,
    TypeValue: _same_kind,
    Duration: _same_kind,
    EmptyMessage: _same_kind,
    Timestamp: _timestamp,
    Quantity: _quantity,
    OwnQuantity: _quantity,
    ComputedQuantity: _quantity,
    Version: _version,
    IP: _opaque,
    CIDR: _opaque,
    URL: _url,
    NamedFormat: _format,
    Err: _error,
    **_HOLDERS,
}


def compare(left: Value, right: Value) -> int | Err:
    """Give -1, 0 or 1; the caller has made sure that the left value can be ordered."""
    kind = type(left)
    if kind is int or kind is float or kind is Uint:
        return compare_numbers(left, right)
    if type(right) is not kind:
        return no_such_overload(right)
    if kind is Duration or kind is Timestamp:
        return _order(left.nanos, right.nanos)
    # Go compares the bytes of strings; code points in UTF-8 sort as their bytes do.
    return _order(left, right)


def _order(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


ORDERED = (bool, int, Uint, float, str, bytes, Duration, Timestamp)


def compare_numbers(left: Value, right: Value) -> int | Err:
    one = type(left)
    other = type(right)
    if other is not int and other is not float and other is not Uint:
        return no_such_overload(right)
    if left != left or right != right:
        return Err("NaN values cannot be ordered")
    if one is float:
        return _compare_float(left, right)
    if other is float:
        return -_compare_float(right, left)
    plain_left = left.value if one is Uint else left
    plain_right = right.value if other is Uint else right
    return _order(plain_left, plain_right)


def _compare_float(left: float, right: Value) -> int:
    if type(right) is float:
        return (left > right) - (left < right)
    number = right.value if type(right) is Uint else right
    low, high = (
        (0.0, _LARGEST_FLOAT_UINT) if type(right) is Uint else (-(2.0**63), _LARGEST_FLOAT_INT)
    )
    if left < low:
        return -1
    if left > high:
        return 1
    as_float = float(number)
    return (left > as_float) - (left < as_float)
