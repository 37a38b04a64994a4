"""Values of the chart: merge them, set single values, and compare them with the schema."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import DryrackError
from dryrack.base.text import hint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_TYPES: Mapping[str, type] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
}
# Each keyword of a limit, whether a value keeps it, and the problem otherwise.
_LIMITS: Mapping[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minItems": (lambda value, limit: len(value) >= limit, "must have at least {limit} items"),
    "pattern": (
        lambda value, limit: re.search(limit, value) is not None,
        "{value!r} does not match {limit}",
    ),
    "maxLength": (
        lambda value, limit: len(value) <= limit,
        "must have at most {limit} characters",
    ),
    "minimum": (lambda value, limit: value >= limit, "must be at least {limit}"),
    "enum": (lambda value, limit: value in limit, "must be one of {limit}"),
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
        raise ValuesError(
            f"--set {assignment!r}: must be KEY=VALUE, for example plugin.enabled=true"
        )
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
    schema = _resolve(schema, root)
    kind = schema.get("type", "object")
    found: Any = value
    if not isinstance(value, _TYPES[kind]) or isinstance(value, bool) != (kind == "boolean"):
        yield f"{path}: must be of type {kind}"
        return
    if kind == "object":
        properties = schema.get("properties", {})
        more = schema.get("additionalProperties", {})
        for key, each in found.items():
            inner = f"{path}.{key}" if path else key
            child = properties.get(key, more)
            if child is False:
                yield f"{inner}: unknown value{_hint(key, properties)}"
            elif child:
                yield from schema_problems(each, child, root, inner)
        for key, child in properties.items():
            # Without a list or map, a template has nothing to print; it needs all other values.
            child = _resolve(child, root)
            is_required = bool({"properties", "minItems"} & child.keys())
            if key not in found and (is_required or child["type"] not in ("array", "object")):
                inner = f"{path}.{key}" if path else key
                yield f"{inner}: must not be null; leave it out to use the default"
        return
    if kind == "array":
        for index, each in enumerate(found):
            yield from schema_problems(each, schema["items"], root, f"{path}[{index}]")
    for keyword, (is_kept, problem) in _LIMITS.items():
        if keyword in schema and not is_kept(value, schema[keyword]):
            limit = schema[keyword]
            shown = ", ".join(map(str, limit)) if isinstance(limit, list) else limit
            yield f"{path}: {problem.format(value=value, limit=shown)}"


def _resolve(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema, or the definition that it refers to."""
    name = schema.get("$ref", "").rpartition("/")[2]
    return dict(root["definitions"][name]) if name else schema


def _hint(key: object, properties: Mapping[str, Any]) -> str:
    text = hint(str(key), properties)
    return f"; {text}" if text else ""
