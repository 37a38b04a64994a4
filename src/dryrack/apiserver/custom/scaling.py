"""The scale subresource of custom kinds, over the usual way of writing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver import bodies, media
from dryrack.apiserver.calls import Reply
from dryrack.apiserver.custom.scale import ScalePaths, rescaled, scale_of
from dryrack.apiserver.managing import manager_name
from dryrack.apiserver.names import timestamp
from dryrack.apiserver.queries import write_options
from dryrack.apiserver.registry import Resource, Subresource
from dryrack.apiserver.seams import Manager, Patch
from dryrack.apiserver.status import Status, StatusError, bad_request, not_found
from dryrack.apiserver.strategy import PlainStrategy
from dryrack.apiserver.writing import Order, Proposal, served
from dryrack.store import Key

if TYPE_CHECKING:
    from dryrack.apiserver.calls import Call

Raw = dict[str, Any]

_SCALE = Resource(
    group="autoscaling",
    version="v1",
    kind="Scale",
    plural="scales",
    namespaced=True,
    strategy=PlainStrategy(namespaced=True),
)


def scale_subresource(paths: ScalePaths) -> Subresource:
    """Reads and writes the number of replicas where the definition says it stands."""

    async def get(call: Call) -> Reply:
        return Reply(_scale(call, paths))

    async def update(call: Call) -> Reply:
        sent = bodies.read_json(bodies.checked_size(call.request))
        return _rescale(call, paths, sent)

    async def patch(call: Call) -> Reply:
        manager = Manager("", "Update", "scale", timestamp(call.server.clock.now()))
        media_type = media.bare(call.request.headers.get("content-type", ""))
        asked = Patch(media_type, bodies.checked_size(call.request), manager, force=False)
        made = call.server.seams.patching.apply_patch(_SCALE, _scale(call, paths), asked)
        return _rescale(call, paths, made.object)

    return Subresource(
        name="scale",
        kind="Scale",
        group="autoscaling",
        version="v1",
        handlers={"get": get, "update": update, "patch": patch},
    )


def _object(call: Call) -> Raw:
    target = call.target
    stored = call.server.store.get(Key(target.resource.storage, target.namespace, target.name))
    if stored is None:
        raise not_found(target.resource.as_resource, target.name)
    meta = {**stored.object["metadata"], "resourceVersion": str(stored.revision)}
    return {**served(target.resource, stored), "metadata": meta}


def _scale(call: Call, paths: ScalePaths) -> Raw:
    found = scale_of(_object(call), paths)
    if found is None:
        message = f'the spec replicas field "{paths.spec}" does not exist'
        raise StatusError(Status(500, "InternalError", f"Internal error occurred: {message}"))
    return found


def _rescale(call: Call, paths: ScalePaths, sent: Any) -> Reply:
    replicas = _replicas(sent)
    target = call.target
    options = write_options(call.parameters, "UpdateOptions")
    order = Order(
        target.resource,
        target.namespace,
        target.name,
        call.request.user,
        subresource="scale",
        options=options,
        manager=manager_name(options.field_manager, call.request.headers.get("user-agent", "")),
        warnings=call.warnings,
    )
    revision = ((sent.get("metadata") or {}).get("resourceVersion")) or ""

    def change(old: Raw | None) -> Proposal:
        if old is None:
            raise not_found(target.resource.as_resource, target.name)
        meta = {**old["metadata"]}
        meta["resourceVersion"] = revision or _object(call)["metadata"]["resourceVersion"]
        return Proposal({**rescaled(old, paths, replicas), "metadata": meta}, False)

    call.server.verbs.writer.update(order, change)
    return Reply(_scale(call, paths))


def _replicas(sent: Any) -> int:
    if not isinstance(sent, dict) or sent.get("kind", "Scale") != "Scale":
        raise bad_request("expected a Scale object")
    replicas = (sent.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request("spec.replicas of a Scale is a whole number")
    return replicas
