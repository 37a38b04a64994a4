"""
The API server on HTTPS.

Bytes in, a `Request` with a known user to the server object, bytes out. What is wrong with the
HTTP itself is answered here; everything else is the server's business. Nothing grows with what a
client sends or fails to read: bodies, headers, requests in hand and unread streams have bounds,
and who does not read is cut off.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict

from dryrack.apiserver import protobuf
from dryrack.apiserver.flow import Flow
from dryrack.apiserver.status import Status, StatusError, bad_request, internal_error, too_large
from dryrack.base.limits import (
    BODY_SECONDS_MAX,
    CHUNK_SECONDS_MAX,
    HEADER_LINE_BYTES_MAX,
    HEADERS_MAX,
    IDLE_SECONDS_MAX,
    REQUEST_BODY_BYTES_MAX,
    STOP_SECONDS_MAX,
    STREAM_BUFFER_BYTES_MAX,
)
from dryrack.client.transport import Request, Response, Stream, Transport, User

log = logging.getLogger(__name__)

_JSON = "application/json"
_HANDSHAKE_SECONDS_MAX = 10.0
# What arrives before the process gets to accept it; a burst of a thousand clients is not refused.
_BACKLOG = 1024
_encode = msgspec.json.Encoder().encode


class Doorkeeper(Protocol):
    """Finds out who asks."""

    def user_of(
        self, path: str, headers: CIMultiDict[str], certificate: Mapping[str, object]
    ) -> User:
        """Raises a `StatusError` for somebody who may not come in; no certificate is {}."""
        ...


class HttpServer:
    """
    A transport behind a listening socket.

    `start` binds before it returns, so `port` is known and clients may connect; `stop` ends the
    requests in hand and cuts the watches.
    """

    def __init__(self, transport: Transport, doorkeeper: Doorkeeper, flow: Flow) -> None:
        self._transport = transport
        self._doorkeeper = doorkeeper
        self._flow = flow
        self._server: asyncio.Server | None = None
        self._web: web.Server | None = None
        self._streams: set[asyncio.Task[Any]] = set()
        self._stopping = False

    async def start(self, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        self._web = web.Server(
            self._answer,
            handler_cancellation=True,
            access_log=None,
            logger=_protocol_log(),
            max_line_size=HEADER_LINE_BYTES_MAX,
            max_field_size=HEADER_LINE_BYTES_MAX,
            max_headers=HEADERS_MAX,
            keepalive_timeout=IDLE_SECONDS_MAX,
            auto_decompress=True,
        )
        self._server = await asyncio.get_running_loop().create_server(
            self._web,
            sock=listening,
            ssl=tls,
            backlog=_BACKLOG,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS_MAX if tls else None,
        )

    async def stop(self) -> None:
        """First no new connections, then the watches, then what is still being answered."""
        assert self._server is not None, "stopped before it was started"
        assert self._web is not None, "stopped before it was started"
        self._stopping = True
        self._server.close()
        for stream in tuple(self._streams):
            stream.cancel()
        self._web.pre_shutdown()
        await self._web.shutdown(STOP_SECONDS_MAX)
        await self._server.wait_closed()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            response = await self._ask(request)
        except StatusError as error:
            return _refusal(error.status)
        except Exception:
            log.exception("no answer to %s %s", request.method, request.rel_url.raw_path)
            return _refusal(internal_error("see the log of the server").status)
        if isinstance(response.body, bytes):
            return _plain(response, response.body)
        return await self._stream(request, response, response.body)

    async def _ask(self, request: web.BaseRequest) -> Response:
        path, query = _place(request)
        certificate = _certificate(request)
        user = self._doorkeeper.user_of(path, CIMultiDict(request.headers), certificate)
        async with self._flow.place():
            body = await _body(request) if request.body_exists else b""
            headers, body = _as_json(_headers(request), body)
            asked = Request(request.method, path, query, headers, body, user)
            return await self._transport.send(asked)

    async def _stream(
        self, request: web.BaseRequest, response: Response, body: Stream
    ) -> web.StreamResponse:
        """Chunk by chunk, each as soon as it is there, and no further ahead than the bound."""
        answer = web.StreamResponse(status=response.status, headers=CIMultiDict(response.headers))
        answer.enable_chunked_encoding()
        task = asyncio.current_task()
        assert task is not None, "requests are answered in tasks"
        self._streams.add(task)
        try:
            await answer.prepare(request)
            if request.transport is not None:
                request.transport.set_write_buffer_limits(high=STREAM_BUFFER_BYTES_MAX)
            async for chunk in body:
                async with asyncio.timeout(CHUNK_SECONDS_MAX):
                    await answer.write(chunk)
            await answer.write_eof()
        except TimeoutError:
            log.info("cut a reader that stopped reading", extra={"path": request.rel_url.raw_path})
            _abort(request)
        except asyncio.CancelledError:
            if not self._stopping:
                raise
            # The client is told that this is the end, not left to guess at a broken connection.
            task.uncancel()
            await answer.write_eof()
        finally:
            self._streams.discard(task)
            await body.aclose()
        return answer


def _place(request: web.BaseRequest) -> tuple[str, str]:
    """Path and query as they were sent; a proxy's absolute form is cut to its path."""
    target = request.raw_path
    if not target.startswith("/"):
        target = request.rel_url.raw_path_qs if "://" in target else ""
    path, _, query = target.partition("?")
    if not path:
        raise bad_request("the request names no path")
    return path, query


