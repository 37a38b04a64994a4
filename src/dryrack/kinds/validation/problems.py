"""
Problems of fields.

A problem has what the API server puts into one cause of its `Status`: the reason, the path of the
field, and the message in the server's wording, with the value as Go prints it. `fix` says how to
correct the field, if that is known; the server has nothing like it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from dryrack.kinds.meta import Model, OwnerReference
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.text.quoting import quoted


class Reason(Enum):
    """The reason of a problem; the value is that of `StatusCause.reason`."""

    NOT_FOUND = "FieldValueNotFound"
    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    TYPE_INVALID = "FieldValueTypeInvalid"
    INTERNAL = "InternalError"


_TITLES = {
    Reason.NOT_FOUND: "Not found",
    Reason.REQUIRED: "Required value",
    Reason.DUPLICATE: "Duplicate value",
    Reason.INVALID: "Invalid value",
    Reason.NOT_SUPPORTED: "Unsupported value",
    Reason.FORBIDDEN: "Forbidden",
    Reason.TOO_LONG: "Too long",
    Reason.TOO_MANY: "Too many",
    Reason.TYPE_INVALID: "Invalid value",
    Reason.INTERNAL: "Internal error",
}

# Messages without the value: it is missing, or too long.
_SILENT = {Reason.REQUIRED, Reason.FORBIDDEN, Reason.TOO_LONG, Reason.INTERNAL}


class _Omitted(Enum):
    """Marks a value that the server does not show in its message."""

    OMITTED = "omitted"


OMITTED = _Omitted.OMITTED


class Token(str):
    """A text whose Go type is not plain `string`; the server shows it as JSON."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A value that the API server refuses, and its path."""

    reason: Reason
    field: str
    value: object = None
    detail: str = ""
    fix: str = ""

    @property
    def message(self) -> str:
        """The message of the server's cause; `field` is not part of it."""
        title = _TITLES[self.reason]
        is_silent = self.reason in _SILENT or self.value is OMITTED
        shown = title if is_silent else f"{title}: {shown_value(self.value)}"
        return f"{shown}: {self.detail}" if self.detail else shown

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def required(field: str, detail: str = "") -> FieldProblem:
    return FieldProblem(Reason.REQUIRED, field, "", detail)


def invalid(field: str, value: object, detail: str, *, fix: str = "") -> FieldProblem:
    return FieldProblem(Reason.INVALID, field, value, detail, fix)


def forbidden(field: str, detail: str, *, fix: str = "") -> FieldProblem:
    return FieldProblem(Reason.FORBIDDEN, field, "", detail, fix)


def duplicate(field: str, value: object) -> FieldProblem:
    return FieldProblem(Reason.DUPLICATE, field, value, fix="give each entry a different name")


def too_long(field: str, bytes_max: int) -> FieldProblem:
    return FieldProblem(Reason.TOO_LONG, field, "", f"may not be more than {bytes_max} bytes")


def too_many(field: str, count: int, count_max: int) -> FieldProblem:
    noun = "item" if count_max == 1 else "items"
    return FieldProblem(Reason.TOO_MANY, field, count, f"must have at most {count_max} {noun}")


def not_supported(field: str, value: str, supported: Iterable[str]) -> FieldProblem:
    known = tuple(supported)
    detail = "supported values: " + ", ".join(quoted(each) for each in known)
    return FieldProblem(
        Reason.NOT_SUPPORTED, field, Token(value), detail, _closest_spelling(value, known)
    )


def byte_length(text: str) -> int:
    """The length that the API counts: bytes of UTF-8, not characters."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _closest_spelling(value: str, known: tuple[str, ...]) -> str:
    matches = [each for each in known if each.lower() == value.lower()]
    return f"write {matches[0]!r}" if matches else ""


def shown_value(value: object) -> str:
    """A value as Go's field errors print it."""
    match value:
        case Token():
            return _as_json(str(value))
        case str():
            return quoted(value)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case _:
            return _as_json(value)


def _as_json(value: object) -> str:
    text = json.dumps(_plain(value), separators=(",", ":"), ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _plain(value: object) -> Any:
    # What is inside a composite value is shown by its API names; the server shows the names
    # of its Go structs there, which no user has ever written.
    if isinstance(value, Model):
        fields = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        found = {encoded: _plain(getattr(value, name)) for name, encoded in fields}
        if isinstance(value, OwnerReference):
            # The one type here that the server shows by the rules of its JSON.
            return {name: each for name, each in found.items() if each is not None}
        return found
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, Quantity):
        return str(value)
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value


def json_length(value: object) -> int:
    """Return the number of bytes of a value as compact JSON."""
    return len(msgspec.json.encode(value))
