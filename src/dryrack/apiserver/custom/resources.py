"""The resources of a definition: one for each served version."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import Status
from dryrack.apiserver.custom.columns import shape_of_columns
from dryrack.apiserver.custom.strategy import CustomStrategy, StoredVersion
from dryrack.apiserver.registry import STATUS, Resource, Subresource
from dryrack.apiserver.verbs.scale import ScalePaths, scale_subresource
from dryrack.apiserver.versions import version_order
from dryrack.apiserver.webhooks.conversion_reviews import Converter
from dryrack.extension.definitions import (
    JsonPath,
    JsonPathError,
    compile_rules,
    parse_json_path,
    schema_of,
)
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from dryrack.apiserver.extension_points import Call
    from dryrack.apiserver.strategy import Lookup
    from dryrack.apiserver.tables.columns import Shape
    from dryrack.kinds.raw import Raw

# In the order of the real server.
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


def resources_of(definition: Raw, lookup: Lookup) -> list[tuple[Resource, Shape]]:
    """Return each served version with the table of its objects; `lookup` finds Services."""
    spec = definition["spec"]
    versions = spec["versions"]
    stored_version = next(version for version in versions if version.get("storage"))
    conversion = get(spec, "conversion", {})
    is_webhook = conversion.get("strategy") == "Webhook" and len(versions) > 1
    converter = Converter(conversion["webhook"], lookup) if is_webhook else None
    return [
        (
            _resource(spec, version, stored_version, converter),
            shape_of_columns(version.get("additionalPrinterColumns")),
        )
        for version in versions
        if version.get("served")
    ]


def without_creation(resource: Resource) -> Resource:
    """Return a resource that refuses creates, because its objects are being deleted."""

    async def refuse(call: Call) -> Status:
        subject = call.target.resource.as_resource
        message = "create not allowed while custom resource definition is terminating"
        return Status(405, "MethodNotAllowed", message, subject.details())

    return replace(resource, handlers={**resource.handlers, "create": refuse})


def _resource(
    spec: Raw, version: Raw, stored_version: Raw, converter: Converter | None
) -> Resource:
    names = spec["names"]
    raw = get(version, "subresources", {})
    subresources: dict[str, Subresource] = {}
    paths = ScalePaths.of(raw.get("scale"))
    if paths is not None:
        subresources["scale"] = scale_subresource(paths)
    if "status" in raw:
        subresources["status"] = STATUS
    return Resource(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        namespaced=spec["scope"] == "Namespaced",
        strategy=_strategy(spec, version, stored_version, converter),
        singular=names["singular"],
        list_kind=names["listKind"],
        short_names=tuple(get(names, "shortNames", ())),
        categories=tuple(get(names, "categories", ())),
        verbs=_VERBS,
        subresources=subresources,
        storage_version=stored_version["name"],
        schema=schema_of(version) or {"type": "object"},
        deprecation=_deprecation(spec, version),
    )


def _strategy(
    spec: Raw, version: Raw, stored_version: Raw, converter: Converter | None
) -> CustomStrategy:
    schema = schema_of(version) or {"type": "object"}
    subresources = get(version, "subresources", {})
    schemas = {
        f"{spec['group']}/{each['name']}": schema_of(each) or {"type": "object"}
        for each in spec["versions"]
    }
    selectable: dict[str, JsonPath] = {}
    for entry in get(version, "selectableFields", ()):
        with suppress(JsonPathError):
            path = entry["jsonPath"]
            selectable[path.removeprefix(".")] = parse_json_path(path)
    api_version = f"{spec['group']}/{stored_version['name']}"
    return CustomStrategy(
        api_version=f"{spec['group']}/{version['name']}",
        kind=spec["names"]["kind"],
        namespaced=spec["scope"] == "Namespaced",
        schema=schema,
        stored_version=StoredVersion(api_version, schemas[api_version], schemas),
        converter=converter,
        rules=compile_rules(schema),
        has_status="status" in subresources,
        scale=ScalePaths.of(subresources.get("scale")),
        selectable=selectable,
    )


def _deprecation(spec: Raw, version: Raw) -> str:
    if not version.get("deprecated"):
        return ""
    if warning := version.get("deprecationWarning"):
        return str(warning)
    group = spec["group"]
    kind = spec["names"]["kind"]
    text = f"{group}/{version['name']} {kind} is deprecated"
    # The warning names a better version if one is served and not deprecated.
    name = version["name"]
    usable = [v["name"] for v in spec["versions"] if v.get("served") and not v.get("deprecated")]
    best = min(usable, key=version_order, default="")
    better = best if best and version_order(best) < version_order(name) else ""
    return f"{text}; use {group}/{better} {kind}" if better else text
