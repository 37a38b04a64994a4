"""
Routing: from a path to a resource.

Every path of the Kubernetes API has one of a few forms, so a path is split rather than looked up
in a table of routes:

    /api/v1/…                                  the core group
    /apis/GROUP/VERSION/…                      any other
        PLURAL[/NAME[/SUBRESOURCE[/…]]]        across namespaces, or without them
        namespaces/NS/PLURAL[/NAME[/…]]        in a namespace
"""

from urllib.parse import unquote

import msgspec

from dryrack.apiserver.answer.status import method_not_allowed, not_found, page_not_found
from dryrack.apiserver.extension_points import Target
from dryrack.apiserver.registry import Registry

# `namespaces/NS/status` is a subresource of the namespace, not a resource in it.
_OF_NAMESPACE = ("status", "finalize")
_COLLECTION = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SUBRESOURCE = {**_OBJECT, "POST": "create"}


class Route(msgspec.Struct, frozen=True):
    """The target of a path, and the verb that a method is there."""

    target: Target
    verb: str


def route(registry: Registry, method: str, path: str) -> Route | None:
    """
    Return the target and the verb of a request, or None if the path belongs to a page.

    Raises a `StatusError` for a path below a built-in group that has no resource.
    """
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
        return None
    is_watch = rest[0] == "watch" and len(rest) > 1
    target = _find_target(registry, (group, version), rest[1:] if is_watch else rest)
    if target is None:
        return None
    if is_watch and method == "GET":
        return Route(target, "watch")
    resource = target.resource
    if target.subresource:
        verb = _SUBRESOURCE.get(method, "")
        verbs = resource.subresources[target.subresource].verbs
    else:
        verb = (_OBJECT if target.name else _COLLECTION).get(method, "")
        verbs = resource.verbs
    # Objects of a namespaced kind are created and deleted in one namespace.
    is_placed = target.namespace or not resource.namespaced
    if verb not in verbs or (verb in ("create", "deletecollection") and not is_placed):
        raise method_not_allowed()
    return Route(target, verb)


def _find_target(registry: Registry, of: tuple[str, str], parts: list[str]) -> Target | None:
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
    rest = "/".join(parts[3:])
    if namespace and not resource.namespaced:
        raise page_not_found()
    if name and resource.namespaced and not namespace:
        raise page_not_found()
    if subresource and subresource not in resource.subresources:
        raise not_found(resource.as_resource, name) if resource.is_custom else page_not_found()
    if rest and subresource != "proxy":
        raise page_not_found()
    return Target(resource, namespace, name, subresource, rest)
