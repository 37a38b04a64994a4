"""
A request and its response, apart from how they travel.

An engine talks to a cluster through a `Transport`. The embedded API server is one itself, so a
request in process is a function call; over HTTPS it is a connection. Neither side can tell which
it is. Header names are lower case on both sides.

Who says so in a request may be given the objects of a watch instead of JSON, if both ends are in
one process. Such an object is the one that the server keeps, and everybody else is given the same
one: nobody changes it. Answers are JSON always, so that their readers have something of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import msgspec

from dryrack.kinds.raw import Raw


@dataclass(frozen=True, slots=True)
class User:
    """Who asks, as an authenticator found out."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


# Whoever holds the server object in their hands may do anything with it.
ADMIN = User("system:admin", ("system:masters", "system:authenticated"))


class Request(msgspec.Struct, frozen=True):
    """
    What is asked.

    `path` and `query` are as a client writes them into the request line: percent-encoded, without
    the question mark between them. `takes_objects`: a watch may have objects instead of JSON.
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

    The object is JSON if the server keeps no more of it than that, or if it is so large that its
    reader had better share what it has in common with others.
    """

    type: str
    object: Raw | bytes


Chunk = bytes | list[Handed]


class Stream(Protocol):
    """
    A body that goes on: any number of chunks, each as soon as it is there.

    Whoever reads it closes it, also after an error: a watch that nobody reads is a leak.
    """

    def __aiter__(self) -> "Stream": ...

    async def __anext__(self) -> Chunk: ...

    async def aclose(self) -> None: ...


Body = bytes | Stream


class Response(msgspec.Struct, frozen=True):
    """What is answered. A header may be there more than once, as `warning` is."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: Body

    def header(self, name: str) -> str | None:
        """The first header of a name, given in lower case."""
        return next((value for key, value in self.headers if key == name), None)


class Transport(Protocol):
    """Brings a request to a cluster, and the response back."""

    async def send(self, request: Request) -> Response: ...
