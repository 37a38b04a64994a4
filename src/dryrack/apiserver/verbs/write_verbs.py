"""
The verbs of stored objects that write: create, update, patch, delete, deletecollection.

They are apart from the verbs that only read, because a new server is read first, and the modules
of writing (bodies, patches, owners of fields) take a while to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver import metadata
from dryrack.apiserver.answer.rendering import Form
from dryrack.apiserver.answer.status import bad_request, not_found, unsupported_media_type
from dryrack.apiserver.decode import bodies
from dryrack.apiserver.extension_points import Manager, Patch
from dryrack.apiserver.http import media
from dryrack.apiserver.http.queries import DEFAULT_WRITE, WriteOptions, write_options
from dryrack.apiserver.ownership.patching.problems import invalid_patch
from dryrack.apiserver.ownership.server_side_apply import manager_name
from dryrack.apiserver.verbs.deletion import Deleter, read_options
from dryrack.apiserver.verbs.writing import Order, Proposal, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dryrack.apiserver.answer.rendering import Renderer
    from dryrack.apiserver.extension_points import Call, ExtensionPoints
    from dryrack.apiserver.registry import Registry, Resource
    from dryrack.apiserver.verbs.lists import Page
    from dryrack.apiserver.verbs.writing import Written
    from dryrack.base.ports import Chance
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.client.transport import Response
    from dryrack.kinds.raw import Raw
    from dryrack.store import Store

APPLY = "application/apply-patch+yaml"
_CREATED = 201
_ACCEPTED = 202


class WriteVerbs:
    """The verbs that write."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        extensions: ExtensionPoints,
        *,
        clock: Timekeeper,
        chance: Chance,
        renderer: Renderer,
        find: Callable[[Call], Page],
    ) -> None:
        self._extensions = extensions
        self._renderer = renderer
        self._find = find
        self._bodies = bodies.Bodies(registry, extensions.shapes)
        self.writer = Writer(store, extensions, clock=clock, chance=chance)
        self.deleter = Deleter(store, self.writer, extensions, clock)
        self.by_verb: Mapping[str, Callable[[Call, Form], Response]] = {
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    def _create(self, call: Call, form: Form) -> Response:
        resource = call.target.resource
        options = write_options(call.parameters, "CreateOptions")
        obj = self._read(call, options)
        return self._render(self.writer.create(_order(call, options), obj), resource, form)

    def _update(self, call: Call, form: Form) -> Response:
        target = call.target
        options = write_options(call.parameters, "UpdateOptions")
        obj = metadata.for_update(self._read(call, options), target.resource, target.namespace)
        metadata.check_name(obj["metadata"], target.name)
        creates = target.resource.strategy.creates_on_update and not target.subresource
        written = self.writer.update(_order(call, options), lambda _: Proposal(obj, creates))
        return self._render(written, target.resource, form)

    def _read(self, call: Call, options: WriteOptions) -> Raw:
        return self._bodies.read(
            call.request,
            call.target.resource,
            validation=options.field_validation,
            warnings=call.warnings,
        )

    def _patch(self, call: Call, form: Form) -> Response:
        target = call.target
        media_type = media.without_parameters(call.request.headers.get("content-type", ""))
        accepted = self._extensions.patching.media_types(target.resource)
        if media_type not in accepted:
            # The server refuses the media type itself for custom kinds; else its router does.
            raise unsupported_media_type(accepted if target.resource.is_custom else ())
        is_apply = media_type == APPLY
        options = write_options(call.parameters, "PatchOptions", is_apply=is_apply)
        order = _order(call, options)
        now = self.writer.context(order).now
        manager = Manager(order.manager, "Apply" if is_apply else "Update", target.subresource, now)
        patch = Patch(media_type, bodies.body_of(call.request), manager, force=options.force)
        written = self.writer.update(
            order, lambda old: self._propose_patched(call, options, patch, old)
        )
        return self._render(written, target.resource, form)

    def _propose_patched(
        self, call: Call, options: WriteOptions, patch: Patch, old: Raw | None
    ) -> Proposal:
        target = call.target
        is_apply = patch.media_type == APPLY
        creates = is_apply and not target.subresource
        if old is None and not creates:
            raise not_found(target.resource.as_resource, target.name)
        patched = self._extensions.patching.apply_patch(target.resource, old, patch)
        if is_apply and patched.strict and options.field_validation == "Strict":
            raise bad_request(f"{patched.strict_text}{patched.strict[0]}")
        shown = patched.shown
        refusal = None if shown is None else lambda detail: invalid_patch(shown(), detail)
        self._bodies.check_kind(patched.object, target.resource, refusal)
        obj = self._bodies.conform(
            patched.object,
            target.resource,
            options.field_validation,
            repeated=patched.strict,
            warnings=call.warnings,
            refusal=refusal,
        )
        obj = metadata.for_update(obj, target.resource, target.namespace)
        metadata.check_name(obj["metadata"], target.name)
        return Proposal(obj, creates, is_managed=is_apply, is_patch=True)

    def _render(self, written: Written, resource: Resource, form: Form) -> Response:
        if written.is_new:
            form = Form(form.wanted, _CREATED, form.warnings, form.include)
        if written.stored is not None:
            return self._renderer.stored(resource, written.stored, form)
        return self._renderer.object(resource, written.object, form)

    def _delete(self, call: Call, form: Form) -> Response:
        target = call.target
        options = read_options(call.request, call.parameters)
        deleted = self.deleter.delete(_order(call), options)
        if deleted.is_pending and options.orphans is False:
            form = Form(form.wanted, _ACCEPTED, form.warnings, form.include)
        if deleted.object is None:
            return self._renderer.success(deleted.success, form)
        if deleted.stored is not None:
            return self._renderer.stored(target.resource, deleted.stored, form)
        return self._renderer.object(target.resource, deleted.object, form)

    def _delete_collection(self, call: Call, form: Form) -> Response:
        page = self._find(call)
        options = read_options(call.request, {} if call.request.body else call.parameters)
        self.deleter.delete_all(_order(call), options, page.items)
        return self._renderer.page(call.target.resource, page, form)


def _order(call: Call, options: WriteOptions | None = None) -> Order:
    target = call.target
    request = call.request
    options = options or DEFAULT_WRITE
    return Order(
        resource=target.resource,
        namespace=target.namespace,
        name=target.name,
        user=request.user,
        subresource=target.subresource,
        options=options,
        manager=manager_name(options.field_manager, request.headers.get("user-agent", "")),
        size=len(request.body),
        warnings=call.warnings,
        reviews=call.reviews,
    )
