"""
Discovery: the groups, versions and resources that the server serves.

Discovery has two forms: a document for each group and version, and the aggregated form, two
documents for everything. Both are built again when the registry changes, and the aggregated form
has an entity tag, so that a client can ask for it again at no cost.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from dryrack.apiserver.versions import version_order
from dryrack.client.transport import Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver.registry import Registry, Resource, Subresource
    from dryrack.client.transport import Request
    from dryrack.kinds.raw import Raw

# Clients prefer a group that comes earlier when a short name is ambiguous. Groups that are not
# here are those of custom kinds; they come last, by name.
_GROUP_ORDER = (
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "storagemigration.k8s.io",
)
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
# The default port of Kubernetes.
_USUAL_ADDRESS = "127.0.0.1:6443"
_STORED_VERBS = {"create", "delete", "list"}


@dataclass(frozen=True, slots=True)
class _Group:
    name: str
    versions: tuple[str, ...]

    def as_json(self) -> Raw:
        entries = [
            {"groupVersion": f"{self.name}/{version}", "version": version}
            for version in self.versions
        ]
        return {"name": self.name, "versions": entries, "preferredVersion": entries[0]}


class Catalogue:
    """The contents of a registry at one moment, in both forms of discovery."""

    def __init__(self, resources: Sequence[Resource]) -> None:
        self._resources = resources
        self._resource_lists: dict[tuple[str, str], Raw] = {}

    @cached_property
    def groups(self) -> tuple[_Group, ...]:
        """All groups but the core, the most important first."""
        versions: dict[str, set[str]] = {}
        for each in self._resources:
            versions.setdefault(each.group, set()).add(each.version)
        names = sorted(versions.keys() - {""}, key=_importance)
        return tuple(
            _Group(name, tuple(sorted(versions[name], key=version_order))) for name in names
        )

    def in_version(self, group: str, version: str) -> list[Resource]:
        found = [e for e in self._resources if (e.group, e.version) == (group, version)]
        return sorted(found, key=lambda each: each.plural)

    def group(self, name: str) -> Raw | None:
        found = next((each for each in self.groups if each.name == name), None)
        if found is None:
            return None
        return {"kind": "APIGroup", "apiVersion": "v1", **found.as_json()}

    def group_list(self) -> Raw:
        groups = [each.as_json() for each in self.groups]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def resource_list(self, group: str, version: str) -> Raw | None:
        known = self._resource_lists.get((group, version))
        if known is None:
            known = self._resource_list(group, version)
            if known is not None:
                self._resource_lists[group, version] = known
        return known

    def _resource_list(self, group: str, version: str) -> Raw | None:
        entries = [entry for each in self.in_version(group, version) for entry in _entries(each)]
        if not entries:
            return None
        head = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if group else {})
        name = f"{group}/{version}" if group else version
        return head | {"groupVersion": name, "resources": entries}

    @cached_property
    def aggregated_core(self) -> _Aggregated:
        return _Aggregated([self._aggregate("", ("v1",))])

    @cached_property
    def aggregated_groups(self) -> _Aggregated:
        return _Aggregated([self._aggregate(g.name, g.versions) for g in self.groups])

    def _aggregate(self, group: str, versions: Sequence[str]) -> Raw:
        told = [
            {
                "version": version,
                "resources": [_aggregate(each) for each in self.in_version(group, version)],
                "freshness": "Current",
            }
            for version in versions
        ]
        return {"metadata": {"name": group} if group else {}, "versions": told}


def _importance(group: str) -> tuple[int, str]:
    known = group in _GROUP_ORDER
    return (_GROUP_ORDER.index(group), "") if known else (len(_GROUP_ORDER), group)


class _Aggregated:
    """A document with everything that some groups hold, and its entity tag."""

    def __init__(self, items: list[Raw]) -> None:
        head = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
        self.json = msgspec.json.encode(head | {"metadata": {}, "items": items})
        self.tag = f'"{hashlib.sha512(self.json).hexdigest().upper()}"'


def _entries(resource: Resource) -> list[Raw]:
    """A resource and its parts, as the documents of a version list them."""
    parts = [resource.subresources[name] for name in sorted(resource.subresources)]
    return [_entry(resource), *(_part_entry(resource, part) for part in parts)]


def _entry(resource: Resource) -> Raw:
    entry: Raw = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if set(resource.verbs) >= _STORED_VERBS:
        group, _, version = resource.hashed_as.rpartition("/")
        if not version:
            group = resource.group
            version = resource.stored_version
        digest = hashlib.sha256(f"{group}/{version}/{resource.kind}".encode()).digest()
        entry["storageVersionHash"] = base64.b64encode(digest[:8]).decode()
    return entry


def _part_entry(resource: Resource, part: Subresource) -> Raw:
    entry: Raw = {
        "name": f"{resource.plural}/{part.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if part.group:
        entry |= {"group": part.group, "version": part.version}
    return entry | {"kind": part.kind or resource.kind, "verbs": list(part.verbs)}


def _aggregate(resource: Resource) -> Raw:
    entry: Raw = {
        "resource": resource.plural,
        "responseKind": _response_kind(resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        names = sorted(resource.subresources)
        entry["subresources"] = [
            _aggregated_part(resource, resource.subresources[name]) for name in names
        ]
    return entry


def _aggregated_part(resource: Resource, part: Subresource) -> Raw:
    kind = _response_kind(part.kind or resource.kind, part.group, part.version)
    return {"subresource": part.name, "responseKind": kind, "verbs": list(part.verbs)}


def _response_kind(kind: str, group: str = "", version: str = "") -> Raw:
    return {"group": group, "version": version, "kind": kind}


class DiscoveryPages:
    """The pages of discovery, as the server plugs them in."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._catalogue = Catalogue(())
        self._generation = -1

    async def __call__(self, request: Request) -> Response | None:
        parts = request.path.strip("/").split("/")
        if parts[0] not in ("api", "apis") or len(parts) > (2 if parts[0] == "api" else 3):
            return None
        if request.method not in ("GET", "HEAD"):
            return None
        return self._page(parts, request)

    def _page(self, parts: list[str], request: Request) -> Response | None:
        if self._generation != self._registry.generation:
            self._catalogue = Catalogue(self._registry.all())
            self._generation = self._registry.generation
        catalogue = self._catalogue
        wants_all = _wants_aggregated(request)
        match parts:
            case ["api"] if wants_all:
                return _with_etag(catalogue.aggregated_core, request)
            case ["apis"] if wants_all:
                return _with_etag(catalogue.aggregated_groups, request)
            case ["api"]:
                return _json(_core_versions(request))
            case ["apis"]:
                return _json(catalogue.group_list())
            case ["apis", group]:
                return _json_or_nothing(catalogue.group(group))
            case ["api", version]:
                return _json_or_nothing(catalogue.resource_list("", version))
            case ["apis", group, version]:
                return _json_or_nothing(catalogue.resource_list(group, version))
            case _:
                return None


def _core_versions(request: Request) -> Raw:
    # The address of the request; a client in this process needs none.
    address = request.headers.get("host", _USUAL_ADDRESS)
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def _wants_aggregated(request: Request) -> bool:
    """Return whether the client prefers the aggregated document."""
    for offer in request.headers.get("accept", "").split(","):
        words = [word.strip() for word in offer.split(";")]
        if words[0] in ("application/json", "*/*"):
            if "as=APIGroupDiscoveryList" not in words:
                return False
            if "g=apidiscovery.k8s.io" in words and "v=v2" in words:
                return True
    return False


def _with_etag(told: _Aggregated, request: Request) -> Response:
    headers = (
        ("content-type", _AGGREGATED),
        ("etag", told.tag),
        ("vary", "Accept"),
        ("cache-control", "public"),
    )
    if request.headers.get("if-none-match") == told.tag:
        return Response(304, headers, b"")
    return Response(200, headers, told.json)


def _json_or_nothing(document: Raw | None) -> Response | None:
    return None if document is None else _json(document)


def _json(document: Raw) -> Response:
    body = msgspec.json.encode(document) + b"\n"
    return Response(200, (("content-type", "application/json"),), body)