def _certificate(request: web.BaseRequest) -> Mapping[str, object]:
    found = request.get_extra_info("peercert")
    return found if found else {}


def _headers(request: web.BaseRequest) -> dict[str, str]:
    """By name in lower case; one that was sent twice is joined, as HTTP allows."""
    found: dict[str, str] = {}
    for name, value in request.headers.items():
        key = name.lower()
        found[key] = f"{found[key]},{value}" if key in found else value
    return found


async def _body(request: web.BaseRequest) -> bytes:
    length = request.content_length
    if length is not None and length > REQUEST_BODY_BYTES_MAX:
        raise too_large(REQUEST_BODY_BYTES_MAX)
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            async for chunk in request.content.iter_any():
                content += chunk
                if len(content) > REQUEST_BODY_BYTES_MAX:
                    raise too_large(REQUEST_BODY_BYTES_MAX)
    except TimeoutError:
        raise StatusError(
            Status(408, "Timeout", f"the body took more than {BODY_SECONDS_MAX:.0f} s to arrive")
        ) from None
    except (HttpProcessingError, web.RequestPayloadError) as error:
        raise bad_request(f"the body cannot be read: {error}") from None
    return bytes(content)


def _as_json(headers: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    """What Go's typed clients send as protobuf is JSON from here on."""
    if not body or not headers.get("content-type", "").startswith(protobuf.MEDIA_TYPE):
        return headers, body
    try:
        return {**headers, "content-type": _JSON}, _encode(protobuf.to_object(body))
    except protobuf.ProtobufError as error:
        raise bad_request(str(error)) from None


def _plain(response: Response, body: bytes) -> web.Response:
    return web.Response(
        status=response.status, headers=CIMultiDict(response.headers), body=body or None
    )


def _refusal(status: Status) -> web.Response:
    headers = {"Content-Type": _JSON, "Cache-Control": "no-cache, private"}
    if status.retry_after_seconds:
        headers["Retry-After"] = str(status.retry_after_seconds)
    answer = web.Response(
        status=status.code, headers=headers, body=_encode(status.to_raw()) + b"\n"
    )
    if status.code in (408, 413):
        # The rest of the body is not wanted; it would be read as the next request.
        answer.force_close()
    return answer


def _protocol_log() -> logging.Logger:
    found = logging.getLogger(f"{__name__}.protocol")
    found.addFilter(_Unheard())
    return found


def _abort(request: web.BaseRequest) -> None:
    if isinstance(request.transport, asyncio.Transport):
        request.transport.abort()


class _Unheard(logging.Filter):
    """Bad HTTP is the client's mistake and has been answered; it is no error of ours."""

    def filter(self, record: logging.LogRecord) -> bool:
        return False
