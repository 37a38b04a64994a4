"""
Where in a loosely written object a path of the API is.

The API's verdict names fields as it has them; the person wants to see what they wrote. A path is
followed through the object as written: by key, by key in another case, by a name that was put
right. What is not there keeps the API's name: its place is that of the nearest parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dryrack.hardware.names import identifier
from dryrack.kinds.text.source_positions import parse_path

if TYPE_CHECKING:
    from dryrack.hardware.config_formats.fields import Given
    from dryrack.kinds.shape import Path
    from dryrack.kinds.validation.problems import FieldProblem


def resolved(root: Given, steps: Path) -> Path:
    """The path as written of the value that the API calls by these steps."""
    return _followed(root, steps)[0]


def value_at(root: Given, steps: Path) -> Any:
    """The value as written; None if it is not there."""
    return _followed(root, steps)[1]


def refused_at(root: Given, steps: Path, problem: FieldProblem) -> Path:
    """
    Where the thing is that the API has a problem with.

    Of a key that it refuses the API names only the map.
    """
    path, value = _followed(root, steps)
    if not isinstance(value, Mapping) or not isinstance(problem.value, str):
        return path
    wrong = str(problem.value)
    key = next((key for key in value if _means(key, wrong) or key.endswith(f"/{wrong}")), None)
    return path if key is None else (*path, key)


def _followed(root: Given, steps: Path) -> tuple[Path, Any]:
    value, path = root
    for position, step in enumerate(steps):
        key = _key(value, step)
        if key is None:
            return (*path, *steps[position:]), None
        value = value[key]
        path = (*path, key)
    return path, value


def steps_of(field: str) -> Path:
    """The steps of a field as a verdict names it."""
    return parse_path(field)


def _key(value: Any, step: str | int) -> str | int | None:
    if isinstance(value, list | tuple):
        return step if isinstance(step, int) and step < len(value) else None
    if not isinstance(value, Mapping):
        return None
    name = str(step)
    if name in value:
        return name
    return next((key for key in value if _means(key, name)), None)


def _means(key: str, name: str) -> bool:
    return key == name or key.lower() == name.lower() or identifier(key) == name
