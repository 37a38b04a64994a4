"""
What each verb does with a stored object or a collection of them.

A verb reads the request's options and body, lets `writing`, `deletion`, `lists` or `watching` do
the work, and hands the result to `rendering`.
"""

from typing import TYPE_CHECKING, Any

from dryrack.apiserver import bodies, media, metadata
from dryrack.apiserver.calls import Call
from dryrack.apiserver.deletion import Deleter, read_options
from dryrack.apiserver.lists import Page, listed
from dryrack.apiserver.managing import manager_name
from dryrack.apiserver.patching.refusals import invalid_patch
from dryrack.apiserver.queries import (
    RevisionError,
    WriteOptions,
    list_options,
    parse_revision,
    write_options,
)
from dryrack.apiserver.registry import Registry, Resource
from dryrack.apiserver.rendering import Form, Renderer, form_of
from dryrack.apiserver.seams import Manager, Patch, Patched, Seams
from dryrack.apiserver.selection import selection_of
from dryrack.apiserver.status import (
    Status,
    StatusError,
    method_not_allowed,
    not_acceptable,
    not_found,
    too_large_resource_version,
    unsupported_media_type,
)
from dryrack.apiserver.watching import Watch, WatchStream
from dryrack.apiserver.writing import Order, Proposal, Writer, Written
from dryrack.base.ports import Chance
from dryrack.client.timekeeping import Timekeeper
from dryrack.client.transport import Response
from dryrack.store import Key, Store

if TYPE_CHECKING:
    from collections.abc import Callable

Raw = dict[str, Any]

APPLY = "application/apply-patch+yaml"
_WATCH_HEADERS = (("content-type", media.JSON),)
_CREATED, _ACCEPTED = 201, 202


