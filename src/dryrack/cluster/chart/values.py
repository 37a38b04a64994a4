"""Values of the chart: merge them, set single values, and compare them with the schema."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import DryrackError
from dryrack.base.text import hint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}
_CONSTANTS = {"true": True, "false": False, "null": None}


class ValuesError(DryrackError):
    """Values that the chart does not accept."""


def merge_values(
    base: Mapping[str, Any], over: Mapping[str, Any], *, keeps_null: bool = False
) -> dict[str, Any]:
    """
    Return both together, as Helm does: `over` takes precedence, and null removes a value.

    Values of several files keep null, which then removes a default value.
    """
    merged = dict(base)
    for key, value in over.items():
        old = base.get(key)
        if value is None and not keeps_null:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(old, dict):
            merged[key] = merge_values(old, value, keeps_null=keeps_null)
        else:
            merged[key] = value
    return merged


def set_value(assignment: str) -> dict[str, Any]:
    """Return the values of `--set KEY=VALUE`; `{a,b}` is a list, and `\\.` is a dot in a key."""
    path, separator, text = assignment.partition("=")
    keys = [each.replace("\\.", ".") for each in re.split(r"(?<!\\)\.", path)]
    if not separator or not all(keys):
        raise ValuesError(f"--set {assignment!r}: must be KEY=VALUE, for example plugin.enabled=true")
    if text.startswith("{") and text.endswith("}"):
        items = text[1:-1].split(",")
        value: Any = [_scalar(each.strip()) for each in items]
    else:
        value = _scalar(text)
    for key in reversed(keys):
        value = {key: value}
    return dict(value)


def _scalar(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    return int(text) if re.fullmatch(r"0|-?[1-9]\d*", text) else text


def schema_problems(
    value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], path: str = ""
) -> Iterator[str]:
    """Yield how a value differs from a JSON schema, with the keywords that the chart uses."""
    if reference := schema.get("$ref"):
        schema = {**root["definitions"][reference.rpartition("/")[2]], **schema}
    kind = schema.get("type", "object")
    is_bool = isinstance(value, bool) and kind != "boolean"
    if is_bool or not isinstance(value, _TYPES[kind]):
        yield f"{path}: must be of type {kind}"
    elif kind == "object":
        properties = schema.get("properties", {})
        more = schema.get("additionalProperties", True)
        for key, each in value.items():
            inner = f"{path}.{key}" if path else key
            if key in properties:
                yield from schema_problems(each, properties[key], root, inner)
            elif more is False:
                yield f"{inner}: unknown value{_hint(key, properties)}"
            elif isinstance(more, dict):
                yield from schema_problems(each, more, root, inner)
    elif kind == "array":
        for index, each in enumerate(value):
            yield from schema_problems(each, schema.get("items", {}), root, f"{path}[{index}]")
        if len(value) < schema.get("minItems", 0):
            yield f"{path}: must have at least {schema['minItems']} items"
    elif kind == "string":
        if not re.search(schema.get("pattern", ""), value):
            yield f"{path}: {value!r} does not match {schema['pattern']}"
        if len(value) > schema.get("maxLength", len(value)):
            yield f"{path}: must have at most {schema['maxLength']} characters"
    elif kind == "integer" and value < schema.get("minimum", value):
        yield f"{path}: must be at least {schema['minimum']}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: must be one of {', '.join(map(str, schema['enum']))}"


def _hint(key: str, properties: Mapping[str, Any]) -> str:
    text = hint(key, properties)
    return f"; {text}" if text else ""
