"""
The OpenAPI schemas of all built-in kinds.

The data is what a real API server of the release publishes, without descriptions. It is loaded
once for each release, on the first use.
"""

from __future__ import annotations

import gzip
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from dryrack.kinds.releases import DEFAULT_RELEASE, Release
from dryrack.kinds.schemas.node import Definitions, Schema
from dryrack.kinds.schemas.structs import structs

__all__ = ["Schema", "builtin", "custom", "names_by_kind", "raw_definitions", "schema_of"]

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


@cache
def raw_definitions(release: Release = DEFAULT_RELEASE) -> dict[str, Any]:
    """Return the OpenAPI v3 schemas by name of the definition; do not change them."""
    name = f"definitions-{release.value}.json.gz"
    data = resources.files(__name__).joinpath(name).read_bytes()
    definitions: dict[str, Any] = msgspec.json.decode(gzip.decompress(data))
    return definitions


@cache
def builtin(release: Release = DEFAULT_RELEASE) -> Definitions:
    """Return all built-in definitions of a release."""
    return Definitions(raw_definitions(release), structs(release))


@cache
def names_by_kind(release: Release = DEFAULT_RELEASE) -> dict[tuple[str, str, str], str]:
    """Return the names of definitions by (group, version, kind); do not change them."""
    names: dict[tuple[str, str, str], str] = {}
    for name, raw in raw_definitions(release).items():
        for kind in raw.get("x-kubernetes-group-version-kind", ()):
            names.setdefault((kind["group"], kind["version"], kind["kind"]), name)
    return names


def schema_of(
    group: str, version: str, kind: str, release: Release = DEFAULT_RELEASE
) -> Schema | None:
    """Return the schema of a built-in kind in a release, or None."""
    name = names_by_kind(release).get((group, version, kind))
    return None if name is None else builtin(release)[name]


def custom(open_api_v3_schema: dict[str, Any]) -> Schema:
    """Return the schema of a custom resource, with the metadata of every object."""
    described = open_api_v3_schema.get("properties", {})
    properties = {
        **described,
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"$ref": f"#/components/schemas/{OBJECT_META}"},
    }
    raw = {**open_api_v3_schema, "type": "object", "properties": properties}
    return Schema(raw, definitions=builtin())
