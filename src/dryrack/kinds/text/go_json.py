"""JSON as Go takes it: what is none, and what Go calls the types of its values."""

from __future__ import annotations

import json
from typing import Any, NoReturn


class GoSyntaxError(ValueError):
    """Text that is no JSON."""


class YamlError(GoSyntaxError):
    """YAML that is none; said without looking for JSON in it."""


def read_text(data: bytes) -> Any:
    """The value of a JSON text; bytes that are no UTF-8 are replaced, as Go does it."""
    try:
        return json.loads(data.decode("utf-8", "replace"), parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise GoSyntaxError(f"invalid JSON at {place}: {error.msg}") from None


def _refuse(word: str) -> NoReturn:
    raise GoSyntaxError(f"invalid JSON: {word} is no number")


def type_name(value: Any) -> str:
    """What Go's decoder calls the type of a JSON value."""
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
    """A value in one line, as refusals show it; text stands for itself."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
