"""
Read and write values that are not structs as Go does.

Quantities, times and binary data have several spellings; stored objects have one.
"""

from __future__ import annotations

import base64
import re
from datetime import datetime
from typing import Any

from dryrack.kinds.quantity import Quantity, QuantityError
from dryrack.kinds.text.go_json import type_name
from dryrack.kinds.text.go_time import GoTimeError, parse_time

_SECONDS = re.compile(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\dZ", re.ASCII).fullmatch
_MICRO = re.compile(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d\.\d{6}Z", re.ASCII).fullmatch
_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)


class MismatchError(ValueError):
    """A value has the wrong type; the message is that of Go's decoder."""


class ForeignTypeError(MismatchError):
    """A type with its own decoder cannot read the value; the message has no path."""

    def __init__(self, shown: str, wanted: str) -> None:
        super().__init__(f"json: cannot unmarshal {shown} into Go value of type {wanted}")
        self.shown = shown
        self.wanted = wanted


def fits(value: Any, kind: str, number_format: str) -> bool:
    """Return whether a value has a simple type of OpenAPI."""
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
    """Return a value of a type with its own decoder."""
    match go_type:
        case "v1.Time":
            return time_text(value)
        case "v1.MicroTime":
            return time_text(value, micro=True)
        case "resource.Quantity":
            try:
                return str(Quantity.from_json(value))
            except QuantityError as error:
                raise MismatchError(str(error)) from error
        case "intstr.IntOrString":
            if isinstance(value, str):
                return value
            if isinstance(value, int) and not isinstance(value, bool) and value in _INT32:
                return value
            shown = type_name(value)
            if shown == "number":
                shown += f" {value}"
            raise ForeignTypeError(shown, "int32")
        case _:
            return value


def time_text(value: Any, *, micro: bool = False) -> str:
    """Return a time in UTC as Go writes it: to the second, or to the microsecond."""
    if not isinstance(value, str):
        raise ForeignTypeError(type_name(value), "string")
    if _is_canonical(value, micro=micro):
        return value
    try:
        return parse_time(value, micro=micro).text(micro=micro)
    except GoTimeError as error:
        raise MismatchError(str(error)) from None


def _is_canonical(text: str, *, micro: bool) -> bool:
    """Return whether the text is what Go would write: programs send nothing else."""
    if not (_MICRO if micro else _SECONDS)(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def binary(value: Any, place: str) -> str:
    """Return base64 data in its canonical form."""
    if not isinstance(value, str):
        raise MismatchError(f"json: cannot unmarshal {type_name(value)} into {place}")
    text = value.replace("\r", "").replace("\n", "")
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode()
    except ValueError:
        raise MismatchError("illegal base64 data") from None
