"""Objects inside custom objects: those have a kind and a version, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dryrack.kinds.validation.problems import FieldProblem, required

Schema = Mapping[str, Any]


def nameless(schema: Schema, value: Any, path: str = "") -> Iterator[FieldProblem]:
    """Embedded objects that do not say what they are."""
    if isinstance(value, dict):
        if path and schema.get("x-kubernetes-embedded-resource"):
            for name in ("apiVersion", "kind"):
                if not value.get(name):
                    yield required(f"{path}.{name}")
        yield from _below(schema, value, path)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            yield from nameless(schema["items"], item, f"{path}[{index}]")


def _below(schema: Schema, value: dict[str, Any], path: str) -> Iterator[FieldProblem]:
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    for name in sorted(value):
        if name in properties:
            yield from nameless(properties[name], value[name], f"{path}.{name}" if path else name)
        elif isinstance(additional, dict):
            yield from nameless(additional, value[name], f"{path}[{name}]")
