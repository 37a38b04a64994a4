"""Duplicate items of lists that are sets or maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from dryrack.kinds.paths import get
from dryrack.kinds.validation.problems import FieldProblem, duplicate, invalid

Schema = Mapping[str, Any]


def duplicates(schema: Schema, value: Any, path: str = "") -> Iterator[FieldProblem]:
    """Yield every duplicate item, in all lists at and below a value."""
    if isinstance(value, list):
        match schema.get("x-kubernetes-list-type"):
            case "set":
                for index in _places_of_duplicates(value):
                    yield duplicate(f"{path}[{index}]", value[index])
            case "map":
                yield from _in_map(schema, value, path)
        items = schema.get("items")
        if isinstance(items, dict):
            for index, item in enumerate(value):
                yield from duplicates(items, item, f"{path}[{index}]")
    elif isinstance(value, dict):
        properties = get(schema, "properties", {})
        additional = schema.get("additionalProperties")
        for name in sorted(value):
            if name in properties:
                yield from duplicates(
                    properties[name], value[name], f"{path}.{name}" if path else name
                )
            elif isinstance(additional, dict):
                yield from duplicates(additional, value[name], f"{path}[{name}]")


def _in_map(schema: Schema, value: list[Any], path: str) -> Iterator[FieldProblem]:
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            detail = "must be an object for an array of list-type map"
            yield invalid(f"{path}[{index}]", item, detail)
            return
    names = get(schema, "x-kubernetes-list-map-keys", ())
    keys = [{name: (item or {})[name] for name in names if name in (item or {})} for item in value]
    for index in _places_of_duplicates(keys):
        yield duplicate(f"{path}[{index}]", keys[index])


def _places_of_duplicates(values: list[Any]) -> Iterator[int]:
    """Yield the place where each value occurs for the second time."""
    seen: dict[bytes, int] = {}
    for index, value in enumerate(values):
        text = msgspec.json.encode(value, order="sorted")
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            yield index
