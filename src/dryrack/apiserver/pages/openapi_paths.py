"""
The paths of a resource and what may be asked there.

Clients read two things out of them: which kind a path is about, and which parameters it takes.
Both forms of the documents are made of one list of operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.pages.openapi_schemas import PREFIX, as_version_2, definition_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.apiserver.registry import Resource, Subresource
    from dryrack.kinds.raw import Raw

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_STATUS = f"{_META}.Status"
_DELETE_OPTIONS = f"{_META}.DeleteOptions"
_PATCH = f"{_META}.Patch"
# Definitions to which the operations of all kinds refer.
SHARED = (_STATUS, _DELETE_OPTIONS, _PATCH)

_JSON = "application/json"
_PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)
_STRATEGIC = "application/strategic-merge-patch+json"

_STRING = {"type": "string"}
_INTEGER = {"type": "integer"}
_BOOLEAN = {"type": "boolean"}
_PARAMETERS: Mapping[str, Raw] = {
    "allowWatchBookmarks": _BOOLEAN,
    "continue": _STRING,
    "dryRun": _STRING,
    "fieldManager": _STRING,
    "fieldSelector": _STRING,
    "fieldValidation": _STRING,
    "force": _BOOLEAN,
    "gracePeriodSeconds": _INTEGER,
    "labelSelector": _STRING,
    "limit": _INTEGER,
    "orphanDependents": _BOOLEAN,
    "pretty": _STRING,
    "propagationPolicy": _STRING,
    "resourceVersion": _STRING,
    "resourceVersionMatch": _STRING,
    "sendInitialEvents": _BOOLEAN,
    "timeoutSeconds": _INTEGER,
    "watch": _BOOLEAN,
}
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_LIST = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)


@dataclass(frozen=True, slots=True)
class _Verb:
    """The method, action, start of the identifier, parameters and success codes of a verb."""

    method: str
    action: str
    word: str
    parameters: tuple[str, ...] = ()
    codes: tuple[str, ...] = ("200",)


_COLLECTION = {
    "list": _Verb("get", "list", "list", _LIST),
    "create": _Verb("post", "post", "create", _WRITE, ("200", "201", "202")),
    "deletecollection": _Verb(
        "delete", "deletecollection", "deleteCollection", tuple(sorted({*_DELETE, *_LIST[1:-1]}))
    ),
}
_OBJECT = {
    "get": _Verb("get", "get", "read"),
    "update": _Verb("put", "put", "replace", _WRITE, ("200", "201")),
    "patch": _Verb("patch", "patch", "patch", (*_WRITE, "force"), ("200", "201")),
    "delete": _Verb("delete", "delete", "delete", _DELETE, ("200", "202")),
}


@dataclass(frozen=True, slots=True)
class _Operation:
    verb: _Verb
    identifier: str
    tag: str
    kind: tuple[str, str, str]
    answer: str
    body: str
    patch_types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Path:
    path: str
    variables: tuple[str, ...]
    operations: tuple[_Operation, ...]


def paths(resource: Resource, definitions: Mapping[str, Any]) -> Raw:
    """The paths of a resource in the form of OpenAPI v3."""
    return {
        each.path: {
            **{op.verb.method: _operation_3(op, definitions) for op in each.operations},
            "parameters": [
                *(_variable(name) | {"schema": _STRING} for name in each.variables),
                _parameter_3("pretty"),
            ],
        }
        for each in _paths(resource)
    }


def paths_of_version_2(resource: Resource, definitions: Mapping[str, Any]) -> Raw:
    return {
        each.path: {
            **{op.verb.method: _operation_2(op, definitions) for op in each.operations},
            "parameters": [
                *(_variable(name) | _STRING for name in each.variables),
                _parameter_2("pretty"),
            ],
        }
        for each in _paths(resource)
    }


def _paths(resource: Resource) -> Iterator[_Path]:
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    below = "/namespaces/{namespace}" if resource.namespaced else ""
    scope = ("namespace",) if resource.namespaced else ()
    collection = f"{root}{below}/{resource.plural}"
    yield from _if_any(collection, scope, _operations(resource, _COLLECTION))
    if resource.namespaced and "list" in resource.verbs:
        listed = _operations(resource, {"list": _COLLECTION["list"]}, suffix="ForAllNamespaces")
        yield _Path(f"{root}/{resource.plural}", (), listed)
    named = (*scope, "name")
    yield from _if_any(f"{collection}/{{name}}", named, _operations(resource, _OBJECT))
    for name in sorted(resource.subresources):
        part = resource.subresources[name]
        operations = _part_operations(resource, part)
        yield from _if_any(f"{collection}/{{name}}/{name}", named, operations)


def _if_any(
    path: str, variables: tuple[str, ...], operations: tuple[_Operation, ...]
) -> Iterator[_Path]:
    if operations:
        yield _Path(path, variables, operations)


def _operations(
    resource: Resource, verbs: Mapping[str, _Verb], suffix: str = ""
) -> tuple[_Operation, ...]:
    kind = (resource.group, resource.version, resource.kind)
    return tuple(
        _operation(resource, verb, kind, f"{resource.kind}{suffix}")
        for name, verb in verbs.items()
        if name in resource.verbs
    )


def _part_operations(resource: Resource, part: Subresource) -> tuple[_Operation, ...]:
    kind = (
        part.group or resource.group,
        part.version or resource.version,
        part.kind or resource.kind,
    )
    verbs = _OBJECT | {"create": _COLLECTION["create"]}
    name = f"{resource.kind}{part.name.title()}"
    return tuple(
        _operation(resource, verb, kind, name) for key, verb in verbs.items() if key in part.verbs
    )


def _operation(
    resource: Resource, verb: _Verb, kind: tuple[str, str, str], name: str
) -> _Operation:
    scope = "Namespaced" if resource.namespaced and "ForAll" not in name else ""
    group = (resource.group.partition(".")[0] or "core").replace("-", "")
    spoken = f"{group.title()}{resource.version.title()}{scope}{name}"
    body = definition_name(*kind, resource.release)
    answers = {
        "list": definition_name(
            resource.group, resource.version, resource.listed_as, resource.release
        ),
        "delete": _STATUS,
        "deletecollection": _STATUS,
    }
    bodies = {"delete": _DELETE_OPTIONS, "deletecollection": _DELETE_OPTIONS, "patch": _PATCH}
    return _Operation(
        verb,
        f"{verb.word}{spoken}",
        f"{group}_{resource.version}",
        kind,
        answers.get(verb.action, body),
        "" if verb.method == "get" else bodies.get(verb.action, body),
        _PATCH_TYPES if resource.schema is not None else (*_PATCH_TYPES, _STRATEGIC),
    )


def _common(operation: _Operation) -> Raw:
    group, version, kind = operation.kind
    return {
        "operationId": operation.identifier,
        "tags": [operation.tag],
        "x-kubernetes-action": operation.verb.action,
        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
    }


def _operation_3(operation: _Operation, definitions: Mapping[str, Any]) -> Raw:
    told = _common(operation)
    if operation.verb.parameters:
        told["parameters"] = [_parameter_3(name) for name in operation.verb.parameters]
    if operation.body:
        types = operation.patch_types if operation.verb.method == "patch" else (_JSON,)
        schema = _reference(operation.body, definitions)
        told["requestBody"] = {"content": {each: {"schema": schema} for each in types}}
    content = {_JSON: {"schema": _reference(operation.answer, definitions)}}
    told["responses"] = {
        code: {"description": _CODES[code], "content": content} for code in operation.verb.codes
    }
    return told


def _operation_2(operation: _Operation, definitions: Mapping[str, Any]) -> Raw:
    told = _common(operation)
    is_patch = operation.verb.method == "patch"
    told["consumes"] = list(operation.patch_types) if is_patch else [_JSON]
    told["produces"] = [_JSON, "application/yaml"]
    told["parameters"] = [_parameter_2(name) for name in operation.verb.parameters]
    if operation.body:
        schema = as_version_2(_reference(operation.body, definitions))
        told["parameters"].insert(0, {"name": "body", "in": "body", "schema": schema})
    schema = as_version_2(_reference(operation.answer, definitions))
    told["responses"] = {
        code: {"description": _CODES[code], "schema": schema} for code in operation.verb.codes
    }
    return told


_CODES = {"200": "OK", "201": "Created", "202": "Accepted"}


def _reference(name: str, definitions: Mapping[str, Any]) -> Raw:
    return {"$ref": f"{PREFIX}{name}"} if name in definitions else {"type": "object"}


def _variable(name: str) -> Raw:
    return {"name": name, "in": "path", "required": True}


def _parameter_3(name: str) -> Raw:
    return {"name": name, "in": "query", "schema": _PARAMETERS[name]}


def _parameter_2(name: str) -> Raw:
    return {"name": name, "in": "query", **_PARAMETERS[name]}
