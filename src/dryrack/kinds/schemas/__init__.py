"""
The structure of every kind that the server has built in.

The data is what a real API server publishes, without its prose. It is read when a schema is
first asked for, and once.
"""

from __future__ import annotations

import gzip
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from dryrack.kinds.schemas.node import Definitions, Schema

__all__ = ["Schema", "builtin", "custom", "names_by_kind", "raw_definitions", "schema_of"]

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


@cache
def raw_definitions() -> dict[str, Any]:
    """Name of the definition → OpenAPI v3 schema without descriptions. Not to be changed."""
    data = resources.files(__name__).joinpath("definitions.json.gz").read_bytes()
    found: dict[str, Any] = msgspec.json.decode(gzip.decompress(data))
    return found


@cache
def builtin() -> Definitions:
    """All built-in definitions."""
    return Definitions(raw_definitions())


@cache
def names_by_kind() -> dict[tuple[str, str, str], str]:
    """(group, version, kind) → name of the definition. Not to be changed."""
    names: dict[tuple[str, str, str], str] = {}
    for name, raw in raw_definitions().items():
        for kind in raw.get("x-kubernetes-group-version-kind", ()):
            names.setdefault((kind["group"], kind["version"], kind["kind"]), name)
    return names


def schema_of(group: str, version: str, kind: str) -> Schema | None:
    """The schema of a built-in kind; None if there is no such kind."""
    name = names_by_kind().get((group, version, kind))
    return None if name is None else builtin()[name]


def custom(open_api_v3_schema: dict[str, Any]) -> Schema:
    """The schema of a custom resource: what its definition says, and every object's metadata."""
    described = open_api_v3_schema.get("properties", {})
    properties = {
        **described,
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"$ref": f"#/components/schemas/{OBJECT_META}"},
    }
    raw = {**open_api_v3_schema, "type": "object", "properties": properties}
    return Schema(raw, definitions=builtin())
