"""
The verbs of stored objects that only read: get, list and watch.

A verb reads the request's options, calls `lists` or `watching`, and passes the result to
`rendering`. The verbs that write are in `write_verbs`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from dryrack.apiserver.answer.rendering import Form, Renderer, form_of
from dryrack.apiserver.answer.status import (
    Status,
    StatusError,
    method_not_allowed,
    not_acceptable,
    not_found,
    too_large_resource_version,
)
from dryrack.apiserver.http import media
from dryrack.apiserver.http.queries import RevisionError, list_options, parse_revision
from dryrack.apiserver.verbs.lists import Page, list_page
from dryrack.apiserver.verbs.selection import selection_of
from dryrack.apiserver.verbs.watch_backlog import Backlog
from dryrack.apiserver.verbs.watching import ConvertingWatchStream, Watch, WatchStream
from dryrack.client.transport import Response
from dryrack.store import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dryrack.apiserver.extension_points import Call, ExtensionPoints
    from dryrack.apiserver.registry import Registry
    from dryrack.apiserver.verbs.deletion import Deleter
    from dryrack.apiserver.verbs.write_verbs import WriteVerbs
    from dryrack.apiserver.verbs.writing import Writer
    from dryrack.base.ports import Chance
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.store import Store


_WATCH_HEADERS = (("content-type", media.JSON),)


class Verbs:
    """The verbs of stored objects."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        extensions: ExtensionPoints,
        *,
        clock: Timekeeper,
        chance: Chance,
    ) -> None:
        self._store = store
        self._registry = registry
        self._extensions = extensions
        self._clock = clock
        self._chance = chance
        self._renderer = Renderer(extensions.tables, clock)
        self._backlog = Backlog()
        self._reading: Mapping[str, Callable[[Call, Form], Response]] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
        }

    @cached_property
    def _writes(self) -> WriteVerbs:
        from dryrack.apiserver.verbs.write_verbs import WriteVerbs

        return WriteVerbs(
            self._store,
            self._registry,
            self._extensions,
            clock=self._clock,
            chance=self._chance,
            renderer=self._renderer,
            find=self._find_page,
        )

    @property
    def writer(self) -> Writer:
        return self._writes.writer

    @property
    def deleter(self) -> Deleter:
        return self._writes.deleter

    def answer(self, call: Call) -> Response:
        served = media.STREAMED if call.verb == "watch" else media.SERVED
        wanted = media.wanted(call.request.headers, media.ALL_SHAPES, served)
        if wanted.shape is media.Shape.TABLE:
            part = call.target.resource.subresources.get(call.target.subresource)
            if part is not None and not part.has_table:
                raise not_acceptable(media.SERVED)
        form = form_of(wanted, call.parameters, call.warnings)
        answer = self._reading.get(call.verb) or self._writes.by_verb[call.verb]
        return answer(call, form)

    def _get(self, call: Call, form: Form) -> Response:
        target = call.target
        text = call.parameter("resourceVersion")
        if text:
            try:
                revision = parse_revision(text)
            except RevisionError as error:
                raise StatusError(Status(500, "", error.field_message)) from None
            if revision > self._store.revision:
                raise too_large_resource_version(revision, self._store.revision)
        stored = self._store.get(Key(target.resource.storage, target.namespace, target.name))
        if stored is None:
            raise not_found(target.resource.as_resource, target.name)
        return self._renderer.stored(target.resource, stored, form)

    def _list(self, call: Call, form: Form) -> Response:
        return self._renderer.page(call.target.resource, self._find_page(call), form)

    def _find_page(self, call: Call) -> Page:
        target = call.target
        options = list_options(call.parameters)
        selection = selection_of(target.resource, options)
        return list_page(self._store, selection, target.namespace or None, options)

    def _watch(self, call: Call, form: Form) -> Response:
        target = call.target
        options = list_options(call.parameters)
        if "watch" not in target.resource.verbs:
            raise method_not_allowed()
        if form.wanted.shape is media.Shape.PARTIAL_LIST:
            # Each event has one object, not a list.
            raise not_acceptable(media.STREAMED)
        selection = selection_of(target.resource, options, target.name)
        takes = call.request.takes_objects
        watch = Watch(selection, target.namespace or None, options, form, hands_over=takes)
        webhooks = self._extensions.webhooks
        if target.resource.converts and webhooks is not None:
            stream: WatchStream = ConvertingWatchStream(
                self._store,
                watch,
                self._renderer,
                self._clock,
                backlog=self._backlog,
                webhooks=webhooks,
            )
        else:
            stream = WatchStream(
                self._store, watch, self._renderer, self._clock, backlog=self._backlog
            )
        return Response(200, _WATCH_HEADERS, stream)
