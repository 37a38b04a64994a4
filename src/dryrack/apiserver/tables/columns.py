"""
Tables: columns, a function that returns the cells of an object, and texts of ages and labels.

Each kind has a shape. Rows have all cells; clients hide columns with a priority above zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dryrack.base.ages import human
from dryrack.kinds.paths import get

JsonObject = Mapping[str, Any]
# The object, and the current time in seconds since 1970, for ages.
Cells = Callable[[JsonObject, float], list[Any]]
Conditions = Callable[[JsonObject], list[dict[str, str]]]
ListCells = Callable[[Sequence[JsonObject], float], list[list[Any]]]


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
    list_cells: ListCells | None = None
    """Returns the cells of all objects of a list, if a row depends on the others."""


UNKNOWN = "<unknown>"
NONE = "<none>"
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


def name_of(obj: JsonObject) -> str:
    name: str = get(obj, "metadata.name", "")
    return name


def age(obj: JsonObject, now: float) -> str:
    return since(get(obj, "metadata.creationTimestamp"), now)


def since(timestamp: Any, now: float) -> str:
    """Return how long ago a time of the API was; `<unknown>` if it is unset."""
    moment = seconds(timestamp)
    return UNKNOWN if moment is None else human(now - moment)


def seconds(timestamp: Any) -> float | None:
    """Return a time of the API in seconds since 1970, or None if it is invalid."""
    if not isinstance(timestamp, str) or not timestamp:
        return None
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return None


def labels_text(labels: Mapping[str, str] | None) -> str:
    pairs = sorted((labels or {}).items())
    return ",".join(f"{key}={value}" for key, value in pairs) or NONE


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """A label selector in the syntax of a query; nothing at all is empty."""
    found = selector or {}
    terms = [(key, f"{key}={value}") for key, value in get(found, "matchLabels", {}).items()]
    terms += [(entry["key"], _term(entry)) for entry in get(found, "matchExpressions", ())]
    return ",".join(text for _, text in sorted(terms, key=lambda term: term[0]))


def _term(entry: Mapping[str, Any]) -> str:
    key = entry["key"]
    values = ",".join(sorted(get(entry, "values", ())))
    match entry.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return str(key)
