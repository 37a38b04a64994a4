"""Objects inside custom objects, which have a kind and a version, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dryrack.extension.definitions.definition_rules import word_problems
from dryrack.kinds.paths import get
from dryrack.kinds.schemas import OBJECT_META, builtin
from dryrack.kinds.schemas.strict_decode import conform
from dryrack.kinds.text.go_json import type_name
from dryrack.kinds.validation.problems import FieldProblem, invalid, required, shown_value

Schema = Mapping[str, Any]


def embedded_problems(schema: Schema, value: Any) -> Iterator[FieldProblem]:
    """Yield the problems of embedded objects without a kind or a version."""
    for path, obj in _embedded_objects(schema, value, ""):
        for name in ("apiVersion", "kind"):
            if name not in obj:
                yield required(f"{path}.{name}")
            elif not obj[name]:
                yield invalid(f"{path}.{name}", "", "must not be empty")
        if obj.get("kind") and (told := word_problems(obj["kind"].lower())):
            detail = "may have mixed case, but should otherwise match: " + ",".join(told)
            yield invalid(f"{path}.kind", obj["kind"], detail)


def embedded_error(schema: Schema, value: Any) -> str:
    """Return why an embedded object cannot be read, in the server's words; "" if all can be."""
    for path, obj in _embedded_objects(schema, value, ""):
        for name in ("apiVersion", "kind"):
            if not isinstance(obj.get(name, ""), str):
                shown = shown_value(obj[name])
                return f"{path}.{name}: Invalid value: {shown}: must be a string"
        meta = obj.get("metadata")
        if meta is not None and not isinstance(meta, dict):
            what = f"cannot unmarshal {type_name(meta)} into Go value of type v1.ObjectMeta"
            return f"{path}.metadata: Invalid value: {shown_value(meta)}: json: {what}"
        if meta and (told := conform(builtin()[OBJECT_META], meta).mismatch):
            return f"{path}.metadata: Invalid value: {shown_value(meta)}: {told}"
    return ""


def _embedded_objects(
    schema: Schema, value: Any, path: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every embedded object with its path, apart from the object itself."""
    if isinstance(value, dict):
        if path and schema.get("x-kubernetes-embedded-resource"):
            yield path, value
        properties = get(schema, "properties", {})
        additional = schema.get("additionalProperties")
        for name in sorted(value):
            if name in properties:
                yield from _embedded_objects(
                    properties[name], value[name], f"{path}.{name}" if path else name
                )
            elif isinstance(additional, dict):
                yield from _embedded_objects(additional, value[name], f"{path}[{name}]")
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            yield from _embedded_objects(schema["items"], item, f"{path}[{index}]")
