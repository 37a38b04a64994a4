"""
Literals of the well-known messages, most of which become plain values as soon as they are made.

`google.protobuf.Int32Value{value: 1}` is the int 1; what is inside a `Struct` has been through
JSON, so its numbers are doubles.
"""

from __future__ import annotations

import base64
import math
import struct
from typing import TYPE_CHECKING

from dryrack.cel.checking.types import DEVICE
from dryrack.cel.evaluation.result import refusal
from dryrack.cel.evaluation.values import (
    INT_MAX,
    INT_MIN,
    SECOND,
    Duration,
    EmptyMessage,
    Err,
    Timestamp,
    Value,
    decode_key,
    go_name,
)
from dryrack.cel.functions.conversions import duration_text, timestamp_text
from dryrack.cel.mutation import JSON_PATCH, is_patch_type, make_patch_value
from dryrack.cel.parsing.ast import Uint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Beyond it neighbouring integers are one double, and JSON gets a string.
_SAFE_INT = 2**53 - 1


class _ConversionError(Exception):
    """A value does not fit the field that it is for."""


def _expect(kind: type, go_type: str) -> Callable[[Value], Value]:
    def convert(value: Value) -> Value:
        if type(value) is not kind:
            raise _ConversionError(refusal(value, go_type))
        return value

    return convert


def _int32(value: Value) -> Value:
    number = _expect(int, "int32")(value)
    if not -(2**31) <= number < 2**31:
        raise _ConversionError("integer overflow")
    return number


def _uint32(value: Value) -> Value:
    number = _expect(Uint, "uint32")(value)
    if number.value >= 2**32:
        raise _ConversionError("unsigned integer overflow")
    return number


def _float32(value: Value) -> Value:
    number = _expect(float, "float32")(value)
    try:
        return struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


_WRAPPERS: Mapping[str, tuple[Callable[[Value], Value], Value]] = {
    "google.protobuf.BoolValue": (_expect(bool, "bool"), False),
    "google.protobuf.BytesValue": (_expect(bytes, "[]uint8"), b""),
    "google.protobuf.DoubleValue": (_expect(float, "float64"), 0.0),
    "google.protobuf.FloatValue": (_float32, 0.0),
    "google.protobuf.Int32Value": (_int32, 0),
    "google.protobuf.Int64Value": (_expect(int, "int64"), 0),
    "google.protobuf.StringValue": (_expect(str, "string"), ""),
    "google.protobuf.UInt32Value": (_uint32, Uint(0)),
    "google.protobuf.UInt64Value": (_expect(Uint, "uint64"), Uint(0)),
}


def make_message(name: str, fields: Mapping[str, Value]) -> Value:
    """Make what a literal stands for, or say which field does not fit."""
    if is_patch_type(name):
        return _patch_value(name, fields)
    if name in _WRAPPERS:
        convert, zero = _WRAPPERS[name]
        return _convert(name, "value", lambda: convert(fields.get("value", zero)))
    if name in _UNMADE:
        return Err(f"unknown type '{name}'")
    if name == "google.protobuf.Empty":
        return EmptyMessage()
    maker = _MAKERS.get(name)
    if maker is None:
        return Err("unsupported conversion to ref.Val: (*dynamicpb.Message)")
    return maker(name, fields)


def _patch_value(name: str, fields: Mapping[str, Value]) -> Value:
    if name == JSON_PATCH:
        for key in ("op", "path", "from"):
            if not isinstance(fields.get(key, ""), str):
                found = go_name(fields[key])
                return Err(f"unexpected type {found} for JSONPatchType '{key}' field")
    return make_patch_value(name, dict(fields))


def _convert(message: str, field: str, convert: Callable[[], Value]) -> Value:
    try:
        return convert()
    except _ConversionError as error:
        where = f"{message}.{field}"
        return Err(f"field type conversion error for {where} value type: {error}")


def _nanos(name: str, fields: Mapping[str, Value]) -> int | Err:
    seconds = _convert(name, "seconds", lambda: _expect(int, "int64")(fields.get("seconds", 0)))
    nanos = _convert(name, "nanos", lambda: _int32(fields.get("nanos", 0)))
    for part in (seconds, nanos):
        if isinstance(part, Err):
            return part
    return int(seconds) * SECOND + int(nanos)


def _duration(name: str, fields: Mapping[str, Value]) -> Value:
    nanos = _nanos(name, fields)
    return nanos if isinstance(nanos, Err) else Duration(max(INT_MIN, min(INT_MAX, nanos)))


def _timestamp(name: str, fields: Mapping[str, Value]) -> Value:
    nanos = _nanos(name, fields)
    return nanos if isinstance(nanos, Err) else Timestamp(nanos)


def _struct(name: str, fields: Mapping[str, Value]) -> Value:
    return _convert(name, "fields", lambda: _json(fields.get("fields", {})))


def _list(name: str, fields: Mapping[str, Value]) -> Value:
    return _convert(name, "values", lambda: _json(fields.get("values", [])))


def _value(name: str, fields: Mapping[str, Value]) -> Value:
    field = next(iter(fields), "null_value")
    return None if field == "null_value" else _convert(name, field, lambda: _json(fields[field]))


def _json(value: Value) -> Value:
    if isinstance(value, list):
        return [_json(element) for element in value]
    if isinstance(value, dict):
        return {str(decode_key(key)): _json(element) for key, element in value.items()}
    if value is None or isinstance(value, (bool, float, str)):
        return value
    if isinstance(value, (int, Uint)):
        number = value.value if isinstance(value, Uint) else value
        return float(number) if -_SAFE_INT <= number <= _SAFE_INT else str(number)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Duration):
        return duration_text(value)
    if isinstance(value, Timestamp):
        return timestamp_text(value)
    raise _ConversionError(refusal(value, "*structpb.Value"))


_MAKERS: Mapping[str, Callable[[str, Mapping[str, Value]], Value]] = {
    "google.protobuf.Duration": _duration,
    "google.protobuf.Timestamp": _timestamp,
    "google.protobuf.Struct": _struct,
    "google.protobuf.ListValue": _list,
    "google.protobuf.Value": _value,
}
# They have a type to be checked by, and no message to be made of.
_UNMADE = (DEVICE.name, "duration", "list", "timestamp")
KNOWN = frozenset((*_WRAPPERS, *_MAKERS, "google.protobuf.Any", "google.protobuf.Empty", *_UNMADE))
