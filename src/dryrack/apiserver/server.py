"""
The embedded API server, without sockets: a request in, a response out.

It is a `Transport`, so a client in the same process talks to it by calling it. What comes over
HTTPS is brought here by `http`. Refusals are values on the way (`StatusError`) and responses at
the end; anything else that is raised is a bug, and is not caught here.
"""

from collections.abc import Callable

import msgspec

from dryrack.apiserver.answer.rendering import response, status_response, warned
from dryrack.apiserver.answer.status import (
    Status,
    StatusError,
    Success,
    bad_request,
    forbidden,
)
from dryrack.apiserver.extension_points import (
    Answer,
    Call,
    ExtensionPoints,
    Reply,
    StoreLookup,
    Target,
    WebhookCaller,
)
from dryrack.apiserver.http import media, paths, queries
from dryrack.apiserver.registry import Handler, Registry, Resource
from dryrack.apiserver.verbs.read_verbs import Verbs
from dryrack.apiserver.webhooks.admission_reviews import RepeatableChance, Reviews
from dryrack.apiserver.webhooks.conversion_reviews import answered
from dryrack.base.ports import Chance
from dryrack.client.timekeeping import Timekeeper
from dryrack.client.transport import Request, Response
from dryrack.kinds.raw import Raw
from dryrack.store import Key, Store, Stored

_WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))

NOT_FOUND = Response(
    404,
    (("content-type", "text/plain; charset=utf-8"), ("x-content-type-options", "nosniff")),
    b"404 page not found\n",
)


class ApiServer:
    """A `Transport` that leads into a store."""

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
        try:
            route = paths.route(self.registry, request.method, request.path)
            if isinstance(route, paths.Elsewhere):
                return await self._page(request)
            return await self._answer(request, route)
        except RecursionError:
            # A schema that refers to itself takes more of the stack than the depth of a body.
            return status_response(
                bad_request("exceeded max depth").status, _wanted_or_plain(request)
            )
        except StatusError as error:
            refused = status_response(error.status, _wanted_or_plain(request))
            # A response to HEAD has no body, whatever it would have been.
            return (
                msgspec.structs.replace(refused, body=b"") if request.method == "HEAD" else refused
            )

    async def _page(self, request: Request) -> Response:
        for page in self.extensions.pages:
            found = await page(request)
            if found is not None:
                return found
        return NOT_FOUND

    async def _answer(self, request: Request, route: paths.Route) -> Response:
        query = queries.parse(request.query)
        verb = route.verb
        if verb == "list" and queries.truth_of(query, "watch"):
            verb = "watch"
        call = Call(self, request, verb, route.target, query)
        if route.target.resource.deprecation:
            call.warnings.append(route.target.resource.deprecation)
        try:
            self._authorize(call)
            handler = _handler(route.target, verb)
            webhooks = self.extensions.webhooks
            if webhooks is not None and self._may_need_webhooks(call, webhooks):
                return await self._reviewed(call, handler, webhooks)
            return await self._answered(call, handler)
        except StatusError as error:
            return status_response(error.status, _wanted_or_plain(request), call.warnings)

    def _may_need_webhooks(self, call: Call, webhooks: WebhookCaller) -> bool:
        if call.verb in _WRITES:
            # A write may also read objects of other kinds, as the parameters of a policy.
            return webhooks.are_there() or self.registry.converts
        return call.target.resource.converts

    async def _answered(self, call: Call, handler: Handler | None) -> Response:
        if handler is None:
            return self.verbs.answer(call)
        # Reviews, bindings and the like are no tables for those who want nothing else.
        negotiated = media.wanted_without_tables if call.verb == "create" else media.wanted
        wanted = negotiated(call.request.headers)
        return self._rendered(call, await handler(call), wanted)

    async def _reviewed(
        self, call: Call, handler: Handler | None, webhooks: WebhookCaller
    ) -> Response:
        """
        Answer a request, which starts again whenever a webhook has to be called first.

        Handlers of writes, and of reads that need a conversion, do not wait, so that no other
        request is given the identifiers of this one.
        """
        reviews = Reviews()
        told = len(call.warnings)
        again = msgspec.structs.replace(call, reviews=reviews)

        async def attempt() -> Response:
            del call.warnings[told:]
            self.chance.begin(reviews.identifiers)
            try:
                return await self._answered(again, handler)
            finally:
                self.chance.begin(None)

        return await answered(attempt, webhooks, reviews)

    def _authorize(self, call: Call) -> None:
        if self.extensions.authorizer is None:
            return
        reason = self.extensions.authorizer(call)
        if reason is not None:
            raise forbidden(call.target.resource.as_resource, call.target.name, reason)

    def _rendered(self, call: Call, answer: Answer, wanted: media.Wanted) -> Response:
        match answer:
            case Response():
                headers = answer.headers + warned(call.warnings)
                return Response(answer.status, headers, answer.body)
            case Reply():
                return response(answer.code, answer.object, wanted, call.warnings)
            case Status():
                return status_response(answer, wanted, call.warnings)
            case Success():
                return response(200, answer.to_raw(), wanted, call.warnings)

    def modify(
        self, resource: Resource, namespace: str, name: str, change: Callable[[Raw], Raw]
    ) -> Stored | None:
        """
        Writes what `change` makes of a stored object, past every strategy.

        For handlers whose write is none that a client could make: a binding, an eviction. The
        object is in the stored version; None if there is none. `change` must not write itself.
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


def _handler(target: Target, verb: str) -> Handler | None:
    if target.subresource:
        return target.resource.subresources[target.subresource].handlers.get(verb)
    return target.resource.handlers.get(verb)


def _wanted_or_plain(request: Request) -> media.Wanted:
    """A refusal is always told, if need be in JSON."""
    try:
        return media.Wanted(media.wanted(request.headers).encoding)
    except StatusError:
        return media.PLAIN
