"""Quantities and semantic versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.cel.evaluation.values import (
    INT_MAX,
    ComputedQuantity,
    Err,
    OwnQuantity,
    Value,
    Version,
)
from dryrack.kinds.quantity import Format, Quantity, QuantityError
from dryrack.kinds.semver import Semver, SemverError

if TYPE_CHECKING:
    from collections.abc import Callable


def parse_quantity(text: str) -> Value:
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        return Err(str(error))


def _new_quantity(text: str) -> Value:
    # A new object each time, because as a key of a map a quantity is equal to itself alone,
    # and equal texts are parsed only once.
    parsed = parse_quantity(text)
    return parsed if isinstance(parsed, Err) else OwnQuantity.from_quantity(parsed)


def _is_quantity(text: str) -> bool:
    return isinstance(parse_quantity(text), Quantity)


def _as_integer(quantity: Quantity) -> Value:
    number = quantity.as_int64()
    return Err("cannot convert value to integer") if number is None else number


def _add(left: Quantity, right: Quantity) -> Quantity:
    return _compute(left, left + right)


def _subtract(left: Quantity, right: Quantity) -> Quantity:
    return _compute(left, left - right)


def _compute(left: Quantity, result: Quantity) -> Quantity:
    own = ComputedQuantity.from_quantity(result)
    if isinstance(left, OwnQuantity):
        left.computed(own)
    return own


def _sum(left: Quantity, right: Quantity) -> Quantity:
    return ComputedQuantity.from_quantity(left + right)


def _difference(left: Quantity, right: Quantity) -> Quantity:
    return ComputedQuantity.from_quantity(left - right)


def _of_int(number: int) -> Quantity:
    return Quantity(number * 10**9, Format.DECIMAL_EXPONENT, unscaled=number, scale=0, big=False)


def _compare_quantities(left: Quantity, right: Quantity) -> int:
    if isinstance(left, OwnQuantity):
        left.compared_with(right)
    return (left.nanos > right.nanos) - (left.nanos < right.nanos)


def parse_version(text: str, normalize: Value = False) -> Value:
    try:
        return Version(Semver.parse_tolerant(text) if normalize else Semver.parse(text))
    except SemverError as error:
        return Err(str(error))


def _is_version(text: str, normalize: Value = False) -> bool:
    return type(parse_version(text, normalize)) is Version


def _compare_versions(left: Version, right: Version) -> int:
    return (left.key > right.key) - (left.key < right.key)


def _as_signed(number: int) -> int:
    """Numbers of a version are unsigned in Go and wrap round where CEL has an int."""
    return number if number <= INT_MAX else number - 2**64


OVERLOADS: dict[str, Callable[..., Value]] = {
    "string_to_quantity": _new_quantity,
    "is_quantity_string": _is_quantity,
    "quantity_sign": lambda quantity: quantity.sign,
    "quantity_is_greater_than": lambda left, right: _compare_quantities(left, right) > 0,
    "quantity_is_less_than": lambda left, right: _compare_quantities(left, right) < 0,
    "quantity_compare_to": _compare_quantities,
    "quantity_get_float": lambda quantity: quantity.as_approximate_float(),
    "quantity_get_int": _as_integer,
    "quantity_is_integer": lambda quantity: quantity.as_int64() is not None,
    "quantity_add": _add,
    "quantity_add_int": lambda left, right: _add(left, _of_int(right)),
    "quantity_sub": _subtract,
    "quantity_sub_int": lambda left, right: _subtract(left, _of_int(right)),
    "quantity_add_copy": _sum,
    "quantity_add_int_copy": lambda left, right: _sum(left, _of_int(right)),
    "quantity_sub_copy": _difference,
    "quantity_sub_int_copy": lambda left, right: _difference(left, _of_int(right)),
    "string_to_semver": parse_version,
    "string_bool_to_semver": parse_version,
    "is_semver_string": _is_version,
    "is_semver_string_bool": _is_version,
    "semver_is_greater_than": lambda left, right: left.key > right.key,
    "semver_is_less_than": lambda left, right: left.key < right.key,
    "semver_compare_to": _compare_versions,
    "semver_major": lambda version: _as_signed(version.semver.major),
    "semver_minor": lambda version: _as_signed(version.semver.minor),
    "semver_patch": lambda version: _as_signed(version.semver.patch),
}
