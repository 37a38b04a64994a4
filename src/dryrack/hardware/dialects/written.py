"""
Where in a loosely written object a path of the API is.

The API's verdict names fields as it has them; the person wants to see what they wrote. A path is
followed through the object as written: by key, by key in another case, by a name that was put
right. Where it cannot be followed further, the nearest parent is the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dryrack.hardware.names import identifier
from dryrack.kinds.places import parse_path

if TYPE_CHECKING:
    from dryrack.hardware.dialects.fields import Given
    from dryrack.kinds.shape import Path
    from dryrack.kinds.validation.problems import FieldProblem


def resolved(root: Given, steps: Path) -> Path:
    """The path as written of the value that the API calls by these steps."""
    value, path = root
    for step in steps:
        key = _key(value, step)
        if key is None:
            break
        value, path = value[key], (*path, key)
    return path


def refused_at(root: Given, steps: Path, problem: FieldProblem) -> Path:
    """
    Where the thing is that the API has a problem with.

    Of a key that it refuses the API names only the map.
    """
    path = resolved(root, steps)
    if len(path) != len(root.path) + len(steps) or not isinstance(problem.value, str):
        return path
    value: Any = root.value
    for step in path[len(root.path) :]:
        value = value[step]
    if not isinstance(value, Mapping):
        return path
    wrong = str(problem.value)
    key = next((key for key in value if _means(key, wrong) or key.endswith(f"/{wrong}")), None)
    return path if key is None else (*path, key)


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
