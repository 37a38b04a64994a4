"""
The API server on HTTPS.

`HttpServer` finds the user of each request, passes the request to the server object and sends its
response. This module and `connections` answer requests that are not valid HTTP; the server object
answers everything else. Bodies, headers, requests in hand and unread streams have bounds, so that
no client can fill the memory of the process.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit

import msgspec
from multidict import CIMultiDict

from dryrack.apiserver.answer.status import (
    Status,
    StatusError,
    bad_request,
    internal_error,
    too_large,
)
from dryrack.apiserver.authentication import is_open_path
from dryrack.apiserver.http.concurrency_limit import BodyMemory, Flow, HeldBody
from dryrack.apiserver.http.connections import (
    BodyTooLargeError,
    Connection,
    DisconnectedError,
    Incoming,
)
from dryrack.base.limits import BODY_SECONDS_MAX, REQUEST_BODY_BYTES_MAX, STOP_SECONDS_MAX
from dryrack.client.transport import Request, Response, Transport, User

log = logging.getLogger(__name__)

_JSON = "application/json"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_HANDSHAKE_SECONDS_MAX = 10.0
# The time in which a client should answer the end of TLS. Go's server does not wait, its clients
# often do not answer, and each costs 50 KB meanwhile; but a slow client needs the last bytes.
_SHUTDOWN_SECONDS_MAX = 3.0
# Connections that wait to be accepted; a burst of a thousand clients is not refused.
_BACKLOG = 1024
_encode = msgspec.json.Encoder().encode


class Authenticator(Protocol):
    """Finds the user of a request."""

    def user_of(
        self, path: str, headers: CIMultiDict[str], certificate: Mapping[str, object]
    ) -> User:
        """Return the user, or raise a `StatusError`. A missing certificate is {}."""
        ...


class HttpServer:
    """
    A transport behind a listening socket.

    `start` returns when clients may connect; `stop` ends the streams, lets the requests in hand
    be answered, and leaves no connection behind.
    """

    def __init__(self, transport: Transport, authenticator: Authenticator, flow: Flow) -> None:
        self._transport = transport
        self._authenticator = authenticator
        self._flow = flow
        self._bodies = BodyMemory()
        self._server: asyncio.Server | None = None
        self._connections: set[Connection] = set()

    async def start(self, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self._answer, self._connections),
            sock=listening,
            ssl=tls,
            backlog=_BACKLOG,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS_MAX if tls else None,
            ssl_shutdown_timeout=_SHUTDOWN_SECONDS_MAX if tls else None,
        )

    async def stop(self) -> None:
        assert self._server is not None, "stopped before it was started"
        self._server.close()
        connections = tuple(self._connections)
        for connection in connections:
            connection.stop()
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await asyncio.gather(*(each.wait_ended() for each in connections))
        except TimeoutError:
            for connection in tuple(self._connections):
                connection.abort()
        await self._server.wait_closed()

    async def _answer(self, incoming: Incoming) -> Response:
        try:
            return await self._ask(incoming)
        except StatusError as error:
            return _refusal(error.status)
        except DisconnectedError:
            raise
        except Exception:
            target = incoming.target.decode("latin-1")
            log.exception("no answer to %s %s", incoming.method, target)
            return _refusal(internal_error("see the log of the server").status)

    async def _ask(self, incoming: Incoming) -> Response:
        path, query = _path_and_query(incoming.target)
        user = self._authenticator.user_of(path, incoming.headers, incoming.certificate)
        if is_open_path(path):
            # The client may be anonymous, and health pages ignore bodies. The answer does not wait,
            # so it needs no place.
            headers = _headers(incoming.headers)
            return await self._transport.send(
                Request(incoming.method, path, query, headers, b"", user)
            )
        incoming.admit()
        with self._bodies.hold(incoming) as held:
            body = await _read_body(incoming, held) if incoming.has_body else b""
            held.complete()
            async with self._flow.place():
                headers, body = _convert_to_json(_headers(incoming.headers), body)
                asked = Request(incoming.method, path, query, headers, body, user)
                return await self._transport.send(asked)


def _path_and_query(target: bytes) -> tuple[str, str]:
    """Return the path and the query as the client sent them, also from a whole URL."""
    text = target.decode("latin-1")
    if not text.startswith("/") and "://" in text:
        try:
            parts = urlsplit(text)
        except ValueError as error:
            raise bad_request(f"the request names no URL: {error}") from None
        text = f"{parts.path or '/'}?{parts.query}"
    path, _, query = text.partition("?")
    if not path.startswith("/"):
        raise bad_request("the request names no path")
    return path, query


def _headers(given: CIMultiDict[str]) -> dict[str, str]:
    """Return the headers by name in lower case; repeated headers are joined, as HTTP allows."""
    found: dict[str, str] = {}
    for name, value in given.items():
        key = name.lower()
        found[key] = f"{found[key]},{value}" if key in found else value
    return found


async def _read_body(incoming: Incoming, held: HeldBody) -> bytes:
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            return await incoming.body(REQUEST_BODY_BYTES_MAX, held.grow)
    except BodyTooLargeError:
        raise too_large(REQUEST_BODY_BYTES_MAX) from None
    except TimeoutError:
        message = f"the body took more than {BODY_SECONDS_MAX:.0f} s to arrive"
        raise StatusError(Status(408, "Timeout", message)) from None


def _convert_to_json(headers: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    """Convert a body in Protobuf, which Go's typed clients send, to JSON."""
    if not body or not headers.get("content-type", "").startswith(_PROTOBUF):
        return headers, body
    from dryrack.apiserver import protobuf

    try:
        return {**headers, "content-type": _JSON}, _encode(protobuf.to_object(body))
    except protobuf.ProtobufError as error:
        raise bad_request(str(error)) from None


def _refusal(status: Status) -> Response:
    headers = [("content-type", _JSON), ("cache-control", "no-cache, private")]
    if status.retry_after_seconds:
        headers.append(("retry-after", str(status.retry_after_seconds)))
    return Response(status.code, tuple(headers), _encode(status.to_raw()) + b"\n")