class Verbs:
    """The usual treatment of stored objects."""

    def __init__(
        self, store: Store, registry: Registry, seams: Seams, *, clock: Timekeeper, chance: Chance
    ) -> None:
        self._store = store
        self._seams = seams
        self._clock = clock
        self._bodies = bodies.Bodies(registry, seams.shapes)
        self._renderer = Renderer(seams.tables, clock)
        self.writer = Writer(store, seams, clock=clock, chance=chance)
        self.deleter = Deleter(store, self.writer, clock)
        self._by_verb: dict[str, Callable[[Call, Form], Response]] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    def answer(self, call: Call) -> Response:
        wanted = media.wanted(call.request.headers)
        if wanted.shape is media.Shape.TABLE and not _has_table(call):
            raise not_acceptable(media.SERVED)
        form = form_of(wanted, call.parameters, call.warnings)
        return self._by_verb[call.verb](call, form)

    def _get(self, call: Call, form: Form) -> Response:
        target = call.target
        self._check_revision(call.parameter("resourceVersion"))
        stored = self._store.get(Key(target.resource.storage, target.namespace, target.name))
        if stored is None:
            raise not_found(target.resource.as_resource, target.name)
        return self._renderer.stored(target.resource, stored, form)

    def _check_revision(self, text: str) -> None:
        if not text:
            return
        try:
            revision = parse_revision(text)
        except RevisionError as error:
            raise StatusError(Status(500, "", error.field_message)) from None
        if revision > self._store.revision:
            raise too_large_resource_version(revision, self._store.revision)

    def _list(self, call: Call, form: Form) -> Response:
        return self._renderer.page(call.target.resource, self._found(call), form)

    def _found(self, call: Call) -> Page:
        target, options = call.target, list_options(call.parameters)
        selection = selection_of(target.resource, options)
        return listed(self._store, selection, target.namespace or None, options)

    def _watch(self, call: Call, form: Form) -> Response:
        target, options = call.target, list_options(call.parameters)
        if "watch" not in target.resource.verbs:
            raise method_not_allowed()
        selection = selection_of(target.resource, options, target.name)
        watch = Watch(selection, target.namespace or None, options, form)
        stream = WatchStream(self._store, watch, self._renderer, self._clock)
        return Response(200, _WATCH_HEADERS, stream)

    def _create(self, call: Call, form: Form) -> Response:
        options = write_options(call.parameters, "CreateOptions")
        order = _order(call, options)
        obj = self._read(call, options)
        return self._written(self.writer.create(order, obj), call.target.resource, form)

    def _update(self, call: Call, form: Form) -> Response:
        target, options = call.target, write_options(call.parameters, "UpdateOptions")
        obj = metadata.for_update(self._read(call, options), target.resource, target.namespace)
        metadata.check_name(obj["metadata"], target.name)
        creates = target.resource.strategy.creates_on_update and not target.subresource
        written = self.writer.update(_order(call, options), lambda _: Proposal(obj, creates))
        return self._written(written, target.resource, form)

    def _read(self, call: Call, options: WriteOptions) -> Raw:
        return self._bodies.read(
            call.request,
            call.target.resource,
            validation=options.field_validation,
            warnings=call.warnings,
        )

    def _patch(self, call: Call, form: Form) -> Response:
        target = call.target
        media_type = media.bare(call.request.headers.get("content-type", ""))
        accepted = self._seams.patching.media_types(target.resource)
        if media_type not in accepted:
            # The server refuses the media type itself for custom kinds; else its router does.
            raise unsupported_media_type(accepted if target.resource.is_custom else ())
        is_apply = media_type == APPLY
        options = write_options(call.parameters, "PatchOptions", is_apply=is_apply)
        order = _order(call, options)
        now = self.writer.context(order).now
        manager = Manager(order.manager, "Apply" if is_apply else "Update", target.subresource, now)
        patch = Patch(media_type, bodies.checked_size(call.request), manager, force=options.force)
        written = self.writer.update(order, lambda old: self._patched(call, options, patch, old))
        return self._written(written, target.resource, form)

    def _patched(
        self, call: Call, options: WriteOptions, patch: Patch, old: Raw | None
    ) -> Proposal:
        target, is_apply = call.target, patch.media_type == APPLY
        creates = is_apply and not target.subresource
        if old is None and not creates:
            raise not_found(target.resource.as_resource, target.name)
        made = self._seams.patching.apply_patch(target.resource, old, patch)
        self._bodies.check_kind(made.object, target.resource, _patch_refusal(made))
        obj = self._bodies.conformed(
            made.object,
            target.resource,
            options.field_validation,
            again=made.strict,
            warnings=call.warnings,
            refusal=_patch_refusal(made),
        )
        obj = metadata.for_update(obj, target.resource, target.namespace)
        metadata.check_name(obj["metadata"], target.name)
        return Proposal(obj, creates, is_managed=is_apply, is_patch=True)

    def _written(self, written: Written, resource: Resource, form: Form) -> Response:
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
        found = self._found(call)
        options = read_options(call.request, {} if call.request.body else call.parameters)
        self.deleter.delete_all(_order(call), options, found.items)
        return self._renderer.page(call.target.resource, found, form)


def _patch_refusal(made: Patched) -> "Callable[[str], StatusError] | None":
    shown = made.shown
    return None if shown is None else lambda detail: invalid_patch(shown(), detail)


# Kinds whose status the real server does not show as a table.
_NO_STATUS_TABLES = frozenset(
    (
        "devicetaintrules.resource.k8s.io",
        "podgroups.scheduling.k8s.io",
        "resourceclaims.resource.k8s.io",
    )
)


def _has_table(call: Call) -> bool:
    return not call.target.subresource or call.target.resource.storage not in _NO_STATUS_TABLES


def _order(call: Call, options: WriteOptions | None = None) -> Order:
    target, request = call.target, call.request
    given = options or WriteOptions()
    return Order(
        resource=target.resource,
        namespace=target.namespace,
        name=target.name,
        user=request.user,
        subresource=target.subresource,
        options=given,
        manager=manager_name(given.field_manager, request.headers.get("user-agent", "")),
        size=len(request.body),
        warnings=call.warnings,
    )
