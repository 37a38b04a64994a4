"""The table of a custom kind: its name and the printer columns of its definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.apiserver.tables.columns import (
    NAME,
    Column,
    JsonObject,
    Shape,
    name_of,
    seconds,
)
from dryrack.base.ages import INVALID, human
from dryrack.extension.definitions import JsonPath, JsonPathError, parse_json_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

AGE_ONLY = ({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},)


def shape_of_columns(definitions: Sequence[Mapping[str, Any]] | None) -> Shape:
    """Return the shape for `additionalPrinterColumns`; without any, a kind shows its age."""
    shown: list[tuple[Column, JsonPath]] = []
    entries: Sequence[Mapping[str, Any]] = definitions or AGE_ONLY
    for entry in entries:
        try:
            path = parse_json_path(entry["jsonPath"])
        except JsonPathError:
            # A definition that was stored before paths were checked: it shows the columns before.
            break
        usual = f"Custom resource definition column (in JSONPath format): {entry['jsonPath']}"
        column = Column(
            entry["name"],
            entry["type"],
            entry.get("format") or "",
            entry.get("priority") or 0,
            entry.get("description") or usual,
        )
        shown.append((column, path))

    def cells(obj: JsonObject, now: float) -> list[Any]:
        return [name_of(obj), *(_cell(column, path, obj, now=now) for column, path in shown)]

    return Shape((NAME, *(column for column, _ in shown)), cells)


def _cell(column: Column, path: JsonPath, obj: JsonObject, *, now: float) -> Any:
    found = path.first(obj)
    if found is None:
        return None
    value = found[0]
    match column.type:
        case "string":
            return _text(value)
        case "integer":
            return int(value) if _is_number(value) else None
        case "number":
            return value if _is_number(value) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            if not isinstance(value, str):
                return None
            moment = seconds(value)
            return INVALID if moment is None else human(now - moment)
        case _:
            return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    match value:
        case None:
            return "<nil>"
        case str():
            return value
        case _:
            # Maps in the order of their keys, as Go writes them.
            return msgspec.json.encode(value, order="sorted").decode()
