"""
Defaults of custom kinds, and the removal of fields that their schema does not know.

Both return a new object where anything changes, and never change the given one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dryrack.kinds.paths import get

Schema = Mapping[str, Any]
# Values without fields.
_FULL = frozenset((bool, float, int, str))
_META = ("apiVersion", "kind", "metadata")


def mentions_key(schema: Schema, key: str) -> bool:
    """Return whether a key is set in a schema, or in a schema below it."""
    if schema.get(key):
        return True
    below = list(get(schema, "properties", {}).values())
    below += [schema[name] for name in ("items", "additionalProperties") if name in schema]
    return any(mentions_key(each, key) for each in below if isinstance(each, dict))


def with_defaults(schema: Schema, value: Any) -> Any:
    """Return the value with defaults for fields that are missing, or null where not allowed."""
    if isinstance(value, dict):
        properties = get(schema, "properties", {})
        additional = schema.get("additionalProperties")
        filled = {}
        for name, inner in value.items():
            place = properties.get(name, additional)
            if not isinstance(place, dict) or type(inner) in _FULL:
                filled[name] = inner
            elif not _is_wrong_null(place, inner) or place.get("default") is not None:
                filled[name] = with_defaults(place, _replaced_null(place, inner))
        for name, place in properties.items():
            if name not in value and place.get("default") is not None:
                filled[name] = with_defaults(place, place["default"])
        return filled
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        return [with_defaults(items, _replaced_null(items, item)) for item in value]
    return value


def _is_wrong_null(schema: Schema, value: Any) -> bool:
    return value is None and not schema.get("nullable")


def _replaced_null(schema: Schema, value: Any) -> Any:
    return schema.get("default") if _is_wrong_null(schema, value) else value


def prune(schema: Schema, value: Any, *, is_root: bool = True) -> Any:
    """Return the value without the fields that its schema does not know."""
    if isinstance(value, list):
        items = schema.get("items")
        return [prune(items, item, is_root=False) for item in value] if items else value
    if not isinstance(value, dict):
        return value
    keeps = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    has_meta = is_root or bool(schema.get("x-kubernetes-embedded-resource"))
    known = {}
    for name, inner in value.items():
        place = _place(schema, name)
        if has_meta and name in _META:
            known[name] = inner
        elif place is not None:
            known[name] = prune(place, inner, is_root=False)
        elif keeps or schema.get("additionalProperties") is True:
            known[name] = inner
    return known


def _place(schema: Schema, name: str) -> Schema | None:
    place = get(schema, "properties", {}).get(name, schema.get("additionalProperties"))
    return place if isinstance(place, dict) else None


# Above this number Go and Python write a whole number with an exponent.
_WRITTEN_WHOLE_MAX = 1e21
_WHOLE = frozenset((bool, int, str, type(None)))


def whole_numbers(value: Any) -> Any:
    """Return the value with floats without a fraction as integers, as Go writes them."""
    match value:
        case float() if value.is_integer() and abs(value) < _WRITTEN_WHOLE_MAX:
            return int(value)
        case dict():
            return {
                key: inner if type(inner) in _WHOLE else whole_numbers(inner)
                for key, inner in value.items()
            }
        case list():
            return [inner if type(inner) in _WHOLE else whole_numbers(inner) for inner in value]
        case _:
            return value
