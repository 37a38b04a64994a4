"""
The embedded API server, without sockets: a request in, a response out.

It is a `Transport`, so a client in the same process talks to it by calling it; `http` passes
requests over HTTPS to it. A refusal is raised as a `StatusError` and becomes a response here; any
other exception is a bug, and is not caught here.
"""

from collections.abc import Callable

import msgspec

from dryrack.apiserver.answer.rendering import json_or_yaml, status_response, warning_headers
from dryrack.apiserver.answer.status import (
    Status,
    StatusError,
    Success,
    bad_request,
    forbidden,
)
from dryrack.apiserver.extension_points import (
    Call,
    ExtensionPoints,
    Reply,
    StoreLookup,
    WebhookCaller,
)
from dryrack.apiserver.http import media, paths, queries
from dryrack.apiserver.registry import Registry, Resource
from dryrack.apiserver.verbs.read_verbs import Verbs
from dryrack.apiserver.webhooks.admission_reviews import RepeatableChance, Reviews
from dryrack.apiserver.webhooks.conversion_reviews import answer_with_reviews
from dryrack.base.ports import Chance
from dryrack.client.timekeeping import Timekeeper
from dryrack.client.transport import Request, Response
from dryrack.kinds.raw import Raw
from dryrack.kinds.text.quoting import quoted
from dryrack.store import Key, Store, Stored

_WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))

NOT_FOUND = Response(
    404,
    (("content-type", "text/plain; charset=utf-8"), ("x-content-type-options", "nosniff")),
    b"404 page not found\n",
)


class ApiServer:
    """A `Transport` that serves the objects of a store."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        *,
        clock: Timekeeper,
        chance: Chance,
        extensions: ExtensionPoints | None = None,
    ) -> None:
        self.store = store
        self.registry = registry
        self.clock = clock
        self.chance = RepeatableChance(chance)
        self.extensions = extensions or ExtensionPoints()
        self.lookup = StoreLookup(store)
        self.verbs = Verbs(store, registry, self.extensions, clock=clock, chance=self.chance)

    async def send(self, request: Request) -> Response:
        """Answer a request: find its target, authorize it, and run its handler or its verb."""
        warnings: list[str] = []
        try:
            route = paths.route(self.registry, request.method, request.path)
            query = queries.parse(request.query)
            is_list = route is not None and route.verb == "list"
            is_watch = is_list and queries.truth_of(query, "watch")
            if not is_watch and query.get("timeout"):
                _check_timeout(query["timeout"][0])
            if route is None:
                return await self._answer_with_page(request)
            target = route.target
            verb = "watch" if is_watch else route.verb
            if target.resource.deprecation:
                warnings.append(target.resource.deprecation)
            call = Call(self, request, verb, target, query, warnings)
            if self.extensions.authorizer is not None:
                reason = self.extensions.authorizer(call)
                if reason is not None:
                    raise forbidden(target.resource.as_resource, target.name, reason)
            webhooks = self.extensions.webhooks
            if webhooks is not None and self._may_need_webhooks(call, webhooks):
                return await self._answer_with_reviews(call, webhooks)
            return await self._answer(call)
        except RecursionError:
            # A schema that refers to itself takes more of the stack than the depth of a body.
            refusal = bad_request("exceeded max depth").status
            return status_response(refusal, _wanted_or_plain(request))
        except StatusError as error:
            refused = status_response(error.status, _wanted_or_plain(request), warnings)
            # A response to HEAD has no body.
            return (
                msgspec.structs.replace(refused, body=b"") if request.method == "HEAD" else refused
            )

    async def _answer_with_page(self, request: Request) -> Response:
        for page in self.extensions.pages:
            response = await page(request)
            if response is not None:
                return response
        return NOT_FOUND

    def _may_need_webhooks(self, call: Call, webhooks: WebhookCaller) -> bool:
        if call.verb in _WRITES:
            # A write may also read objects of other kinds, as the parameters of a policy.
            return webhooks.are_there() or self.registry.converts
        return call.target.resource.converts

    async def _answer(self, call: Call) -> Response:
        target = call.target
        handlers = target.resource.handlers
        if target.subresource:
            handlers = target.resource.subresources[target.subresource].handlers
        handler = handlers.get(call.verb)
        if handler is None:
            return self.verbs.answer(call)
        # The server never shows reviews, bindings and the like as tables.
        shapes = media.SHAPES_WITHOUT_TABLE if call.verb == "create" else media.ALL_SHAPES
        wanted = media.wanted(call.request.headers, shapes)
        match answer := await handler(call):
            case Response():
                headers = answer.headers + warning_headers(call.warnings)
                return Response(answer.status, headers, answer.body, answer.upgrade)
            case Reply():
                return json_or_yaml(answer.code, answer.object, wanted, call.warnings)
            case Status():
                return status_response(answer, wanted, call.warnings)
            case Success():
                return json_or_yaml(200, answer.to_raw(), wanted, call.warnings)

    async def _answer_with_reviews(self, call: Call, webhooks: WebhookCaller) -> Response:
        """
        Answer a request, which starts again whenever a webhook has to be called first.

        Handlers of writes, and of reads that need a conversion, do not wait, so that no other
        request is given the identifiers of this one.
        """
        reviews = Reviews()
        warnings_before = len(call.warnings)
        call_with_reviews = msgspec.structs.replace(call, reviews=reviews)

        async def attempt() -> Response:
            del call.warnings[warnings_before:]
            self.chance.begin(reviews.identifiers)
            try:
                return await self._answer(call_with_reviews)
            finally:
                self.chance.begin(None)

        return await answer_with_reviews(attempt, webhooks, reviews)

    def modify(
        self, resource: Resource, namespace: str, name: str, change: Callable[[Raw], Raw]
    ) -> Stored | None:
        """
        Write what `change` makes of a stored object, without its strategy.

        For writes of handlers that no client could make: a binding, an eviction. The object is in
        the stored version; the result is None if it does not exist. `change` must not write.
        """
        stored = self.store.get(Key(resource.storage, namespace, name))
        if stored is None:
            return None
        changed = change(stored.object)
        if changed == stored.object:
            return stored
        written = self.store.put(stored.key, changed, expected=stored.revision)
        assert isinstance(written, Stored), "no other write happens in between"
        return written


def _check_timeout(text: str) -> None:
    """Raise for a timeout in the URL that is no duration; other timeouts have no effect."""
    # Few requests have one, and CEL takes a while to load.
    from dryrack.cel import parse_duration

    if parse_duration(text) is None:
        problem = "missing unit in duration" if text.isdecimal() else "invalid duration"
        raise bad_request(
            f"invalid timeout specified in the request URL - time: {problem} {quoted(text)}"
        )


def _wanted_or_plain(request: Request) -> media.Wanted:
    """Return the form of a refusal: JSON if the client accepts nothing that is served."""
    try:
        return media.Wanted(media.wanted(request.headers).encoding)
    except StatusError:
        return media.PLAIN
