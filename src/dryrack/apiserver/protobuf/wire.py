"""Protobuf's wire format: numbered fields, and nothing about what they mean."""

import struct
from collections.abc import Iterator
from typing import Any

_VARINT = 0
_EIGHT = 1
_BYTES = 2
_FOUR = 5
_VARINT_BITS_MAX = 63
_double = struct.Struct("<d").unpack_from
_single = struct.Struct("<f").unpack_from
_pack_double = struct.Struct("<d").pack
_SMALL = tuple(bytes([each]) for each in range(0x80))

Value = str | bytes | bool | int | float


class WireError(Exception):
    """Bytes that are no message."""


def fields(data: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and value of each field: an int, a float, or a view of bytes."""
    position = 0
    end = len(data)
    while position < end:
        tag, position = _varint(data, position)
        number = tag >> 3
        wire_type = tag & 7
        value, position = _value(data, position, wire_type)
        yield number, wire_type, value


def _value(data: memoryview, position: int, wire_type: int) -> tuple[Any, int]:
    if wire_type == _VARINT:
        return _varint(data, position)
    if wire_type == _BYTES:
        length, start = _varint(data, position)
        return _taken(data, start, length), start + length
    if wire_type == _EIGHT:
        return _double(_taken(data, position, 8))[0], position + 8
    if wire_type == _FOUR:
        return _single(_taken(data, position, 4))[0], position + 4
    raise WireError(f"wire type {wire_type} at byte {position}")


def _taken(data: memoryview, start: int, length: int) -> memoryview:
    if start + length > len(data):
        raise WireError("unexpected end of the message")
    return data[start : start + length]


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift <= _VARINT_BITS_MAX:
        if position >= len(data):
            raise WireError("unexpected end of the message")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
    raise WireError(f"a number too long at byte {position}")


def signed(value: int) -> int:
    """A number of 64 bits as Go's int64 has it."""
    return value - (1 << 64) if value >> 63 else value


def integers(wire_type: int, value: Any) -> list[int]:
    """The number of a field, or the numbers of one that is packed."""
    if wire_type == _VARINT:
        return [signed(value)]
    if wire_type != _BYTES:
        raise WireError(f"wire type {wire_type} for a whole number")
    found = []
    position = 0
    while position < len(value):
        number, position = _varint(value, position)
        found.append(signed(number))
    return found


def encode_field(number: int, value: Value) -> bytes:
    """One field: text and bytes with their length, numbers as they are."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return _number(number << 3 | _BYTES) + _number(len(value)) + value
    if isinstance(value, float):
        return _number(number << 3 | _EIGHT) + _pack_double(value)
    return _number(number << 3 | _VARINT) + _number(int(value) & 0xFFFF_FFFF_FFFF_FFFF)


def _number(value: int) -> bytes:
    if value < 0x80:
        return _SMALL[value]
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
