"""JSON merge patch (RFC 7386): what is null goes, maps are merged, all else is replaced."""

from __future__ import annotations

from typing import Any


def merged(live: Any, patch: Any) -> Any:
    """The live value with the patch merged into it; neither is changed."""
    if not isinstance(live, dict):
        return without_nulls(patch)
    if not isinstance(patch, dict):
        return patch
    made = dict(live)
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        elif made.get(name) is None:
            made[name] = without_nulls(value)
        else:
            made[name] = merged(made[name], value)
    return made


def without_nulls(value: Any) -> Any:
    """What is new has nothing to take away. Items of lists stay, whatever they are."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value
