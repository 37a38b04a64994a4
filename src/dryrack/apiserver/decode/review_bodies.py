"""
Objects that are posted to be answered, not to be stored: reviews, and requests for tokens.

They are read under the rules of every create: the same refusals, the same warnings.
"""

from dryrack.apiserver.decode.bodies import Bodies
from dryrack.apiserver.extension_points import Call, Manager
from dryrack.apiserver.http.queries import DEFAULT_WRITE, WriteOptions, write_options
from dryrack.apiserver.metadata import timestamp
from dryrack.kinds.paths import metadata_of
from dryrack.kinds.raw import Raw


def read_posted(call: Call) -> Raw:
    """Return the object in the body."""
    server = call.server
    resource = call.target.resource.spoken(call.target.subresource)
    options = write_options(call.parameters, "CreateOptions")
    bodies = Bodies(server.registry, server.extensions.shapes)
    validation = options.field_validation
    return bodies.read(call.request, resource, validation=validation, warnings=call.warnings)


def admit_posted(call: Call, obj: Raw, options: WriteOptions = DEFAULT_WRITE) -> Raw:
    """Return a posted object as webhooks leave it; raise a `StatusError` if it is denied."""
    target = call.target
    posting = call.server.extensions.posting
    if posting is None or not posting.is_needed():
        return obj
    from dryrack.apiserver.verbs.writing import Order

    order = Order(
        target.resource,
        target.namespace,
        target.name,
        call.request.user,
        subresource=target.subresource,
        options=options,
        warnings=call.warnings,
        reviews=call.reviews,
    )
    return posting.admit(target.resource, obj, call.server.verbs.writer.context(order))


def with_review_status(call: Call, obj: Raw, status: Raw) -> Raw:
    """Return the object with a status and, if it has a resource of its own, managedFields."""
    new = {**obj, "metadata": metadata_of(obj)}
    if not call.target.subresource:
        from dryrack.apiserver.ownership.server_side_apply import manager_name

        options = write_options(call.parameters, "CreateOptions")
        name = manager_name(options.field_manager, call.request.headers.get("user-agent", ""))
        manager = Manager(name, "Update", "", timestamp(call.server.clock.now()))
        new = call.server.extensions.management.record(call.target.resource, new, None, manager)
    return {**new, "status": status}
