"""
Scales: how many replicas an object wants, as a part that all kinds which have it have alike.

A scale is made of the object, written as any object is (put, patched, applied), and the number is
put back into the object under the usual rules of an update. `Scaled` is what a kind adds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from dryrack.apiserver import bodies, media, metadata
from dryrack.apiserver.bodies import Bodies
from dryrack.apiserver.calls import Reply
from dryrack.apiserver.managing import manager_name
from dryrack.apiserver.managing.scale_owners import ScaleOwners
from dryrack.apiserver.names import timestamp
from dryrack.apiserver.patching.refusals import invalid_patch
from dryrack.apiserver.queries import write_options
from dryrack.apiserver.registry import Resource
from dryrack.apiserver.seams import Manager, Patch
from dryrack.apiserver.status import (
    StatusError,
    Subject,
    bad_request,
    conflict,
    not_found,
    unsupported_media_type,
)
from dryrack.apiserver.strategy import PlainStrategy
from dryrack.apiserver.writing import Order, Proposal, served
from dryrack.store import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.apiserver.calls import Call
    from dryrack.apiserver.queries import WriteOptions
    from dryrack.apiserver.seams import Patched

Raw = dict[str, Any]

APPLY = "application/apply-patch+yaml"
SCALE = Resource(
    group="autoscaling",
    version="v1",
    kind="Scale",
    plural="scales",
    namespaced=True,
    strategy=PlainStrategy(namespaced=True),
)
_NAMES = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class Scaled(Protocol):
    """What is particular about the scale of a kind."""

    @property
    def path(self) -> Sequence[str]:
        """Where the number of replicas stands."""

    @property
    def is_one_by_uid(self) -> bool:
        """Whether a patch that names another uid is refused."""

    def shown(self, obj: Raw) -> Raw:
        """The scale that a client reads; raises if there is none."""

    def scale_of(self, obj: Raw) -> Raw:
        """The scale that a client changes."""

    def rescaled(self, obj: Raw, scale: Raw) -> Raw:
        """The object with the number of a new scale; raises what is refused of it."""

    def misread(self, error: StatusError) -> StatusError:
        """How a body is refused that is no scale."""

    def inapplicable(self, old: Raw, made: Raw | StatusError) -> StatusError | None:
        """Why an apply that came out like this is refused, if it is."""


def scale_from(obj: Raw, replicas: int, status: Raw) -> Raw:
    """The scale of an object."""
    meta = obj["metadata"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in _NAMES if name in meta},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


class Scaling:
    """Reads and writes the scales of a kind."""

    def __init__(self, kind: Scaled) -> None:
        self._kind = kind

    async def get(self, call: Call) -> Reply:
        target = call.target
        stored = call.server.store.get(Key(target.resource.storage, target.namespace, target.name))
        if stored is None:
            raise not_found(target.resource.as_resource, target.name)
        obj = served(target.resource, stored)
        return Reply(self._kind.shown(_at(obj, stored.revision)))

    async def update(self, call: Call) -> Reply:
        options = write_options(call.parameters, "UpdateOptions")
        sent = self._read(call, options)
        metadata.check_name(sent.get("metadata") or {}, call.target.name)
        return self._written(call, options, lambda _: sent, is_patch=False)

    def _read(self, call: Call, options: WriteOptions) -> Raw:
        reader = Bodies(call.server.registry, call.server.seams.shapes)
        validation, warnings = options.field_validation, call.warnings
        try:
            return reader.read(call.request, SCALE, validation=validation, warnings=warnings)
        except StatusError as error:
            raise self._kind.misread(error) from error

    async def patch(self, call: Call) -> Reply:
        media_type = media.bare(call.request.headers.get("content-type", ""))
        resource = call.target.resource
        accepted = call.server.seams.patching.media_types(resource)
        if media_type not in accepted:
            raise unsupported_media_type(accepted if resource.is_custom else ())
        is_apply = media_type == APPLY
        options = write_options(call.parameters, "PatchOptions", is_apply=is_apply)
        manager = _manager(call, options, "Apply" if is_apply else "Update")
        body = bodies.checked_size(call.request)
        patch = Patch(media_type, body, manager, force=options.force)
        return self._written(
            call, options, lambda old: self._patched(call, options, patch, old), is_patch=True
        )

    def _patched(self, call: Call, options: WriteOptions, patch: Patch, old: Raw) -> Raw:
        is_apply = patch.media_type == APPLY
        made = self._applied(call, patch, old)
        if is_apply and made.strict and options.field_validation == "Strict":
            raise bad_request(f"error strict decoding YAML: {made.strict[0]}")
        reader = Bodies(call.server.registry, call.server.seams.shapes)
        refusal = _refusal(made)
        reader.check_kind(made.object, SCALE, refusal)
        new = reader.conformed(
            made.object,
            SCALE,
            options.field_validation,
            again=made.strict,
            warnings=call.warnings,
            refusal=refusal,
        )
        metadata.check_name(new.get("metadata") or {}, call.target.name)
        return new

    def _applied(self, call: Call, patch: Patch, old: Raw) -> Patched:
        patching = call.server.seams.patching
        if patch.media_type != APPLY:
            return patching.apply_patch(SCALE, old, patch)
        try:
            made = patching.apply_patch(SCALE, old, patch)
        except StatusError as error:
            raise self._kind.inapplicable(old, error) or error from error
        refused = self._kind.inapplicable(old, made.object)
        if refused is not None:
            raise refused
        return made

    def _written(
        self,
        call: Call,
        options: WriteOptions,
        wanted: Callable[[Raw], Raw],
        *,
        is_patch: bool,
    ) -> Reply:
        def change(obj: Raw | None) -> Proposal:
            if obj is None:
                raise not_found(call.target.resource.as_resource, call.target.name)
            made = self._rescaled(call, options, obj, wanted)
            if is_patch and self._kind.is_one_by_uid:
                _check_uid(call, made, obj)
            return Proposal(made, False, True, is_patch)

        written = call.server.verbs.writer.update(_order(call, options), change)
        stored = written.stored
        made = written.object if stored is None else _at(written.object, stored.revision)
        return Reply(self._kind.scale_of(made))

    def _rescaled(
        self, call: Call, options: WriteOptions, obj: Raw, wanted: Callable[[Raw], Raw]
    ) -> Raw:
        owners = ScaleOwners.of(obj, self._kind.path)
        scale = self._kind.scale_of(obj)
        entries = owners.of_scale()
        known = {"managedFields": entries} if entries else {}
        old = {**scale, "metadata": {**scale["metadata"], **known}}
        new = wanted(old)
        is_applied = call.request.headers.get("content-type", "").startswith(APPLY)
        if not is_applied:
            manager = _manager(call, options, "Update")
            new = call.server.seams.management.record(SCALE, new, old, manager)
        made = self._kind.rescaled(obj, new)
        after = owners.with_scale(new["metadata"].get("managedFields"))
        return {**made, "metadata": {**made["metadata"], "managedFields": after}}


def _check_uid(call: Call, made: Raw, stored: Raw) -> None:
    uid, known = made["metadata"].get("uid"), stored["metadata"].get("uid")
    if uid == known:
        return
    resource = call.target.resource
    detail = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {known}"
    raise conflict(Subject(resource.group, f"{resource.plural}/scale"), call.target.name, detail)


def _refusal(made: Patched) -> Callable[[str], StatusError] | None:
    shown = made.shown
    return None if shown is None else lambda detail: invalid_patch(shown(), detail)


def _manager(call: Call, options: WriteOptions, operation: str) -> Manager:
    name = manager_name(options.field_manager, call.request.headers.get("user-agent", ""))
    return Manager(name, operation, "scale", timestamp(call.server.clock.now()))


def _order(call: Call, options: WriteOptions) -> Order:
    target = call.target
    return Order(
        target.resource,
        target.namespace,
        target.name,
        call.request.user,
        subresource="scale",
        options=options,
        manager=_manager(call, options, "Update").name,
        warnings=call.warnings,
    )


def _at(obj: Raw, revision: int) -> Raw:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}
