"""
The values that mutating admission policies make: parts of objects, and JSON patches.

    Object{spec: Object.spec{replicas: 3}}
    JSONPatch{op: "add", path: "/spec/replicas", value: 3}

They have no schema: an `Object` has the fields of its literal, and its type's name is its place in
the object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

OBJECT = "Object"
JSON_PATCH = "JSONPatch"


@dataclass(frozen=True, slots=True)
class ObjectValue:
    """A part of an object, which `type_name` gives a place: `Object.spec.containers`."""

    type_name: str
    fields: dict[str, Any]

    __hash__ = None  # type: ignore[assignment]  # its fields are a dict


@dataclass(frozen=True, slots=True)
class JsonPatchValue:
    """One operation of a JSON patch; `value` has one item, or none if there is no value."""

    op: str
    path: str
    origin: str
    value: tuple[Any, ...]

    __hash__ = None  # type: ignore[assignment]  # its value may be a dict


TYPE_NAMES: dict[type, str] = {ObjectValue: OBJECT, JsonPatchValue: JSON_PATCH}
GO_NAMES: dict[type, str] = {
    ObjectValue: "*dynamic.ObjectVal",
    JsonPatchValue: "*mutation.JSONPatchVal",
}


def is_patch_type(name: str) -> bool:
    """Return whether a literal of this name makes an `ObjectValue` or a `JsonPatchValue`."""
    return name in (OBJECT, JSON_PATCH) or name.startswith(f"{OBJECT}.")


def make_patch_value(name: str, fields: dict[str, Any]) -> ObjectValue | JsonPatchValue:
    """Make what a literal stands for; the checker has seen to the fields of a JSONPatch."""
    if name != JSON_PATCH:
        return ObjectValue(name, fields)
    value = (fields["value"],) if "value" in fields else ()
    op, path, origin = (fields.get(key, "") for key in ("op", "path", "from"))
    return JsonPatchValue(op, path, origin, value)


def _escaped_key(key: str) -> str:
    """Escape a key for the path of a JSON patch."""
    return key.replace("~", "~0").replace("/", "~1")


OVERLOADS: dict[str, Callable[..., Any]] = {"string_jsonpatch_escapeKey_string": _escaped_key}
