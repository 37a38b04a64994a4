"""
The structure of what is served, for clients that check and explain.

Documents are made of the schemas that the server itself checks by, one for each group and
version, with the paths and parameters that clients look for in them: kubectl asks whether a PATCH
takes `fieldValidation` before it trusts the server to validate. Of the built-in kinds, only those
of dynamic resource allocation have descriptions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.apiserver.pages import openapi_paths
from dryrack.apiserver.pages.openapi_schemas import (
    as_version_2,
    closure,
    custom_definitions,
    definition_name,
)
from dryrack.apiserver.pages.openapi_words import add_descriptions
from dryrack.apiserver.protobuf import documents
from dryrack.client.transport import Response
from dryrack.kinds.releases import DEFAULT_RELEASE, Release
from dryrack.kinds.schemas import raw_definitions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.apiserver.registry import Registry, Resource
    from dryrack.client.transport import Request
    from dryrack.kinds.raw import Raw

_BEARER = {
    "BearerToken": {
        "description": "Bearer Token authentication",
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
    }
}
_JSON = "application/json"
_JSON_TYPES = (_JSON, "*/*", "application/*")


@dataclass(slots=True)
class OpenApiPages:
    """`/openapi/v3`, its documents, and `/openapi/v2`; made when first asked for."""

    registry: Registry
    release: Release = DEFAULT_RELEASE
    _generation: int = -1
    _documents: dict[str, bytes] = field(default_factory=dict)

    async def __call__(self, request: Request) -> Response | None:
        path = request.path.strip("/")
        if not path.startswith("openapi/v") or request.method not in ("GET", "HEAD"):
            return None
        if self._generation != self.registry.generation:
            self._documents.clear()
            self._generation = self.registry.generation
        if path == "openapi/v2":
            form = _form_of_version_2(request)
            if form is None:
                return Response(406, (("vary", "Accept"),), b"")
            body = self._get_or_build("v2", lambda: _version_2(self.registry.all(), self.release))
            return _with_etag(
                body if form == _JSON else self._as_protobuf(body), request, form=form
            )
        if path == "openapi/v3":
            return Response(
                200,
                (("content-type", "text/plain; charset=utf-8"),),
                self._get_or_build("index", self._index),
            )
        address = path.removeprefix("openapi/v3/")
        if not any(_address(each) == address for each in self.registry.all()):
            return Response(404, (), b"")
        if not any(offer in _JSON_TYPES for offer in _offers(request)):
            return Response(406, (), b"")
        return _with_etag(self._document(address), request)

    def _get_or_build(self, key: str, made: Any) -> bytes:
        if key not in self._documents:
            self._documents[key] = msgspec.json.encode(made())
        return self._documents[key]

    def _index(self) -> Raw:
        paths = sorted({_address(each) for each in self.registry.all()})
        entries = {path: {"serverRelativeURL": self._url(path)} for path in paths}
        return {"paths": entries}

    def _url(self, address: str) -> str:
        return f"/openapi/v3/{address}?hash={_tag(self._document(address))}"

    def _document(self, address: str) -> bytes:
        found = [each for each in self.registry.all() if _address(each) == address]
        return self._get_or_build(address, lambda: _version_3(found, self.release))

    def _as_protobuf(self, document: bytes) -> bytes:
        if "v2 as protobuf" not in self._documents:
            self._documents["v2 as protobuf"] = documents.to_wire(msgspec.json.decode(document))
        return self._documents["v2 as protobuf"]


def _address(resource: Resource) -> str:
    return f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"


def _definitions(resources: Iterable[Resource], release: Release) -> Raw:
    """The schemas of these resources and of all that they refer to, by name."""
    own: Raw = {}
    built_in = raw_definitions(release)
    wanted = list(openapi_paths.SHARED)
    for each in resources:
        if each.schema is None:
            wanted += [name for name in _names(each) if name in built_in]
        else:
            own |= custom_definitions(each)
    known = {**built_in, **own}
    return {
        name: add_descriptions(name, known[name])
        for name in sorted(closure([*own, *wanted], known))
    }


def _names(resource: Resource) -> list[str]:
    kinds = [(resource.group, resource.version, resource.kind)]
    kinds.append((resource.group, resource.version, resource.listed_as))
    for part in resource.subresources.values():
        if part.kind:
            group = part.group or resource.group
            version = part.version or resource.version
            kinds.append((group, version, part.kind))
    return [definition_name(*kind, resource.release) for kind in kinds]


def _info(release: Release) -> Raw:
    return {"title": "Kubernetes", "version": release.value}


def _version_3(resources: list[Resource], release: Release) -> Raw:
    definitions = _definitions(resources, release)
    paths: Raw = {}
    for each in sorted(resources, key=lambda each: each.plural):
        paths |= openapi_paths.paths(each, definitions)
    return {
        "openapi": "3.0.0",
        "info": _info(release),
        "paths": paths,
        "components": {"schemas": definitions, "securitySchemes": _BEARER},
    }


def _version_2(resources: Iterable[Resource], release: Release) -> Raw:
    found = list(resources)
    definitions = _definitions(found, release)
    paths: Raw = {}
    for each in sorted(found, key=lambda each: (_address(each), each.plural)):
        paths |= openapi_paths.paths_of_version_2(each, definitions)
    return {
        "swagger": "2.0",
        "info": _info(release),
        "paths": paths,
        "definitions": {name: as_version_2(schema) for name, schema in definitions.items()},
        "securityDefinitions": _BEARER,
        "security": [{"BearerToken": []}],
    }


def _form_of_version_2(request: Request) -> str | None:
    """Return the first media type that the client accepts and the server has, or None."""
    for offer in _offers(request):
        if offer in _JSON_TYPES:
            return _JSON
        if offer in documents.MEDIA_TYPES:
            return documents.MEDIA_TYPE
    return None


def _offers(request: Request) -> list[str]:
    accept = request.headers.get("accept") or "*/*"
    return [offer.partition(";")[0].strip().lower() for offer in accept.split(",")]


def _tag(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()


def _with_etag(body: bytes, request: Request, *, form: str = _JSON) -> Response:
    tag = f'"{_tag(body)}"'
    headers = (("content-type", form), ("etag", tag), ("vary", "Accept"))
    if request.headers.get("if-none-match") == tag:
        return Response(304, headers, b"")
    return Response(200, headers, body)
