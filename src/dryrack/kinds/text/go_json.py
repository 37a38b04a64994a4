"""JSON as Go reads it: its syntax errors, and its names of types."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

# A number with more digits is larger than the maximum of Go's float64, 1.8e308.
_INTEGER_DIGITS_MAX = 309
_SHOWN_DIGITS = 30
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_LONG = b"0" * _INTEGER_DIGITS_MAX


class GoSyntaxError(ValueError):
    """The text is not JSON."""


class YamlError(GoSyntaxError):
    """The text is not YAML; it was not parsed as JSON."""


def read_text(data: bytes) -> Any:
    """
    Return the value of a JSON text; raise `GoSyntaxError` if it is invalid.

    As in Go, bytes that are not UTF-8 are replaced, and a number that exceeds float64 is refused.
    JSON that is nested too deeply raises a `RecursionError`.
    """
    try:
        return json.loads(
            data.decode("utf-8", "replace"),
            parse_constant=_refuse,
            parse_int=_integer,
            parse_float=_float,
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise GoSyntaxError(f"invalid JSON at {place}: {error.msg}") from None


def may_have_long_number(data: bytes) -> bool:
    """Return whether a JSON text has so many digits in a row that Go may refuse the number."""
    return len(data) >= _INTEGER_DIGITS_MAX and _LONG in data.translate(_ZEROS)


def _integer(text: str) -> int:
    # Python refuses to convert thousands of digits, with another error.
    if len(text) > _INTEGER_DIGITS_MAX + 1 or math.isinf(float(text)):
        raise _too_large(text)
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _too_large(text)
    return value


def _too_large(text: str) -> GoSyntaxError:
    shown = text if len(text) <= _SHOWN_DIGITS else f"{text[:_SHOWN_DIGITS]}..."
    return GoSyntaxError(f"json: cannot unmarshal number {shown} into Go value of type float64")


def _refuse(word: str) -> NoReturn:
    raise GoSyntaxError(f"invalid JSON: {word} is no number")


def type_name(value: Any) -> str:
    """Return the name that Go's decoder has for the type of a JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"


def compact(value: Any) -> str:
    """Return a value as one line for an error; a text is returned as it is."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
