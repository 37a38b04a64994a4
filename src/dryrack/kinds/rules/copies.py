"""
Objects with a part changed: copies of what changes, the rest shared.

What a strategy is given may be stored and seen by every watcher, so nothing here changes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dryrack.kinds.raw import Raw


def filled(holder: Raw, defaults: Mapping[str, Any]) -> Raw:
    """With these values where there are none; an empty text is none, and so is null."""
    missing = {key: value for key, value in defaults.items() if holder.get(key) in (None, "")}
    return {**holder, **missing} if missing else holder


def completed(holder: Raw, defaults: Mapping[str, Any]) -> Raw:
    """The same where a text may be empty and wrong: only null is none."""
    missing = {key: value for key, value in defaults.items() if holder.get(key) is None}
    return {**holder, **missing} if missing else holder


def within(holder: Raw, key: str, change: Callable[[Raw], Raw]) -> Raw:
    """With the object under a key changed, if there is one."""
    inner = holder.get(key)
    if not isinstance(inner, dict):
        return holder
    changed = change(inner)
    return holder if changed is inner else {**holder, key: changed}


def at(holder: Raw, path: str, change: Callable[[Raw], Raw]) -> Raw:
    """With the object at a dotted path changed, if there is one."""
    head, _, rest = path.partition(".")
    return within(holder, head, (lambda inner: at(inner, rest, change)) if rest else change)


def each(holder: Raw, key: str, change: Callable[[Raw], Raw]) -> Raw:
    """With every object in the list under a key changed."""
    items = holder.get(key)
    if not items:
        return holder
    changed = [change(item) for item in items]
    return holder if all(map(_is, changed, items)) else {**holder, key: changed}


def _is(one: object, other: object) -> bool:
    return one is other


def without(holder: Raw, *keys: str) -> Raw:
    """Without these, if they are there."""
    if not any(key in holder for key in keys):
        return holder
    return {key: value for key, value in holder.items() if key not in keys}


def with_value(holder: Raw, key: str, value: Any) -> Raw:
    """With a value; None takes it away."""
    return without(holder, key) if value is None else {**holder, key: value}


def forgetting(holder: Raw, key: str) -> Raw:
    """With null for a list of nothing: what a real server stores does not tell them apart."""
    return holder if holder.get(key) else {**holder, key: None}


def with_metadata(obj: Raw, key: str, value: Any) -> Raw:
    return {**obj, "metadata": with_value(obj["metadata"], key, value)}
