"""
Requests and responses, independent of the transport.

A component talks to a cluster through a `Transport`. The embedded API server is one, so that a
request in the process is a function call; over HTTPS it is a connection. The difference is visible
on neither side. Header names are lower case on both sides.

If both sides are in one process, a request may allow objects instead of JSON in a watch. Such an
object is the one that the server stores and gives to all watches, so that it must not be changed.
Other responses are always JSON, so that each reader has its own objects.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import msgspec

from dryrack.kinds.raw import Raw


@dataclass(frozen=True, slots=True)
class User:
    """The user of a request, as an authenticator identified it."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


# Code with a reference to the server object has all permissions.
ADMIN = User("system:admin", ("system:masters", "system:authenticated"))


class Request(msgspec.Struct, frozen=True):
    """
    A request to an API server.

    `path` and `query` are percent-encoded as in the request line, without the question mark between
    them. With `takes_objects`, a watch may return objects instead of JSON.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes = b""
    user: User = ADMIN
    takes_objects: bool = False


class Handed(NamedTuple):
    """
    An event of a watch.

    The object is JSON if the server stores only JSON, or if it is so large that its reader should
    share the parts that are equal in other objects.
    """

    type: str
    object: Raw | bytes


Chunk = bytes | list[Handed]


class Stream(Protocol):
    """
    A streamed body: any number of chunks, each as soon as it arrives.

    The reader has to close it, also after an error: a watch without a reader is a leak.
    """

    def __aiter__(self) -> "Stream": ...

    async def __anext__(self) -> Chunk: ...

    async def aclose(self) -> None: ...


class Upgrade(Protocol):
    """Takes over the connection after the status 101."""

    def connect(self, write: Callable[[bytes], None]) -> None:
        """Take the connection; `write` sends bytes to the client."""
        ...

    def receive(self, data: bytes) -> None:
        """Take bytes of the client."""
        ...

    async def run(self) -> None:
        """Use the connection, and return when it can be closed."""
        ...

    def disconnect(self) -> None:
        """The client is gone."""
        ...


Body = bytes | Stream


class Response(msgspec.Struct, frozen=True):
    """A response. A header may occur more than once, such as `warning`."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: Body
    upgrade: Upgrade | None = None

    def header(self, name: str) -> str | None:
        """Return the first header with a name, which is in lower case."""
        return next((value for key, value in self.headers if key == name), None)


class Transport(Protocol):
    """Sends a request to a cluster, and returns the response."""

    async def send(self, request: Request) -> Response: ...
