"""
Tables: columns, and a function that returns the cells of an object.

Each kind has a shape. Rows have all cells; clients hide columns with a priority above zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

JsonObject = Mapping[str, Any]
# The object, and the current time in seconds since 1970, for ages.
Cells = Callable[[JsonObject, float], list[Any]]
Conditions = Callable[[JsonObject], list[dict[str, str]]]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of one kind, and the function that returns the cells of an object."""

    columns: tuple[Column, ...]
    cells: Cells
    conditions: Conditions | None = None


NAME = Column("Name", format="name", description="The name of the object.")
AGE = Column("Age", description="How long ago the object was created.")


def plain(*names: str) -> tuple[Column, ...]:
    """Columns of text that are always shown."""
    return tuple(Column(name) for name in names)


def integers(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "integer") for name in names)


def wide(*names: str) -> tuple[Column, ...]:
    """Columns of text that are shown on request."""
    return tuple(Column(name, priority=1) for name in names)


def dig(value: Any, *path: str, default: Any = None) -> Any:
    """The value at a path, or the default where any part of it is missing or null."""
    for key in path:
        if not isinstance(value, Mapping) or value.get(key) is None:
            return default
        value = value[key]
    return value


def name_of(obj: JsonObject) -> str:
    name: str = dig(obj, "metadata", "name", default="")
    return name
