"""
From a path to a resource.

Every path of the Kubernetes API has one of a few forms, whatever the kind, so they are taken
apart rather than looked up in a table of routes:

    /api/v1/…                                  the core group
    /apis/GROUP/VERSION/…                      any other
        PLURAL[/NAME[/SUBRESOURCE[/…]]]        across namespaces, or without them
        namespaces/NS/PLURAL[/NAME[/…]]        in a namespace
"""

from dataclasses import dataclass
from urllib.parse import unquote

import msgspec

from dryrack.apiserver.answer.status import method_not_allowed, not_found, page_not_found
from dryrack.apiserver.extension_points import Target
from dryrack.apiserver.registry import Registry

# `namespaces/NS/status` is a part of the namespace, not a resource in it.
_OF_NAMESPACE = ("status", "finalize")
_COLLECTION = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SUBRESOURCE = {**_OBJECT, "POST": "create"}


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """No path of a resource: a page, or nothing at all."""


class Route(msgspec.Struct, frozen=True):
    """Where a path leads, and which verb a method is there."""

    target: Target
    verb: str


def route(registry: Registry, method: str, path: str) -> Route | Elsewhere:
    """Raises a `StatusError` for a path that looks like one of a resource and is none."""
    parts = [part for part in path.split("/") if part]
    if "%" in path:
        parts = [unquote(part) for part in parts]
    if len(parts) > 2 and parts[0] == "api":
        group = ""
        version = parts[1]
        rest = parts[2:]
    elif len(parts) > 3 and parts[0] == "apis":
        group = parts[1]
        version = parts[2]
        rest = parts[3:]
    else:
        return Elsewhere()
    is_watch = rest[0] == "watch" and len(rest) > 1
    target = _target(registry, (group, version), rest[1:] if is_watch else rest)
    if target is None:
        return Elsewhere()
    if is_watch and method == "GET":
        return Route(target, "watch")
    return Route(target, _verb(method, target))


def _target(registry: Registry, of: tuple[str, str], parts: list[str]) -> Target | None:
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in _OF_NAMESPACE:
        namespace = parts[1]
        parts = parts[2:]
    resource = registry.find(*of, parts[0])
    if resource is None:
        if registry.serves(of[0]):
            raise page_not_found()
        return None
    name = parts[1] if len(parts) > 1 else ""
    subresource = parts[2] if len(parts) > 2 else ""
    target = Target(resource, namespace, name, subresource, "/".join(parts[3:]))
    _check(target)
    return target


def _check(target: Target) -> None:
    resource = target.resource
    if target.namespace and not resource.namespaced:
        raise page_not_found()
    if target.name and resource.namespaced and not target.namespace:
        raise page_not_found()
    if target.subresource and target.subresource not in resource.subresources:
        is_custom = resource.is_custom
        raise not_found(resource.as_resource, target.name) if is_custom else page_not_found()
    if target.rest and target.subresource != "proxy":
        raise page_not_found()


def _verb(method: str, target: Target) -> str:
    if target.subresource:
        verb = _SUBRESOURCE.get(method, "")
        verbs = target.resource.subresources[target.subresource].verbs
    else:
        verb = (_OBJECT if target.name else _COLLECTION).get(method, "")
        verbs = target.resource.verbs
    if verb not in verbs or not _is_placed(verb, target):
        raise method_not_allowed()
    return verb


def _is_placed(verb: str, target: Target) -> bool:
    """An object of a namespace is made in one, and deleted in one."""
    placed = verb in ("create", "deletecollection") and target.resource.namespaced
    return not placed or bool(target.namespace)
