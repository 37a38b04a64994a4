"""Conversions between types: `int()`, `string()`, `duration()` and the rest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dryrack.cel.evaluation.values import (
    NONE,
    SECOND,
    Duration,
    EmptyMessage,
    Err,
    Optional,
    Timestamp,
    TypeValue,
    Value,
    type_name,
)
from dryrack.cel.functions import go_numbers
from dryrack.cel.functions.arithmetic import (
    TIMESTAMP_MAX_SECONDS,
    TIMESTAMP_MIN_SECONDS,
    checked_int,
    checked_uint,
)
from dryrack.cel.mutation import ObjectValue
from dryrack.cel.parsing.ast import Uint

if TYPE_CHECKING:
    from collections.abc import Callable


def _conversion_error(source: str, target: str) -> Err:
    return Err(f"type conversion error from '{source}' to '{target}'")


def identity(value: Value) -> Value:
    return value


def double_to_int(value: float) -> Value:
    if math.isnan(value) or math.isinf(value) or not -(2.0**63) < value < 2.0**63:
        return Err("integer overflow")
    return int(value)


def _double_to_uint(value: float) -> Value:
    if math.isnan(value) or math.isinf(value) or not 0 <= value < 2.0**64:
        return Err("unsigned integer overflow")
    return Uint(int(value))


def _string_to_int(text: str) -> Value:
    number = go_numbers.parse_int(text)
    return _conversion_error("string", "int") if number is None else number


def _string_to_uint(text: str) -> Value:
    number = go_numbers.parse_uint(text)
    return _conversion_error("string", "uint") if number is None else Uint(number)


def _string_to_double(text: str) -> Value:
    number = go_numbers.parse_float(text)
    return _conversion_error("string", "double") if number is None else number


def _string_to_bool(text: str) -> Value:
    truth = go_numbers.parse_bool(text)
    return _conversion_error("string", "bool") if truth is None else truth


def string_to_duration(text: str) -> Value:
    nanos = go_numbers.parse_duration(text)
    return (
        _conversion_error("string", "google.protobuf.Duration")
        if nanos is None
        else Duration(nanos)
    )


def string_to_timestamp(text: str) -> Value:
    moment = go_numbers.parse_timestamp(text)
    if moment is None:
        return _conversion_error("string", "google.protobuf.Timestamp")
    nanos, offset = moment
    return _timestamp(nanos, offset)


def _timestamp(nanos: int, offset: int = 0) -> Value:
    if not TIMESTAMP_MIN_SECONDS <= nanos // SECOND <= TIMESTAMP_MAX_SECONDS:
        return Err("timestamp overflow")
    return Timestamp(nanos, offset)


def _bytes_to_string(raw: bytes) -> Value:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return Err("invalid UTF-8 in bytes, cannot convert to string")


def duration_text(duration: Duration) -> str:
    # Go divides into whole seconds and the rest, then adds the two as floats.
    whole, rest = divmod(abs(duration.nanos), SECOND)
    sign = -1 if duration.nanos < 0 else 1
    return go_numbers.format_plain(sign * whole + sign * rest / 1e9) + "s"


def timestamp_text(moment: Timestamp) -> str:
    return go_numbers.format_timestamp(moment.nanos, moment.offset_seconds)


def to_text(value: Value) -> str | None:
    """The text of a value that `string()` accepts or `%s` prints; None for others."""
    convert = _TEXTS.get(type(value))
    text = None if convert is None else convert(value)
    return text if isinstance(text, str) else None


_TEXTS: dict[type, Callable[[Value], Value]] = {
    bool: lambda value: "true" if value else "false",
    int: str,
    Uint: lambda value: str(value.value),
    float: go_numbers.format_general,
    str: identity,
    bytes: _bytes_to_string,
    Duration: duration_text,
    Timestamp: timestamp_text,
    TypeValue: lambda value: value.name,
    type(None): lambda _value: "null",
}


def type_of(value: Value) -> TypeValue:
    return TypeValue(type_name(value))


def is_zero(value: Value) -> bool:
    """Return whether `optional.ofNonZeroValue` treats the value as no value."""
    if value is None:
        return True
    if isinstance(value, (bool, int, float, str, bytes, list, dict)):
        return not value
    if type(value) is Uint:
        return bool(value.value == 0)
    if type(value) is EmptyMessage:
        return True
    if type(value) is ObjectValue:
        return not value.fields
    if type(value) is Duration:
        return bool(value.nanos == 0)
    if type(value) is Timestamp:
        return bool(value.nanos == TIMESTAMP_MIN_SECONDS * SECOND)
    return False


def _optional_value(value: Optional) -> Value:
    return value.value if value.present else Err("optional.none() dereference")


OVERLOADS: dict[str, Callable[..., Value]] = {
    **dict.fromkeys(
        (
            "bool_to_bool", "bytes_to_bytes", "double_to_double", "duration_to_duration",
            "int64_to_int64", "string_to_string", "timestamp_to_timestamp", "uint64_to_uint64",
        ),
        identity,
    ),
    "string_to_bool": _string_to_bool,
    "string_to_bytes": lambda text: text.encode(),
    "int64_to_double": float,
    "uint64_to_double": lambda value: float(value.value),
    "string_to_double": _string_to_double,
    "int64_to_duration": lambda _value: _conversion_error("int", "google.protobuf.Duration"),
    "string_to_duration": string_to_duration,
    "double_to_int64": double_to_int,
    "duration_to_int64": lambda value: value.nanos,
    "string_to_int64": _string_to_int,
    "timestamp_to_int64": lambda value: value.nanos // SECOND,
    "uint64_to_int64": lambda value: checked_int(value.value),
    "bool_to_string": to_text,
    "bytes_to_string": _bytes_to_string,
    "double_to_string": go_numbers.format_general,
    "duration_to_string": duration_text,
    "int64_to_string": str,
    "timestamp_to_string": timestamp_text,
    "uint64_to_string": lambda value: str(value.value),
    "int64_to_timestamp": lambda value: _timestamp(value * SECOND),
    "string_to_timestamp": string_to_timestamp,
    "double_to_uint64": _double_to_uint,
    "int64_to_uint64": checked_uint,
    "string_to_uint64": _string_to_uint,
    "optional_of": Optional,
    "optional_ofNonZeroValue": lambda value: Optional() if is_zero(value) else Optional(value),
    # One and the same each time: as a key of a map it is found again.
    "optional_none": lambda: NONE,
    "optional_value": _optional_value,
    "optional_hasValue": lambda value: value.present,
}  # fmt: skip

FUNCTIONS: dict[str, Callable[..., Value]] = {"type": type_of, "dyn": identity}
