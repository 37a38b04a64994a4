"""
Schemas as CEL sees them: the type of each place, and values of these types.

An object with named fields is a message of its own, so that a misspelt field is found when the
rule is written; a map is a map; what may be an integer or a string, or is not described, has no
known type. Names that CEL cannot spell are escaped as Kubernetes escapes them.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dryrack.cel import (
    KEYWORDS_AND_RESERVED_WORDS,
    Environment,
    Err,
    string_to_duration,
    string_to_timestamp,
)
from dryrack.cel.checking import types as t
from dryrack.kinds.paths import get

Schema = Mapping[str, Any]

_SPECIAL = re.compile(r"__|[./-]")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCALARS = {"boolean": t.BOOL, "integer": t.INT, "number": t.DOUBLE, "string": t.STRING}
_TEXTS = {"byte": t.BYTES, "datetime": t.TIMESTAMP, "date": t.TIMESTAMP, "duration": t.DURATION}
_OBJECT_META = "selfType.metadata"


def spellings(name: str) -> tuple[str, ...]:
    """Return how a rule writes the name of a field; None for names that it cannot write."""
    if name in KEYWORDS_AND_RESERVED_WORDS:
        return (f"__{name}__", name)
    spelled = _SPECIAL.sub(lambda found: _ESCAPES[found[0]], name)
    return (spelled,) if _IDENTIFIER.fullmatch(spelled) else ()


@dataclass(frozen=True, kw_only=True)
class RuleEnvironment(Environment):
    """Return the environment of a rule: `self`, `oldSelf`, and the messages in their types."""

    variables: Mapping[str, t.Type]
    messages: Mapping[str, Mapping[str, t.Type]]

    @property
    def identifiers(self) -> Mapping[str, t.Type]:
        known = {name: kind for name, kind in super().identifiers.items() if name != "device"}
        return {**known, **self.variables}

    def fields_of(self, message: str) -> Mapping[str, t.Type] | None:
        known = self.messages.get(message)
        return super().fields_of(message) if known is None else known


def environment(schema: Schema, *, optional_old: bool, is_root: bool) -> RuleEnvironment:
    """The environment of the rules that stand at a schema."""
    messages: dict[str, dict[str, t.Type]] = {
        _OBJECT_META: {"name": t.STRING, "generateName": t.STRING}
    }
    described = with_identity(schema) if is_root else schema
    kind = _type(described, "selfType", messages)
    old = t.optional_of(kind) if optional_old else kind
    return RuleEnvironment(
        consumable_capacity=True,
        list_type_attributes=True,
        new_expressions=False,
        variables={"self": kind, "oldSelf": old},
        messages=messages,
    )


def with_identity(schema: Schema) -> Schema:
    """A schema whose objects have apiVersion, kind and a name, as all whole objects do."""
    text = {"type": "string"}
    meta = {"type": "object", "properties": {"name": text, "generateName": text}}
    properties = {**get(schema, "properties", {}), "apiVersion": text, "kind": text}
    return {**schema, "properties": {**properties, "metadata": meta}}


def _type(schema: Schema, name: str, messages: dict[str, dict[str, t.Type]]) -> t.Type:
    if schema.get("x-kubernetes-int-or-string"):
        return t.DYN
    match schema.get("type"):
        case "array":
            return t.list_of(_type(get(schema, "items", {}), f"{name}.@idx", messages))
        case "object":
            return _object_type(schema, name, messages)
        case "string":
            known = (schema.get("format") or "").replace("-", "")
            return _nullable(schema, _TEXTS.get(known, t.STRING))
        case str() as scalar if scalar in _SCALARS:
            return _nullable(schema, _SCALARS[scalar])
        case _:
            return t.DYN


def _nullable(schema: Schema, kind: t.Type) -> t.Type:
    return t.DYN if schema.get("nullable") else kind


def _object_type(schema: Schema, name: str, messages: dict[str, dict[str, t.Type]]) -> t.Type:
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        return t.map_of(t.STRING, _type(values, f"{name}.@elem", messages))
    described = with_identity(schema) if schema.get("x-kubernetes-embedded-resource") else schema
    fields = {}
    for key, place in get(described, "properties", {}).items():
        for spelled in spellings(key):
            fields[spelled] = _type(place, f"{name}.{key}", messages)
    messages[name] = fields
    return t.DYN if schema.get("nullable") else t.struct(name)


def value_of(schema: Schema, value: Any) -> Any:
    """A JSON value as the CEL value of its schema."""
    match value:
        case dict():
            return _object_value(schema, value)
        case list():
            items = get(schema, "items", {})
            return [value_of(items, item) for item in value]
        case int() if not isinstance(value, bool) and schema.get("type") == "number":
            return float(value)
        case float() if schema.get("type") == "integer":
            return int(value)
        case str():
            return _text_value(schema, value)
        case _:
            return value


def _object_value(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        return {key: value_of(values, inner) for key, inner in value.items()}
    embedded = schema.get("x-kubernetes-embedded-resource")
    properties = get(with_identity(schema) if embedded else schema, "properties", {})
    made = {}
    for key, inner in value.items():
        # What the schema does not describe is not there for rules.
        if key in properties or schema.get("type") is None:
            read = value_of(properties.get(key, {}), inner)
            made.update(dict.fromkeys(spellings(key), read))
    return made


def _text_value(schema: Schema, value: str) -> Any:
    match (schema.get("format") or "").replace("-", ""):
        case "byte":
            return base64.b64decode(value)
        case "datetime":
            return _or_text(string_to_timestamp(value), value)
        case "date":
            return _or_text(string_to_timestamp(f"{value}T00:00:00Z"), value)
        case "duration":
            return _or_text(string_to_duration(value), value)
        case _:
            return value


def _or_text(found: Any, value: str) -> Any:
    return value if isinstance(found, Err) else found
