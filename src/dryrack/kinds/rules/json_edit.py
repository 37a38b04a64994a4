"""
Change a part of a JSON object: copy what changes and share the rest.

The API server may have stored the given object and sent it to watchers, so no function here
changes it.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dryrack.kinds.raw import Raw


def set_defaults(holder: Raw, defaults: Mapping[str, Any]) -> Raw:
    """Return the object with these values where it has null, an empty text or no value."""
    missing = {key: value for key, value in defaults.items() if holder.get(key) in (None, "")}
    return {**holder, **missing} if missing else holder


def set_missing(holder: Raw, defaults: Mapping[str, Any]) -> Raw:
    """Return the object with these values where it has null or no value; "" stays."""
    missing = {key: value for key, value in defaults.items() if holder.get(key) is None}
    return {**holder, **missing} if missing else holder


def update_at(holder: Raw, path: str, change: Callable[[Raw], Raw]) -> Raw:
    """Return the object with the object at a dotted path changed, if there is one."""
    key, _, rest = path.partition(".")
    inner = holder.get(key)
    if not isinstance(inner, dict):
        return holder
    changed = update_at(inner, rest, change) if rest else change(inner)
    return holder if changed is inner else {**holder, key: changed}


def map_items(holder: Raw, key: str, change: Callable[[Raw], Raw]) -> Raw:
    """Return the object with every object in the list under a key changed."""
    items = holder.get(key)
    if not items:
        return holder
    changed = [change(item) for item in items]
    return holder if all(map(is_, changed, items)) else {**holder, key: changed}


def without(holder: Raw, *keys: str) -> Raw:
    """Return the object without these keys."""
    if not any(key in holder for key in keys):
        return holder
    return {key: value for key, value in holder.items() if key not in keys}


def with_value(holder: Raw, key: str, value: Any) -> Raw:
    """Return the object with a value; None removes the key."""
    return without(holder, key) if value is None else {**holder, key: value}


def null_if_empty(holder: Raw, key: str) -> Raw:
    """Return the object with null for an empty list, as a real API server stores it."""
    return holder if holder.get(key) else {**holder, key: None}


def with_metadata(obj: Raw, key: str, value: Any) -> Raw:
    """Return the object with a value in its metadata; None removes the key."""
    return {**obj, "metadata": with_value(obj["metadata"], key, value)}
