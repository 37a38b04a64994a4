"""
Types and functions for the expressions of mutating admission policies.

The types `JSONPatch`, `Object` and `Object.FIELD…`, the function `jsonpatch.escapeKey`, and
the conversion of their values to JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from dryrack.cel.checking import types as t
from dryrack.cel.declarations.signatures import Overload, read_table
from dryrack.cel.evaluation.values import Duration, Timestamp, decode_key, go_name
from dryrack.cel.functions.conversions import duration_text, timestamp_text
from dryrack.cel.mutation import (
    JSON_PATCH,
    OBJECT,
    JsonPatchValue,
    ObjectValue,
    is_patch_type,
)
from dryrack.cel.parsing.ast import Uint

__all__ = [
    "APPLY_CONFIGURATION_TYPE",
    "FUNCTIONS",
    "JSON_PATCHES_TYPE",
    "JsonPatchValue",
    "NoJsonError",
    "ObjectValue",
    "Overload",
    "fields_of_patch_type",
    "is_patch_type",
    "json_of",
    "misplaced_types",
]

APPLY_CONFIGURATION_TYPE = t.struct(OBJECT)
JSON_PATCHES_TYPE = t.list_of(t.struct(JSON_PATCH))

FUNCTIONS: Mapping[str, tuple[Overload, ...]] = MappingProxyType(
    read_table("jsonpatch.escapeKey\n    string_jsonpatch_escapeKey_string (string) -> string")
)
_PATCH_FIELDS: Mapping[str, t.Type] = MappingProxyType(
    {"op": t.STRING, "path": t.STRING, "from": t.STRING, "value": t.DYN}
)


class _AnyField(Mapping[str, t.Type]):
    """The fields of an object without a schema: there is every one, of no known type."""

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> t.Type:
        return t.DYN

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


_ANY_FIELD = _AnyField()


def fields_of_patch_type(name: str) -> Mapping[str, t.Type]:
    """Return the fields of `JSONPatch` or of an `Object` type."""
    return _PATCH_FIELDS if name == JSON_PATCH else _ANY_FIELD


class NoJsonError(ValueError):
    """A value that cannot be part of an object."""


def json_of(value: Any) -> Any:
    """Return a value as JSON; raises `NoJsonError` for what has no JSON."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case ObjectValue():
            return {name: json_of(inner) for name, inner in value.fields.items()}
        case list():
            return [json_of(item) for item in value]
        case dict():
            return {_key(decode_key(key)): json_of(item) for key, item in value.items()}
        case Uint():
            return value.value
        case bytes():
            return base64.b64encode(value).decode()
        case Duration():
            return duration_text(value)
        case Timestamp():
            return timestamp_text(value)
        case _:
            raise NoJsonError(f"unsupported type {go_name(value)}")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise NoJsonError(f"map key {key!r} is of type {go_name(key)}, not string")
    return key


def misplaced_types(value: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield a message for every object whose type names another field than the one it is in."""
    match value:
        case ObjectValue():
            place = path or (value.type_name,)
            expected = ".".join(place)
            if value.type_name != expected:
                yield (
                    f'unexpected type name "{value.type_name}", expected "{expected}", '
                    "which matches field name path from root Object type"
                )
            for name, inner in value.fields.items():
                yield from misplaced_types(inner, (*place, name))
        case list():
            for item in value:
                yield from misplaced_types(item, path)
        case dict():
            for item in value.values():
                yield from misplaced_types(item, path)
        case _:
            return
