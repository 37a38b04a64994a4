"""
The operators on values: `+ - * / %`, unary minus, ordering, `in`, `!`.

Each is written for what it is given at run time. The left operand decides: if it has the
operation but not with such a right operand, that is "no such overload"; if it does not have
the operation at all, the operator is named.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dryrack.cel.evaluation.values import (
    INT_MAX,
    INT_MIN,
    LIST_SIZE_MAX,
    SECOND,
    TEXT_SIZE_MAX,
    UINT_MAX,
    ConcatList,
    Duration,
    Err,
    MutableList,
    Timestamp,
    Value,
    contains_key,
    no_such_overload,
    too_large,
)
from dryrack.cel.functions.equality import ORDERED, are_alike, compare, equals_method
from dryrack.cel.parsing.ast import Uint

if TYPE_CHECKING:
    from collections.abc import Callable

TIMESTAMP_MIN_SECONDS = -62135596800
TIMESTAMP_MAX_SECONDS = 253402300799

# Strings, durations and timestamps answer to any function name and then refuse it in fewer words.
_RECEIVERS = (str, Duration, Timestamp)


def lacking(operator: str, left: Value) -> Err:
    if type(left) in _RECEIVERS:
        return no_such_overload()
    return Err(f"no such overload: {operator}")


def checked_int(number: int) -> int | Err:
    return number if INT_MIN <= number <= INT_MAX else Err("integer overflow")


def checked_uint(number: int) -> Uint | Err:
    return Uint(number) if 0 <= number <= UINT_MAX else Err("unsigned integer overflow")


def _checked_duration(nanos: int) -> Duration | Err:
    return Duration(nanos) if INT_MIN <= nanos <= INT_MAX else Err("integer overflow")


def _checked_timestamp(nanos: int, offset: int) -> Timestamp | Err:
    if not TIMESTAMP_MIN_SECONDS <= nanos // SECOND <= TIMESTAMP_MAX_SECONDS:
        return Err("timestamp overflow")
    return Timestamp(nanos, offset)


def add(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is Timestamp or kind is Duration:
        return _add_time(left, right)
    if isinstance(left, list):
        if not isinstance(right, list):
            return no_such_overload()
        if len(left) + len(right) > LIST_SIZE_MAX:
            return too_large("_+_", LIST_SIZE_MAX)
        if type(left) is MutableList:
            left.extend(list(right))
            return left
        if not left or not right:
            return left or right
        return ConcatList((*left, *right))
    if kind not in (int, Uint, float, str, bytes):
        return lacking("_+_", left)
    if type(right) is not kind:
        return no_such_overload(right)
    if kind is int:
        return checked_int(left + right)
    if kind is Uint:
        return checked_uint(left.value + right.value)
    if kind is not float and len(left) + len(right) > TEXT_SIZE_MAX:
        return too_large("_+_", TEXT_SIZE_MAX)
    return left + right


def _add_time(left: Value, right: Value) -> Value:
    if type(left) is Duration and type(right) is Duration:
        return _checked_duration(left.nanos + right.nanos)
    if type(left) is Timestamp and type(right) is Duration:
        return _checked_timestamp(left.nanos + right.nanos, left.offset_seconds)
    if type(left) is Duration and type(right) is Timestamp:
        return _checked_timestamp(left.nanos + right.nanos, right.offset_seconds)
    return no_such_overload(right)


def subtract(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is Timestamp:
        if type(right) is Timestamp:
            return _checked_duration(left.nanos - right.nanos)
        if type(right) is not Duration:
            return no_such_overload()
        if right.nanos == INT_MIN:
            return Err("integer overflow")
        return _checked_timestamp(left.nanos - right.nanos, left.offset_seconds)
    if kind not in (int, Uint, float, Duration):
        return lacking("_-_", left)
    if type(right) is not kind:
        return no_such_overload(right)
    if kind is int:
        return checked_int(left - right)
    if kind is Duration:
        return _checked_duration(left.nanos - right.nanos)
    return checked_uint(left.value - right.value) if kind is Uint else left - right


def multiply(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind not in (int, Uint, float):
        return lacking("_*_", left)
    if type(right) is not kind:
        return no_such_overload(right)
    if kind is int:
        return checked_int(left * right)
    return checked_uint(left.value * right.value) if kind is Uint else left * right


def divide(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind not in (int, Uint, float):
        return lacking("_/_", left)
    if type(right) is not kind:
        return no_such_overload(right)
    if kind is float:
        if right != 0:
            return left / right
        if left == 0 or left != left:
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    if kind is Uint:
        return Uint(left.value // right.value) if right.value else Err("division by zero")
    if right == 0:
        return Err("division by zero")
    quotient = abs(left) // abs(right)
    return checked_int(quotient if (left < 0) == (right < 0) else -quotient)


def modulo(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is not int and kind is not Uint:
        return lacking("_%_", left)
    if type(right) is not kind:
        return no_such_overload(right)
    if kind is Uint:
        return Uint(left.value % right.value) if right.value else Err("modulus by zero")
    if right == 0:
        return Err("modulus by zero")
    if left == INT_MIN and right == -1:
        return Err("integer overflow")
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def negate(value: Value) -> Value:
    kind = type(value)
    if kind is bool:
        return no_such_overload()
    if kind is int:
        return checked_int(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return _checked_duration(-value.nanos)
    return lacking("-_", value)


def logical_not(value: Value) -> Value:
    return not value if type(value) is bool else no_such_overload()


def not_strictly_false(value: Value) -> bool:
    return value if type(value) is bool else True


def _comparison(operator: str, holds: Callable[[int], bool]) -> Callable[[Value, Value], Value]:
    def run(left: Value, right: Value) -> Value:
        if type(left) not in ORDERED:
            return lacking(operator, left)
        order = compare(left, right)
        return order if isinstance(order, Err) else holds(order)

    return run


less = _comparison("_<_", lambda order: order < 0)
less_equals = _comparison("_<=_", lambda order: order <= 0)
greater = _comparison("_>_", lambda order: order > 0)
greater_equals = _comparison("_>=_", lambda order: order >= 0)


def is_in(item: Value, container: Value) -> Value:
    if isinstance(container, dict):
        return contains_key(container, item)
    if isinstance(container, list):
        return list_contains(container, item)
    return no_such_overload()


def list_contains(container: list[Value], item: Value) -> bool:
    if are_alike(container, (item,)):
        return item in container
    return any(equals_method(item, element) is True for element in container)


OPERATORS: dict[str, Callable[..., Value]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "-_": negate,
    "!_": logical_not,
    "_<_": less,
    "_<=_": less_equals,
    "_>_": greater,
    "_>=_": greater_equals,
    "@in": is_in,
    "@not_strictly_false": not_strictly_false,
    "__not_strictly_false__": not_strictly_false,
}
