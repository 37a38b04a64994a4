"""
Values that are no structs: read as Go reads them, written as Go writes them.

Quantities, times and binary data have more than one spelling; what is stored has one.
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from dryrack.kinds.quantity import Quantity, QuantityError
from dryrack.kinds.text.go_json import type_name

_LAYOUT = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
# The parts of a time, each as the layout spells it.
_PARTS = (
    ("2006", re.compile(r"[0-9]{4}")),
    ("-", re.compile("-")),
    ("01", re.compile(r"[0-9]{2}")),
    ("-", re.compile("-")),
    ("02", re.compile(r"[0-9]{2}")),
    ("T", re.compile("T")),
    ("15", re.compile(r"[0-9]{2}")),
    (":", re.compile(":")),
    ("04", re.compile(r"[0-9]{2}")),
    (":", re.compile(":")),
    ("05", re.compile(r"[0-9]{2}(?:[.,][0-9]+)?")),
    ("Z07:00", re.compile(r"Z|[+-][0-9]{2}:[0-9]{2}")),
)
_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)
_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_PADDING, _LINE_ENDS = ord("="), b"\r\n"


class MismatchError(ValueError):
    """A value of the wrong type; the text is the decoder's."""


class ForeignTypeError(MismatchError):
    """A value that a type which reads itself cannot be made of; it does not know its place."""

    def __init__(self, shown: str, wanted: str) -> None:
        super().__init__(f"json: cannot unmarshal {shown} into Go value of type {wanted}")
        self.shown = shown
        self.wanted = wanted


def fits(value: Any, kind: str, number_format: str) -> bool:
    """Whether a value is of a simple type of OpenAPI."""
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            allowed = _INT32 if number_format == "int32" else _INT64
            return isinstance(value, int) and not isinstance(value, bool) and value in allowed
        case _:
            return isinstance(value, int | float) and not isinstance(value, bool)


def special(go_type: str, value: Any) -> Any:
    """A value of a type that reads itself."""
    match go_type:
        case "v1.Time":
            return time_text(value)
        case "v1.MicroTime":
            return time_text(value, micro=True)
        case "resource.Quantity":
            return _quantity(value)
        case "intstr.IntOrString":
            return _int_or_string(value)
        case _:
            return value


def _quantity(value: Any) -> str:
    try:
        return str(Quantity.from_json(value))
    except QuantityError as error:
        raise MismatchError(str(error)) from error


def _int_or_string(value: Any) -> int | str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value in _INT32:
        return value
    shown = type_name(value)
    if shown == "number":
        shown += f" {value}"
    raise ForeignTypeError(shown, "int32")


def time_text(value: Any, *, micro: bool = False) -> str:
    """A time in UTC: to the second, or to the microsecond."""
    if not isinstance(value, str):
        raise ForeignTypeError(type_name(value), "string")
    moment = _moment(value, _MICRO_LAYOUT if micro else _LAYOUT)
    text = moment.strftime("%m-%dT%H:%M:%S")
    fraction = f".{moment.microsecond:06d}" if micro else ""
    return f"{moment.year:04d}-{text}{fraction}Z"


def _moment(text: str, layout: str) -> datetime:
    found: dict[str, str] = {}
    at = 0
    for part, pattern in _PARTS:
        match = pattern.match(text, at)
        if match is None:
            raise _unparsed(text, layout, f'cannot parse "{text[at:]}" as "{part}"')
        found[part] = match[0]
        at = match.end()
    if at < len(text):
        raise _unparsed(text, layout, f'extra text: "{text[at:]}"', separator=":")
    return _assembled(text, layout, found)


def _assembled(text: str, layout: str, found: dict[str, str]) -> datetime:
    seconds, _, fraction = found["05"].replace(",", ".").partition(".")
    for part, name, low, high in (
        ("01", "month", 1, 12),
        ("15", "hour", 0, 23),
        ("04", "minute", 0, 59),
    ):
        if not low <= int(found[part]) <= high:
            raise _unparsed(text, layout, f"{name} out of range", separator=":")
    if int(seconds) > 59:
        raise _unparsed(text, layout, "second out of range", separator=":")
    try:
        moment = datetime(
            int(found["2006"]),
            int(found["01"]),
            int(found["02"]),
            int(found["15"]),
            int(found["04"]),
            int(seconds),
            int(fraction[:6].ljust(6, "0")),
            tzinfo=UTC,
        )
    except ValueError:
        raise _unparsed(text, layout, "day out of range", separator=":") from None
    return moment - _offset(found["Z07:00"])


def _offset(zone: str) -> timedelta:
    if zone == "Z":
        return timedelta()
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if zone[0] == "-" else offset


def _unparsed(text: str, layout: str, detail: str, separator: str = "") -> MismatchError:
    if separator:
        return MismatchError(f'parsing time "{text}": {detail}')
    return MismatchError(f'parsing time "{text}" as "{layout}": {detail}')


def binary(value: Any, place: str) -> str:
    """Bytes, as they are written in JSON."""
    if not isinstance(value, str):
        raise MismatchError(f"json: cannot unmarshal {type_name(value)} into {place}")
    text = value.replace("\r", "").replace("\n", "")
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode()
    except ValueError:
        bad = _corrupt_at(value.encode())
        raise MismatchError(f"illegal base64 data at input byte {bad}") from None


def _corrupt_at(data: bytes) -> int:
    """Where Go's reader of base64 gives up: at a strange byte, or at four that are not four."""
    whole = 0
    for at, byte in enumerate(data):
        if byte in _LINE_ENDS:
            continue
        if byte == _PADDING and whole % 4 > 1:
            return _corrupt_padding(data, at + 1, missing=3 - whole % 4)
        if byte not in _ALPHABET:
            return at
        whole += 1
    return len(data) - whole % 4


def _corrupt_padding(data: bytes, at: int, *, missing: int) -> int:
    rest = [place for place in range(at, len(data)) if data[place] not in _LINE_ENDS]
    if missing and not rest:
        return len(data)
    if missing and data[rest[0]] != _PADDING:
        return rest[0] - 1
    return rest[missing] if len(rest) > missing else len(data)
