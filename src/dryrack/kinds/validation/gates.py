"""
Fields of disabled feature gates, which the API server drops.

The API server does not refuse such a field: it stores the object without the field, unless the
stored object uses the feature already. `GATED_FIELDS` lists the fields.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from dryrack.kinds.raw import Raw
from dryrack.kinds.releases import FeatureSet, GatedField, find_gated

_DEFAULT_FEATURES = FeatureSet()
_Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Dropped:
    """An object as the API server stores it, and the paths of the fields that it drops."""

    document: Raw
    fields: tuple[str, ...]


def drop_disabled(
    document: Raw, old: Raw | None = None, features: FeatureSet = _DEFAULT_FEATURES
) -> Dropped:
    """Drop the fields that a server with these features does not store; all are in v1."""
    off = [found for found in find_gated(document) if not features.is_on(found[1].gate)]
    used = {field.gate for _, field in find_gated(old or {})} if off else set()
    dropped = [found for found in off if found[1].gate not in used]
    if not dropped:
        return Dropped(document, ())
    kept = deepcopy(document)
    for path, _ in dropped:
        _remove(kept, path)
    return Dropped(kept, tuple(_show_path(path, field) for path, field in dropped))


def _remove(document: Any, path: _Path) -> None:
    *steps, last = path
    for step in steps:
        document = document[step]
    del document[last]


def _show_path(path: _Path, field: GatedField) -> str:
    """Return the path with the keys of maps in brackets."""
    is_map = [step.endswith("{}") for part in field.path.split(".") for step in _steps(part)]
    shown = ""
    for step, in_brackets in zip(path, is_map, strict=True):
        is_item = isinstance(step, int) or in_brackets
        shown += f"[{step}]" if is_item else f".{step}"
    return shown.removeprefix(".")


def _steps(part: str) -> tuple[str, ...]:
    """Return the steps of a path for one part of a field's path."""
    if part.endswith("[]"):
        return (part, "item")
    return (part.removesuffix("{}"), part) if part.endswith("{}") else (part,)
