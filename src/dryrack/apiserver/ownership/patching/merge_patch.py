"""JSON merge patch (RFC 7386): null removes, maps are merged, other values are replaced."""

from __future__ import annotations

from typing import Any


def merge(live: Any, patch: Any) -> Any:
    """Return the live value with the patch merged into it; neither is changed."""
    if not isinstance(live, dict):
        return without_nulls(patch)
    if not isinstance(patch, dict):
        return patch
    merged = dict(live)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif merged.get(name) is None:
            merged[name] = without_nulls(value)
        else:
            merged[name] = merge(merged[name], value)
    return merged


def without_nulls(value: Any) -> Any:
    """Return the value without null members of maps; items of lists stay, null too."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value
