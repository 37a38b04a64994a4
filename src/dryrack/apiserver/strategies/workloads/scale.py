"""
How many pods a workload wants, as a part of its own that all workloads have alike.

It is read from the workload and written into it under the usual rules of an update.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver import bodies, media
from dryrack.apiserver.bodies import Bodies
from dryrack.apiserver.calls import Reply
from dryrack.apiserver.managing import manager_name
from dryrack.apiserver.metadata import check_name
from dryrack.apiserver.names import timestamp
from dryrack.apiserver.posted import spoken
from dryrack.apiserver.queries import write_options
from dryrack.apiserver.seams import Manager, Patch
from dryrack.apiserver.status import (
    Subject,
    invalid,
    not_found,
    not_implemented,
    unsupported_media_type,
)
from dryrack.apiserver.strategies.checks import NON_NEGATIVE
from dryrack.apiserver.writing import Order, Proposal, Written
from dryrack.kinds.validation.problems import invalid as invalid_value
from dryrack.store import Key

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.apiserver.calls import Answer, Call
    from dryrack.apiserver.queries import WriteOptions

Raw = dict[str, Any]

_SCALE = Subject("autoscaling", "Scale")
_APPLY = "application/apply-patch+yaml"
_NAMES = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


async def get(call: Call) -> Answer:
    return Reply(_scale_of(_stored(call)))


async def update(call: Call) -> Answer:
    options = write_options(call.parameters, "UpdateOptions")
    reader = Bodies(call.server.registry, call.server.seams.shapes)
    sent = reader.read(
        call.request,
        spoken(call.target),
        validation=options.field_validation,
        warnings=call.warnings,
    )
    return _written(call, options, lambda _: sent)


async def patch(call: Call) -> Answer:
    media_type = media.bare(call.request.headers.get("content-type", ""))
    patching, resource = call.server.seams.patching, spoken(call.target)
    if media_type not in patching.media_types(call.target.resource):
        raise unsupported_media_type(())
    if media_type == _APPLY:
        raise not_implemented("a scale cannot be applied here; patch it, or apply the workload")
    options = write_options(call.parameters, "PatchOptions")
    manager = Manager("", "Update", "scale", timestamp(call.server.clock.now()))
    sent = Patch(media_type, bodies.checked_size(call.request), manager, force=False)
    reader = Bodies(call.server.registry, call.server.seams.shapes)

    def patched(scale: Raw) -> Raw:
        made = patching.apply_patch(resource, scale, sent)
        reader.check_kind(made.object, resource)
        return reader.conformed(
            made.object, resource, options.field_validation, warnings=call.warnings
        )

    return _written(call, options, patched)


def _stored(call: Call) -> Raw:
    target = call.target
    stored = call.server.store.get(Key(target.resource.storage, target.namespace, target.name))
    if stored is None:
        raise not_found(target.resource.as_resource, target.name)
    return _at(stored.object, stored.revision)


def _at(obj: Raw, revision: int) -> Raw:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}


def _scale_of(obj: Raw) -> Raw:
    spec, meta = obj.get("spec") or {}, obj["metadata"]
    replicas = spec.get("replicas", 0)
    status: Raw = {"replicas": (obj.get("status") or {}).get("replicas", 0)}
    selector = _selector_text(spec.get("selector") or {})
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in _NAMES if name in meta},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _selector_text(selector: Raw) -> str:
    """As it is written in queries, its terms in the order of their keys."""
    terms = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    terms += [
        (each.get("key") or "", _term(each)) for each in selector.get("matchExpressions") or ()
    ]
    return ",".join(text for _, text in sorted(terms))


def _term(given: Raw) -> str:
    key, values = given.get("key") or "", ",".join(sorted(given.get("values") or ()))
    match given.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return key
        case _:
            return f"!{key}"


def _written(call: Call, options: WriteOptions, wanted: Callable[[Raw], Raw]) -> Reply:
    target, request = call.target, call.request
    order = Order(
        target.resource,
        target.namespace,
        target.name,
        request.user,
        subresource="scale",
        options=options,
        manager=manager_name(options.field_manager, request.headers.get("user-agent", "")),
        warnings=call.warnings,
    )

    def change(old: Raw | None) -> Proposal:
        if old is None:
            raise not_found(target.resource.as_resource, target.name)
        return Proposal(_rescaled(old, _checked(wanted(_scale_of(old)), target.name)))

    return Reply(_answer(call.server.verbs.writer.update(order, change)))


def _checked(scale: Raw, name: str) -> Raw:
    check_name(scale.get("metadata") or {}, name)
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        raise invalid(_SCALE, name, (invalid_value("spec.replicas", replicas, NON_NEGATIVE),))
    return scale


def _rescaled(obj: Raw, scale: Raw) -> Raw:
    """The workload, at the revision that the client has seen, if it says which."""
    given, meta = scale.get("metadata") or {}, dict(obj["metadata"])
    meta.pop("resourceVersion", None)
    meta |= {key: given[key] for key in ("resourceVersion", "uid") if given.get(key)}
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    return {**obj, "metadata": meta, "spec": {**obj["spec"], "replicas": replicas}}


def _answer(written: Written) -> Raw:
    if written.stored is None:
        return _scale_of(written.object)
    return _scale_of(_at(written.object, written.stored.revision))
