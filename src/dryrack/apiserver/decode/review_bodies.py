"""
Objects that are posted to be answered, not to be stored: reviews, and requests for tokens.

They are read under the rules of every create: the same refusals, the same warnings.
"""

from dataclasses import replace

from dryrack.apiserver.decode.bodies import Bodies
from dryrack.apiserver.extension_points import Manager
from dryrack.apiserver.http.queries import write_options
from dryrack.apiserver.names import timestamp
from dryrack.apiserver.registry import Resource
from dryrack.apiserver.request_context import Call, Target
from dryrack.kinds.raw import Raw


def posted(call: Call) -> Raw:
    """The object in the body."""
    server, resource = call.server, spoken(call.target)
    options = write_options(call.parameters, "CreateOptions")
    bodies = Bodies(server.registry, server.seams.shapes)
    validation = options.field_validation
    return bodies.read(call.request, resource, validation=validation, warnings=call.warnings)


def spoken(target: Target) -> Resource:
    """The resource with the kind that is posted to it, or to a part of it."""
    part = target.resource.subresources.get(target.subresource)
    if part is None or not part.kind:
        return target.resource
    group = part.group or target.resource.group
    version = part.version or target.resource.version
    return replace(target.resource, kind=part.kind, group=group, version=version)


def completed(call: Call, obj: Raw, status: Raw) -> Raw:
    """The object with its status and, if it was posted to a resource of its own, its managers."""
    bare = {**obj, "metadata": obj.get("metadata") or {}}
    if not call.target.subresource:
        bare = _managed(call, bare)
    return {**bare, "status": status}


def _managed(call: Call, obj: Raw) -> Raw:
    from dryrack.apiserver.ownership.server_side_apply import manager_name

    options = write_options(call.parameters, "CreateOptions")
    name = manager_name(options.field_manager, call.request.headers.get("user-agent", ""))
    manager = Manager(name, "Update", "", timestamp(call.server.clock.now()))
    return call.server.seams.management.record(call.target.resource, obj, None, manager)
