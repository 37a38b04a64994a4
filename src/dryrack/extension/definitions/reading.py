"""
Reads the schema of a definition, all the way down.

OpenAPI cannot say what stands at some places of a schema (a schema or a list of them, a schema or
a truth value), so what is below them has not been checked when a definition arrives. Here it is;
everything after this may rely on the types of keywords.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dryrack.kinds.text.go_json import type_name

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

Reader = Callable[[Any, str], Any]

_MISHANDLED = (
    'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition'
)
_WHERE = "JSONSchemaProps.spec.versions.schema.openAPIV3Schema"


class DefinitionError(ValueError):
    """A value of the wrong type in a schema, in the words of Go's decoder."""


def read_definition(definition: Raw) -> Raw:
    """A definition whose schemas hold what schemas hold; raises a `DefinitionError` for others."""
    spec = definition.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("versions"), list):
        return definition
    versions = [_version(version) for version in spec["versions"]]
    return {**definition, "spec": {**spec, "versions": versions}}


def _version(version: Any) -> Any:
    validation = version.get("schema") if isinstance(version, dict) else None
    if not isinstance(validation, dict) or validation.get("openAPIV3Schema") is None:
        return version
    read = _schema(validation["openAPIV3Schema"], _WHERE)
    return {**version, "schema": {**validation, "openAPIV3Schema": read}}


def _mismatch(value: Any, at: str, wanted: str) -> DefinitionError:
    return DefinitionError(
        f"{_MISHANDLED}: json: cannot unmarshal {type_name(value)} into Go struct "
        f"field {at} of type {wanted}"
    )


def _schema(value: Any, at: str) -> Any:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _mismatch(value, at, "v1.JSONSchemaProps")
    return {
        key: _READERS[key](inner, f"{at}.{key}") if key in _READERS else inner
        for key, inner in value.items()
        if inner is not None and not _is_overlooked(key, inner)
    }


def _is_overlooked(key: str, value: Any) -> bool:
    """Items that are neither a schema nor a list are read as if they were not there."""
    return key == "items" and not isinstance(value, dict | list)


def _of(wanted: str, *kinds: type) -> Reader:
    def read(value: Any, at: str) -> Any:
        is_right = isinstance(value, kinds) and (isinstance(value, bool) == (bool in kinds))
        if not is_right:
            raise _mismatch(value, at, wanted)
        return value

    return read


def _list_of(reader: Reader, wanted: str) -> Reader:
    def read(value: Any, at: str) -> Any:
        if not isinstance(value, list):
            raise _mismatch(value, at, f"[]{wanted}")
        return [reader(item, at) for item in value]

    return read


def _map_of(reader: Reader, wanted: str) -> Reader:
    def read(value: Any, at: str) -> Any:
        if not isinstance(value, dict):
            raise _mismatch(value, at, f"map[string]{wanted}")
        return {key: reader(inner, at) for key, inner in value.items()}

    return read


def _schema_or_bool(value: Any, at: str) -> Any:
    if not isinstance(value, bool | dict):
        raise DefinitionError(f"{_MISHANDLED}: boolean or JSON schema expected")
    return value if isinstance(value, bool) else _schema(value, at)


def _schema_or_list(value: Any, at: str) -> Any:
    return [_schema(item, at) for item in value] if isinstance(value, list) else _schema(value, at)


def _rule(value: Any, at: str) -> Any:
    if not isinstance(value, dict):
        raise _mismatch(value, at, "v1.ValidationRule")
    for key, inner in value.items():
        if inner is not None and key in _RULE_READERS:
            _RULE_READERS[key](inner, f"{at}.{key}")
    return {key: inner for key, inner in value.items() if inner is not None}


_text = _of("string", str)
_truth = _of("bool", bool)
_whole = _of("int64", int)
_number = _of("float64", int, float)
_RULE_READERS: Mapping[str, Reader] = {
    **dict.fromkeys(("rule", "message", "messageExpression", "reason", "fieldPath"), _text),
    "optionalOldSelf": _truth,
}
_TEXTS = ("id", "$schema", "$ref", "description", "type", "format", "title", "pattern")
_TRUTHS = ("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable")
_EXTENSIONS = ("preserve-unknown-fields", "embedded-resource", "int-or-string")
_COUNTS = ("Length", "Items", "Properties")
_READERS: Mapping[str, Reader] = {
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(_TRUTHS, _truth),
    **{f"x-kubernetes-{name}": _truth for name in _EXTENSIONS},
    **{f"{end}{what}": _whole for what in _COUNTS for end in ("min", "max")},
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _number),
    "x-kubernetes-list-type": _text,
    "x-kubernetes-map-type": _text,
    "x-kubernetes-list-map-keys": _list_of(_text, "string"),
    "x-kubernetes-validations": _list_of(_rule, "v1.ValidationRule"),
    "required": _list_of(_text, "string"),
    "enum": _list_of(lambda value, at: value, "v1.JSON"),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _list_of(_schema, "v1.JSONSchemaProps")),
    **dict.fromkeys(
        ("properties", "patternProperties", "definitions"),
        _map_of(_schema, "v1.JSONSchemaProps"),
    ),
    "not": _schema,
    "items": _schema_or_list,
    "additionalProperties": _schema_or_bool,
    "additionalItems": _schema_or_bool,
}
