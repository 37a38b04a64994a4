"""
A request that has found its resource, and what may be answered to it.

This is what handlers see: those of subresources and reviews, and the pages that are no resources
(discovery, health). `Call.server` is the way back into the pipeline, for a handler that reads or
writes other objects under the usual rules.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

from dryrack.apiserver.answer.status import Status, Success
from dryrack.apiserver.webhooks.admission_reviews import Reviews
from dryrack.client.transport import Request, Response
from dryrack.kinds.raw import Raw

if TYPE_CHECKING:
    from dryrack.apiserver.registry import Resource
    from dryrack.apiserver.server import ApiServer


class Target(msgspec.Struct, frozen=True):
    """Where a path leads. For a collection `name` is ""; for an object `subresource` may be."""

    resource: "Resource"
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    """What follows the subresource in the path, as for proxies."""


class Call(msgspec.Struct, frozen=True):
    """A request with all that was found out about it."""

    server: "ApiServer"
    request: Request
    verb: str
    target: Target
    parameters: Mapping[str, list[str]]
    warnings: list[str] = msgspec.field(default_factory=list)
    """Handlers add to it; each becomes a header of the response."""
    reviews: Reviews | None = None
    """The answers of admission webhooks; None if there are no webhooks."""

    def parameter(self, name: str) -> str:
        """The first value of a query parameter, or ""."""
        values = self.parameters.get(name)
        return values[0] if values else ""


class Reply(msgspec.Struct, frozen=True):
    """An object for an answer; the server writes it in the form that the client accepts."""

    object: Raw
    code: int = 200


Answer = Reply | Status | Success | Response


class Page(Protocol):
    """What is served under a path that belongs to no resource; None: not this path."""

    def __call__(self, request: Request) -> Awaitable[Response | None]: ...


Authorizer = Callable[["Call"], "str | None"]
"""Why a call is not allowed, or None if it is. The text follows "is forbidden: "."""
