"""Schemas as the OpenAPI documents hold them: names, references, and both versions' forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.pages.openapi_words import of_custom_kinds
from dryrack.kinds.schemas import OBJECT_META, names_by_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dryrack.apiserver.registry import Resource
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.releases import Release

PREFIX = "#/components/schemas/"
_V2_PREFIX = "#/definitions/"
LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
_LOGIC = ("oneOf", "anyOf", "allOf", "not", "nullable", "default")


def definition_name(group: str, version: str, kind: str, release: Release) -> str:
    """The name of a kind's schema in the documents of a release."""
    known = names_by_kind(release).get((group, version, kind))
    return known or custom_name(group, version, kind)


def custom_name(group: str, version: str, kind: str) -> str:
    """Custom kinds are named by their group, backwards."""
    return ".".join([*reversed(group.split(".")), version, kind])


def custom_definitions(resource: Resource) -> Raw:
    """The schemas of a custom kind and of its list."""
    group = resource.group
    version = resource.version
    name = custom_name(group, version, resource.kind)
    schema = dict(resource.schema or {"type": "object"})
    words = of_custom_kinds()
    own = {
        "apiVersion": {"type": "string", "description": words["apiVersion"]},
        "kind": {"type": "string", "description": words["kind"]},
    }
    metadata = {"description": words["metadata"]}
    properties = {
        **schema.get("properties", {}),
        **own,
        "metadata": {"allOf": [{"$ref": f"{PREFIX}{OBJECT_META}"}], **metadata},
    }
    kind = {"group": group, "version": version, "kind": resource.kind}
    listed = {"group": group, "version": version, "kind": resource.listed_as}
    return {
        name: {
            **schema,
            "type": "object",
            "properties": properties,
            "x-kubernetes-group-version-kind": [kind],
        },
        custom_name(group, version, resource.listed_as): {
            "type": "object",
            "description": f"{resource.listed_as} is a list of {resource.kind}",
            "required": ["items"],
            "properties": {
                **own,
                "items": {
                    "type": "array",
                    "description": words["items"],
                    "items": {"$ref": f"{PREFIX}{name}"},
                },
                "metadata": {"allOf": [{"$ref": f"{PREFIX}{LIST_META}"}], **metadata},
            },
            "x-kubernetes-group-version-kind": [listed],
        },
    }


def closure(names: Iterable[str], known: Mapping[str, Any]) -> set[str]:
    """These definitions and all that they refer to."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in known and name not in found:
            found.add(name)
            waiting += _references(known[name])
    return found


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(PREFIX)
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def as_version_2(schema: Any) -> Any:
    """
    A schema in the terms of OpenAPI v2.

    There a reference stands alone, values of two types are strings of a format, and alternatives,
    nulls and defaults cannot be said.
    """
    if isinstance(schema, list):
        return [as_version_2(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    parts = schema.get("allOf") or [schema]
    reference = parts[0].get("$ref") if len(parts) == 1 else None
    referred = reference if isinstance(reference, str) else None
    if referred is not None:
        extensions = {
            k: v for k, v in schema.items() if k == "description" or k.startswith("x-kubernetes-")
        }
        return {"$ref": _V2_PREFIX + referred.removeprefix(PREFIX), **extensions}
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
        return {"type": "string", "format": "int-or-string"}
    kept = {key: value for key, value in schema.items() if key not in _LOGIC}
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        # kubectl refuses unknown fields where it sees properties. A kind shows only its type.
        kinds = schema.get("x-kubernetes-group-version-kind")
        if kinds:
            return {"type": "object", "x-kubernetes-group-version-kind": kinds}
        kept = {key: value for key, value in kept.items() if key not in ("properties", "items")}
    if "oneOf" in schema and "type" not in kept:
        kept["type"] = "string"
    return {key: _part_of_version_2(key, value) for key, value in kept.items()}


def _part_of_version_2(key: str, value: Any) -> Any:
    if key == "properties":
        return {name: as_version_2(inner) for name, inner in value.items()}
    return as_version_2(value) if key in ("items", "additionalProperties") else value
