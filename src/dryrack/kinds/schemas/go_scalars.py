"""
Values that are no structs: read as Go reads them, written as Go writes them.

Quantities, times and binary data have more than one spelling; what is stored has one.
"""

from __future__ import annotations

import base64
import re
from datetime import datetime, timedelta
from typing import Any

from dryrack.kinds.quantity import Quantity, QuantityError
from dryrack.kinds.text.go_json import type_name

_TIME = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:[0-5]\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII
).fullmatch
_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)


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
    moment = _moment(value)
    text = moment.strftime("%m-%dT%H:%M:%S")
    fraction = f".{moment.microsecond:06d}" if micro else ""
    return f"{moment.year:04d}-{text}{fraction}Z"


def _moment(text: str) -> datetime:
    found = _TIME(text)
    if found is None:
        raise MismatchError(f'parsing time "{text}": want the form 2006-01-02T15:04:05Z')
    seconds, fraction, zone = found.groups()
    try:
        moment = datetime.fromisoformat(f"{seconds}+00:00")
    except ValueError as error:
        raise MismatchError(f'parsing time "{text}": {error}') from None
    return moment.replace(microsecond=int((fraction or "")[:6].ljust(6, "0"))) - _offset(zone)


def _offset(zone: str) -> timedelta:
    if zone == "Z":
        return timedelta()
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if zone[0] == "-" else offset


def binary(value: Any, place: str) -> str:
    """Bytes, as they are written in JSON."""
    if not isinstance(value, str):
        raise MismatchError(f"json: cannot unmarshal {type_name(value)} into {place}")
    text = value.replace("\r", "").replace("\n", "")
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode()
    except ValueError:
        raise MismatchError("illegal base64 data") from None
