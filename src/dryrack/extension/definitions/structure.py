"""
Problems of schemas that are not structural, and so cannot be served.

The checks come in the server's order: that the structure is complete, then defaults, then what
every schema must not hold, then rules; rules are compiled only if nothing else is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dryrack.cel import Err, compile_pattern
from dryrack.extension.definitions.filling import prune, with_defaults
from dryrack.extension.definitions.lists import duplicates
from dryrack.extension.definitions.rule_costs import Spent, Within
from dryrack.extension.definitions.rules import Uncompiled, compile_rule
from dryrack.extension.definitions.values import value_problems
from dryrack.kinds.paths import get
from dryrack.kinds.validation.problems import (
    FieldProblem,
    forbidden,
    invalid,
    not_supported,
    required,
)

Schema = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES = ("atomic", "set", "map")
_MAP_TYPES = ("atomic", "granular")
_JUNCTORS = ("anyOf", "allOf", "oneOf")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_EMPTY_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_UNREADABLE = ("is not supported", "not an array")
# What a branch cannot say: it restricts what the schema around it describes.
_NOT_IN_JUNCTORS = {
    "type": "must be empty",
    "additionalProperties": "must be undefined",
    "default": "must be undefined",
    "title": "must be empty",
    "description": "must be empty",
    "nullable": "must be false",
    "x-kubernetes-preserve-unknown-fields": "must be false",
    "x-kubernetes-embedded-resource": "must be false",
    "x-kubernetes-int-or-string": "must be false",
    "x-kubernetes-list-map-keys": "must be empty",
    "x-kubernetes-list-type": "must be undefined",
    "x-kubernetes-map-type": "must be undefined",
    "x-kubernetes-validations": "must be empty",
}


def schema_problems(schema: Schema, path: str) -> list[FieldProblem]:
    """All that is wrong with a schema at a path."""
    general = list(_general(schema, path, level="root"))
    # What the server cannot even read as a structure, it does not judge as one.
    is_readable = not any(problem.detail.endswith(_UNREADABLE) for problem in general)
    shape = sorted(_shape(schema, path), key=str) if is_readable else []
    defaults = [] if shape or not is_readable else list(_defaults(schema, path))
    problems = [*shape, *defaults, *general]
    return problems or list(_rules(schema, path))


def _children(schema: Schema, path: str) -> Iterator[tuple[Schema, str, str]]:
    """The schemas right below one, each with its path and level."""
    items = schema.get("items")
    if isinstance(items, dict):
        yield items, f"{path}.items", "item"
    for name, place in sorted(get(schema, "properties", {}).items()):
        yield place, f"{path}.properties[{name}]", "field"
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        yield additional, f"{path}.additionalProperties", "field"


def _branches(schema: Schema, path: str) -> Iterator[tuple[Schema, str]]:
    """Yield the problems of the junctors of a schema."""
    if schema.get("not") is not None:
        yield schema["not"], f"{path}.not"
    for junctor in _JUNCTORS:
        for index, branch in enumerate(schema.get(junctor) or ()):
            yield branch, f"{path}.{junctor}[{index}]"


def _shape(schema: Schema, path: str) -> Iterator[FieldProblem]:
    yield from _structure(schema, path, level="root")
    # Only of the whole it is asked whether its branches speak of what it describes.
    for branch, at in _branches(schema, path):
        yield from _undescribed_fields(branch, at, schema, path)


def _undescribed_fields(
    branch: Schema, at: str, outer: Schema, place: str
) -> Iterator[FieldProblem]:
    """Fields and items that a branch speaks of, and the schema around it does not."""
    for inner, below in _branches(branch, at):
        yield from _undescribed_fields(inner, below, outer, place)
    parts = [("items", branch.get("items"), outer.get("items"))]
    described = get(outer, "properties", {})
    for name, given in sorted(get(branch, "properties", {}).items()):
        parts.append((f"properties[{name}]", given, described.get(name)))
    for part, given, known in parts:
        if isinstance(given, dict) and not isinstance(known, dict):
            yield required(f"{place}.{part}", f"because it is defined in {at}.{part}")
        elif isinstance(given, dict) and isinstance(known, dict):
            yield from _undescribed_fields(given, f"{at}.{part}", known, f"{place}.{part}")


def _structure(schema: Schema, path: str, *, level: str) -> Iterator[FieldProblem]:
    if schema.get("type") == "array" and "items" not in schema:
        yield required(f"{path}.items", "must be specified")
    for place, below, lower in _children(schema, path):
        yield from _structure(place, below, level=lower)
    if level == "root" and schema.get("additionalProperties") is not None:
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    yield from _junctors(schema, path)
    kind = schema.get("type") or ""
    if schema.get("x-kubernetes-embedded-resource") and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail)
    elif not kind and not _is_untyped(schema):
        yield required(f"{path}.type", _EMPTY_TYPE[level])
    if level == "root" and kind and kind != "object":
        yield invalid(f"{path}.type", kind, "must be object at the root")
    yield from _embedded_resource(schema, path)
    yield from _metadata(schema, path, level=level)


def _embedded_resource(schema: Schema, path: str) -> Iterator[FieldProblem]:
    if not schema.get("x-kubernetes-embedded-resource"):
        return
    if schema.get("additionalProperties") is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        yield forbidden(f"{path}.additionalProperties", detail)
    if not schema.get("x-kubernetes-preserve-unknown-fields") and not schema.get("properties"):
        detail = "must not be empty if x-kubernetes-embedded-resource is true without "
        detail += "x-kubernetes-preserve-unknown-fields"
        yield required(f"{path}.properties", detail)


def _is_untyped(schema: Schema) -> bool:
    keys = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
    return any(schema.get(key) for key in keys)


def _metadata(schema: Schema, path: str, *, level: str) -> Iterator[FieldProblem]:
    properties = get(schema, "properties", {})
    if level != "root" and not schema.get("x-kubernetes-embedded-resource"):
        return
    for name in ("kind", "apiVersion"):
        if name in properties and properties[name].get("type") != "string":
            at = f"{path}.properties[{name}].type"
            yield invalid(at, properties[name].get("type") or "", "must be string")
    meta = properties.get("metadata")
    if meta is None:
        return
    at = f"{path}.properties[metadata]"
    if meta.get("type") != "object":
        yield invalid(f"{at}.type", meta.get("type") or "", "must be object")
    inner = set(get(meta, "properties", {}))
    if level == "root" and inner - {"name", "generateName"}:
        yield forbidden(
            at,
            "must not specify anything other than name and generateName, "
            "but metadata is implicitly specified",
        )


def _junctors(schema: Schema, path: str) -> Iterator[FieldProblem]:
    is_either = bool(schema.get("x-kubernetes-int-or-string"))
    for junctor in _JUNCTORS:
        branches = schema.get(junctor) or ()
        if is_either and junctor == "anyOf" and list(branches) == _INT_OR_STRING:
            continue
        for index, branch in enumerate(branches):
            if is_either and junctor == "allOf" and branch.get("anyOf") == _INT_OR_STRING:
                continue
            yield from _branch(branch, f"{path}.{junctor}[{index}]")
    if schema.get("not") is not None:
        yield from _branch(schema["not"], f"{path}.not")
    pattern = schema.get("pattern")
    if pattern:
        compiled = compile_pattern(pattern)
        if isinstance(compiled, Err):
            detail = f"must be a valid regular expression, but isn't: {compiled.message}"
            yield invalid(f"{path}.pattern", pattern, detail)


def _branch(branch: Schema, path: str) -> Iterator[FieldProblem]:
    """A branch may only restrict what the schema around it has described."""
    yield from _junctors(branch, path)
    if isinstance(branch.get("items"), dict):
        yield from _branch(branch["items"], f"{path}.items")
    for name, place in sorted(get(branch, "properties", {}).items()):
        yield from _branch(place, f"{path}.properties[{name}]")
    for name, told in _NOT_IN_JUNCTORS.items():
        is_set = branch.get(name) is not None if told == "must be undefined" else branch.get(name)
        if is_set:
            yield forbidden(f"{path}.{name}", f"{told} to be structural")
    if "metadata" in get(branch, "properties", {}):
        at = f"{path}.properties[metadata]"
        yield forbidden(at, "must not be specified in a nested context")


def _defaults(schema: Schema, path: str) -> Iterator[FieldProblem]:
    """Defaults that their own schema refuses."""
    default = schema.get("default")
    if default is not None:
        if prune(schema, default, is_root=False) != default:
            detail = "must not have unknown fields"
            yield invalid(f"{path}.default", default, detail)
        filled = with_defaults(schema, default)
        for problem in (*value_problems(schema, filled), *duplicates(schema, filled)):
            at = (
                f"{path}.default" if problem.field == "<nil>" else f"{path}.default.{problem.field}"
            )
            yield FieldProblem(problem.reason, at, problem.value, problem.detail)
    for place, below, _ in _children(schema, path):
        yield from _defaults(place, below)


def _general(schema: Schema, path: str, *, level: str) -> Iterator[FieldProblem]:
    kind = schema.get("type")
    if kind and kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    for name in _UNSUPPORTED:
        if schema.get(name):
            yield forbidden(f"{path}.{name}", f"{name} is not supported")
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", detail)
    additional = schema.get("additionalProperties")
    if schema.get("properties") and additional is not None and additional is not True:
        detail = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{path}.additionalProperties", detail)
    if level == "root":
        yield from _root_defaults(schema, path)
    yield from _map_type(schema, path)
    yield from _list_type(schema, path)
    for place, below, lower in _children(schema, path):
        yield from _general(place, below, level=lower)
    for branch, at in _branches(schema, path):
        yield from _general(branch, at, level="field")
        yield from _missing_rules(branch, at)


def _root_defaults(schema: Schema, path: str) -> Iterator[FieldProblem]:
    properties = get(schema, "properties", {})
    for name in ("apiVersion", "kind", "metadata"):
        if (properties.get(name) or {}).get("default") is not None:
            at = f"{path}.properties[{name}].default"
            yield forbidden(at, f"must not be set in top-level {name}")
    if schema.get("nullable"):
        yield forbidden(f"{path}.nullable", "nullable cannot be true at the root")


def _map_type(schema: Schema, path: str) -> Iterator[FieldProblem]:
    kind = schema.get("x-kubernetes-map-type")
    given = schema.get("type") or ""
    if kind is not None and given != "object":
        where = f"{path}.type"
        detail = "must be object if x-kubernetes-map-type is specified"
        yield invalid(where, given, detail) if given else required(where, detail)
    if kind is not None and kind not in _MAP_TYPES:
        yield not_supported(f"{path}.x-kubernetes-map-type", kind, _MAP_TYPES)


def _list_type(schema: Schema, path: str) -> Iterator[FieldProblem]:
    kind = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys")
    at = f"{path}.x-kubernetes-list-type"
    if kind is not None and schema.get("type") != "array":
        given = schema.get("type") or ""
        where = f"{path}.type"
        yield invalid(where, given, _WITH_LIST_TYPE) if given else required(where, _WITH_LIST_TYPE)
    if kind is not None and kind not in _LIST_TYPES:
        yield not_supported(at, kind, _LIST_TYPES)
    if keys and kind != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield required(at, detail) if kind is None else invalid(at, kind, detail)
    if kind == "map":
        yield from _map_list(schema, path, list(keys or ()))


_WITH_LIST_TYPE = "must be array if x-kubernetes-list-type is specified"


def _map_list(schema: Schema, path: str, keys: list[str]) -> Iterator[FieldProblem]:
    at = f"{path}.x-kubernetes-list-map-keys"
    items = schema.get("items")
    if not keys:
        yield required(at, "must not be empty if x-kubernetes-list-type is map")
    if not isinstance(items, dict):
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.items.type", items.get("type") or "", detail)
        return
    properties = get(items, "properties", {})
    for index, key in enumerate(keys):
        if key not in properties:
            yield invalid(at, keys, "entries must all be names of item properties")
        elif properties[key].get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{path}.items.properties[{key}].type", "object", detail)
        elif key not in get(items, "required", ()) and "default" not in properties[key]:
            detail = "this property is in x-kubernetes-list-map-keys, so it must have a default "
            detail += "or be a required property"
            yield required(f"{path}.items.properties[{key}].default", detail)
        if key in keys[:index]:
            yield invalid(at, keys, "must not contain duplicate entries")


def _rules(schema: Schema, path: str) -> Iterator[FieldProblem]:
    spent = Spent()
    yield from _rules_at(schema, path, within=Within(1), spent=spent)
    yield from spent.problems(path)


def _rules_at(schema: Schema, path: str, *, within: Within, spent: Spent) -> Iterator[FieldProblem]:
    for place, below, _ in _children(schema, path):
        yield from _rules_at(place, below, within=within.below(schema), spent=spent)
    given = schema.get("x-kubernetes-validations")
    missing = list(_missing_rules(schema, path))
    yield from missing
    if not given or missing or _lacks_rules(schema, path):
        return
    for index, raw in enumerate(given):
        at = f"{path}.x-kubernetes-validations[{index}]"
        rule = compile_rule(raw, schema, is_root=within.is_root)
        if isinstance(rule, Uncompiled):
            yield invalid(f"{at}.{rule.field}", _as_go(raw), rule.problem)
        else:
            yield from spent.observe(rule, schema, within, at=f"{at}.rule")


def _missing_rules(schema: Schema, path: str) -> Iterator[FieldProblem]:
    for index, raw in enumerate(get(schema, "x-kubernetes-validations", ())):
        if not (raw.get("rule") or "").strip():
            at = f"{path}.x-kubernetes-validations[{index}].rule"
            yield required(at, "rule is not specified")


def _lacks_rules(schema: Schema, path: str) -> bool:
    """Return whether a schema below has rules that cannot be compiled; then none is compiled."""
    return any(
        any(_missing_rules(place, below)) or _lacks_rules(place, below)
        for place, below, _ in _children(schema, path)
    )


def _as_go(raw: Schema) -> dict[str, Any]:
    """A rule as the server shows it: with the names of its own fields."""
    return {
        "Rule": raw.get("rule") or "",
        "Message": raw.get("message") or "",
        "MessageExpression": raw.get("messageExpression") or "",
        "Reason": raw.get("reason"),
        "FieldPath": raw.get("fieldPath") or "",
        "OptionalOldSelf": raw.get("optionalOldSelf"),
    }
