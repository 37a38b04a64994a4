"""
HTTP/1.1 on one connection.

The connection parses requests one after the other and answers them in order. It does not store
what a client sends ahead: it reads a body when the handler asks for it, parses only a few
pipelined requests, and writes an answer no further ahead than a bound. It discards trailers. It
closes the connection of a client that does not read, or that does not finish what it began to send.
It sends a watch whose client asks for a WebSocket as messages of one.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import cast

import httptools
from multidict import CIMultiDict

from dryrack.apiserver.http import websocket
from dryrack.base.limits import (
    ANSWERS_BYTES_MAX,
    CHUNK_SECONDS_MAX,
    CONNECTIONS_MAX,
    HEADER_BYTES_MAX,
    HEADERS_MAX,
    IDLE_SECONDS_MAX,
    PIPELINED_REQUESTS_MAX,
    STREAM_BUFFER_BYTES_MAX,
    UNREAD_BODY_BYTES_MAX,
    WEBSOCKET_MESSAGE_BYTES_MAX,
    WRITE_BUFFER_BYTES_MAX,
)
from dryrack.client.transport import Response, Stream, Upgrade

log = logging.getLogger(__name__)

# The parser cannot stop within what it is given. The shortest request has 18 bytes, so that a piece
# of this size adds at most some 60 requests to the line.
_PIECE_BYTES = 1024
# The time in which a client that was refused while sending should notice.
LINGER_SECONDS = 1.0
_BODILESS = frozenset({204, 304})
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)


class DisconnectedError(Exception):
    """The client has gone, or has sent what ends the connection, within its request."""


class BodyTooLargeError(Exception):
    """The body has more bytes than the reader wants."""


class Incoming:
    """A request whose headers have arrived; its body may still be coming."""

    __slots__ = (
        "_arrived",
        "_connection",
        "_content",
        "_error",
        "headers",
        "is_whole",
        "method",
        "target",
    )

    def __init__(self, connection: "Connection", headers: CIMultiDict[str]) -> None:
        self.headers = headers
        self.method = ""
        self.target = b""
        self.is_whole = False
        self._connection = connection
        self._content = bytearray()
        self._arrived = asyncio.Event()
        self._error: Exception | None = None

    @property
    def certificate(self) -> Mapping[str, object]:
        """Return the client's certificate in the form of `ssl`, or {}."""
        return self._connection.certificate

    @property
    def has_body(self) -> bool:
        return not self.is_whole or bool(self._content)

    def arrive(self, content: bytes) -> None:
        if self._error is not None:
            return
        self._content += content
        self._arrived.set()
        if len(self._content) > UNREAD_BODY_BYTES_MAX:
            self._connection.hold_back()

    def give_up(self, error: Exception) -> None:
        """Make the reader of the body fail with `error`; nothing more of the body is kept."""
        self._error = error
        self._content.clear()
        self._arrived.set()

    def admit(self) -> None:
        """Remember that the client of the connection has proven who it is."""
        self._connection.is_known = True

    def complete(self) -> None:
        self.is_whole = True
        self._arrived.set()

    async def body(self, bytes_max: int, account: Callable[[int], None] | None = None) -> bytes:
        """
        Return the whole body; raise if it is larger, or never comes.

        `account` is called with the size of what is there whenever more has arrived. It may raise.
        """
        if int(self.headers.get("Content-Length", "0")) > bytes_max:
            raise BodyTooLargeError
        if not self.is_whole and self.headers.get("Expect", "").lower() == "100-continue":
            self._connection.invite()
        while True:
            if self._error is not None:
                raise self._error
            if len(self._content) > bytes_max:
                raise BodyTooLargeError
            if account is not None:
                account(len(self._content))
            if self.is_whole:
                content = bytes(self._content)
                self._content.clear()
                return content
            self._arrived.clear()
            self._connection.go_on()
            await self._arrived.wait()


Handler = Callable[[Incoming], Awaitable[Response]]


class Connection(asyncio.Protocol):
    """The connection of one client; `connections` holds all connections of the server."""

    def __init__(self, handler: Handler, connections: set["Connection"]) -> None:
        self._handler = handler
        self._connections = connections
        self._parser = httptools.HttpRequestParser(self)
        # Bytes of the headers so far, and of a body since its last content: the
        # size lines of chunks, and trailers.
        self._head_bytes = 0
        self._framing_bytes = 0
        self._target = bytearray()
        self._headers: CIMultiDict[str] = CIMultiDict()
        self._reading: Incoming | None = None
        # Bytes that wait to be parsed, because the client sends faster than it is answered.
        self._unparsed = b""
        self._body_bytes_left = 0
        self._line: deque[Incoming] = deque()
        self._next = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_streaming = False
        # Bytes after a request for a WebSocket are no HTTP; they wait until the socket is open.
        self._early: bytearray | None = None
        self._socket: websocket.ServerSocket | None = None
        self._upgrade: Upgrade | None = None
        self._farewell = asyncio.Event()
        # Closing: only requests that have begun are answered. Deaf: further bytes are ignored.
        self._is_closing = False
        self._is_deaf = False
        self._refusal = 0
        self.is_lost = False
        self.is_known = False
        # The clock of the loop is too coarse: connections that come together have one time.
        self.used_at = 0
        # The bytes of an answer that the client has not read.
        self.unsent_bytes = 0
        self.certificate: Mapping[str, object] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are what asyncio's are, and do not say so.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES_MAX)
        self.certificate = transport.get_extra_info("peercert") or {}
        self._loop = asyncio.get_running_loop()
        self.used_at = time.monotonic_ns()
        self._connections.add(self)
        if len(self._connections) > CONNECTIONS_MAX:
            # First a client that is not authenticated, so that strangers cannot take all
            # connections; then an idle one.
            spare = min(
                self._connections, key=lambda each: (each.is_known, each.is_busy, each.used_at)
            )
            self._connections.discard(spare)
            spare.abort()
        self._idle = self._loop.call_later(IDLE_SECONDS_MAX, self._abort)
        self._work = self._loop.create_task(self._work_until_end(), name="connection")

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        self._idle.cancel()
        self._connections.discard(self)
        self._writable.set()
        self._work.cancel()
        # The parser refers to this. The buffers of TLS are large, and the collector of cycles
        # counts objects, not bytes: it would come when a thousand connections wait for it.
        del self._parser
        self._reading = None
        self._socket = None
        if self._upgrade is not None:
            self._upgrade.disconnect()

    @property
    def is_busy(self) -> bool:
        """Return whether a request is being answered."""
        return bool(self._line)

    def data_received(self, data: bytes) -> None:
        if self._early is not None:
            self._receive_upgraded(data)
            return
        if self._is_deaf or (self._is_closing and self._reading is None):
            return
        self._unparsed = self._unparsed + data if self._unparsed else data
        self._parse()

    def _parse(self) -> None:
        """Feed the parser until everything is parsed, or enough requests are in line."""
        data = self._unparsed
        start = 0
        while start < len(data) and not self._is_deaf and not self._is_line_full:
            # Nothing but the body is in what the body still lacks.
            end = start + max(_PIECE_BYTES, self._body_bytes_left)
            self._parse_piece(data[start:end])
            start = end
            if self._early is not None:
                self._receive_upgraded(data[start:])
                start = len(data)
        self._unparsed = b"" if self._is_deaf else data[start:]

    @property
    def _is_line_full(self) -> bool:
        return self._reading is None and len(self._line) >= PIPELINED_REQUESTS_MAX

    def _parse_piece(self, data: bytes) -> None:
        was_reading = self._reading
        if was_reading is None:
            if self._is_closing:
                return
            self._head_bytes += len(data)
        else:
            self._framing_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # The connection ends with the answer to this request, be it a WebSocket or not.
            self._is_closing = True
            if self._line and "upgrade" in self._line[-1].headers:
                self._early = bytearray()
                self._receive_upgraded(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            if self._reading is not None or not self._is_closing:
                self._refuse(400)
        if self._reading is None:
            if self._head_bytes > HEADER_BYTES_MAX:
                self._refuse(431)
        elif self._reading is was_reading and self._framing_bytes > HEADER_BYTES_MAX:
            self._refuse(431)

    def _receive_upgraded(self, data: bytes) -> None:
        """Take the bytes after a request for another protocol."""
        if self._upgrade is not None:
            self._upgrade.receive(data)
        elif self._socket is not None:
            # A watch takes no messages; kube-apiserver ignores them too.
            self._socket.receive(data)
        elif self._early is not None:
            self._early += data
            self.hold_back()
            # A transport may deliver what it has read before it was held back.
            if len(self._early) > UNREAD_BODY_BYTES_MAX:
                self._abort()

    def on_url(self, part: bytes) -> None:
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._reading is not None:
            # A trailer. No trailer means anything to the API, and one that became a header could
            # change who asks after that was decided.
            return
        if len(self._headers) >= HEADERS_MAX:
            self._refuse(431)
            return
        self._headers.add(name.decode("latin-1"), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        incoming = self._reading = Incoming(self, self._headers)
        incoming.method = self._parser.get_method().decode("latin-1")
        incoming.target = bytes(self._target)
        self._framing_bytes = 0
        self._body_bytes_left = int(self._headers.get("Content-Length", "0"))
        lengths = (len(name) + len(value) for name, value in self._headers.items())
        if sum(lengths) + len(self._target) > HEADER_BYTES_MAX:
            self._refuse(431)
        if not self._parser.should_keep_alive():
            self._is_closing = True
        self._idle.cancel()
        self._line.append(incoming)
        self._next.set()

    def on_body(self, content: bytes) -> None:
        if self._reading is not None:
            self._framing_bytes = 0
            self._body_bytes_left = max(0, self._body_bytes_left - len(content))
            self._reading.arrive(content)

    def on_message_complete(self) -> None:
        assert self._reading is not None, "a message has ended that did not begin"
        self._reading.complete()
        self._reading = None
        self._head_bytes = self._body_bytes_left = 0
        self._target, self._headers = bytearray(), CIMultiDict()
        if self._is_line_full:
            self.hold_back()

    def hold_back(self) -> None:
        """Take no more from the client for now."""
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def go_on(self) -> None:
        """Take more from the client: first what has arrived, then what it sends."""
        if self._unparsed:
            self._parse()
        if not self._is_line_full and not self._transport.is_closing():
            self._transport.resume_reading()

    def invite(self) -> None:
        """Invite a client that waits for it to send its body."""
        self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def pause_writing(self) -> None:
        self._writable.clear()
        if self._socket is not None:
            # Every ping asks for an answer, which a client that does not read would pile up.
            self.hold_back()

    def resume_writing(self) -> None:
        self._writable.set()
        if self._socket is not None:
            self.go_on()

    def stop(self) -> None:
        """End a stream at once, a request when it is answered, and an idle connection now."""
        self._is_closing = True
        if self._is_streaming:
            self._end_stream()
        elif not self._line:
            self._transport.close()

    def _end_stream(self) -> None:
        # Once: a second cancellation would hit what follows the stream.
        if self._is_streaming:
            self._is_streaming = False
            self._work.cancel()

    def _end_websocket(self) -> None:
        """End the stream because the client closed its WebSocket or broke the protocol."""
        # A client that broke it may be in the middle of sending.
        if self._socket is not None and not self._socket.is_broken:
            self._farewell.set()
        self._end_stream()

    def abort(self) -> None:
        self._transport.abort()

    async def wait_ended(self) -> None:
        """Wait until nothing more is done for the client."""
        await asyncio.wait([self._work])

    def _abort(self) -> None:
        self._transport.abort()

    def _refuse(self, status: int) -> None:
        """Answer with `status` after the requests in line, and look at nothing that follows."""
        self._is_closing = self._is_deaf = True
        self._refusal = status
        self._next.set()
        if self._reading is not None:
            self._reading.give_up(DisconnectedError())

    async def _work_until_end(self) -> None:
        try:
            await self._answer_all()
        except asyncio.CancelledError:
            # The client is gone. A cancelled task would keep its frames, and they this
            # connection.
            if not self.is_lost:
                raise
        except Exception:
            # A bug: the client loses its connection, and the log shows it.
            log.exception("a connection ended")
            self._transport.abort()
        finally:
            self._line.clear()

    async def _answer_all(self) -> None:
        with contextlib.suppress(DisconnectedError):
            while await self._has_next():
                await self._answer(self._line[0])
                self._line.popleft()
                self.used_at = time.monotonic_ns()
                if self._is_closing and not self._line:
                    break
                self.go_on()
        if self._refusal and not self._transport.is_closing():
            self._transport.write(_bare(self._refusal))
        # A client that is still sending would miss the answer if the connection closed at once.
        if self._reading is not None or self._refusal:
            self._is_deaf = True
            self.go_on()
            await asyncio.sleep(LINGER_SECONDS)
        # TLS gives a client little time from the close on, and the last answer may take more.
        self._transport.set_write_buffer_limits(high=1, low=0)
        with contextlib.suppress(DisconnectedError):
            await self._drain()
        self._transport.close()

    async def _has_next(self) -> bool:
        """Wait for a request or the end; return whether there is a request to answer."""
        if not self._line and not self._refusal:
            # The first time, this is the timer from the beginning of the connection.
            self._idle.cancel()
            self._idle = self._loop.call_later(IDLE_SECONDS_MAX, self._abort)
            self._next.clear()
            await self._next.wait()
            self._idle.cancel()
        return bool(self._line) and not self._refusal

    async def _answer(self, incoming: Incoming) -> None:
        response = await self._handler(incoming)
        # An answer may take long to be read, and a stream goes on for hours.
        incoming.give_up(DisconnectedError())
        if not incoming.is_whole:
            # The rest of the body would be read as the next request.
            self._is_closing = True
        lines = [_status_line(response.status)]
        lines += (f"{name}: {value}" for name, value in response.headers)
        lines.append(f"date: {_date(int(time.time()))}")
        if self._is_closing:
            lines.append("connection: close")
        head = "\r\n".join([*lines, ""]).encode("latin-1", "replace")
        if response.upgrade is not None:
            await self._hand_over(response, response.upgrade)
        elif isinstance(response.body, bytes):
            await self._write_plain(head, response, incoming.method)
        elif self._early is not None and websocket.is_requested(incoming.headers):
            await self._open_websocket(incoming, response.body)
        else:
            self._transport.write(head + b"Transfer-Encoding: chunked\r\n\r\n")
            await self._pump(response.body, lambda chunk: b"%x\r\n%b\r\n" % (len(chunk), chunk))
            self._transport.write(b"0\r\n\r\n")

    async def _write_plain(self, head: bytes, response: Response, method: str) -> None:
        body = response.body
        assert isinstance(body, bytes), "streams are written elsewhere"
        if response.status in _BODILESS:
            self._transport.write(head + b"\r\n")
            return
        head += b"Content-Length: %d\r\n\r\n" % len(body)
        if method == "HEAD":
            body = b""
        if len(body) <= WRITE_BUFFER_BYTES_MAX:
            self._transport.write(head + body)
            await self._drain()
            return
        self.used_at = time.monotonic_ns()
        self.unsent_bytes = len(body)
        self._limit_unsent()
        self._transport.write(head)
        view = memoryview(body)
        try:
            for start in range(0, len(body), STREAM_BUFFER_BYTES_MAX):
                piece = view[start : start + STREAM_BUFFER_BYTES_MAX]
                self._transport.write(piece)
                await self._drain()
                self.unsent_bytes -= len(piece)
        finally:
            self.unsent_bytes = 0

    def _limit_unsent(self) -> None:
        """Close connections whose clients take the longest, until the answers fit the bound."""
        others = [each for each in self._connections if each.unsent_bytes and each is not self]
        others.sort(key=lambda each: each.used_at)
        total = self.unsent_bytes + sum(each.unsent_bytes for each in others)
        for each in others:
            if total <= ANSWERS_BYTES_MAX:
                return
            total -= each.unsent_bytes
            each.abort()

    async def _open_websocket(self, incoming: Incoming, body: Stream) -> None:
        """Write a stream as text messages, one for each line: an event of a watch."""
        try:
            head = websocket.accept(incoming.headers)
        except websocket.HandshakeError as error:
            await body.aclose()
            self._transport.write(_bare(error.status, str(error), error.headers))
            return
        assert self._early is not None, "the parser has reported the request for a WebSocket"
        self._transport.write(head)
        socket = self._socket = websocket.ServerSocket(
            self._transport.write, self._end_websocket, bytes_max=WEBSOCKET_MESSAGE_BYTES_MAX
        )
        self._loop.call_soon(self._receive_upgraded, bytes(self._early))
        self._early.clear()
        self.go_on()
        is_whole = await self._pump(
            body,
            lambda chunk: socket.frames(websocket.Opcode.TEXT, chunk.splitlines(keepends=True)),
        )
        code = websocket.CloseCode.NORMAL if is_whole else websocket.CloseCode.GOING_AWAY
        socket.close(code)
        # The side that closes first waits for the other one to agree.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                await self._farewell.wait()

    async def _hand_over(self, response: Response, upgrade: Upgrade) -> None:
        """Let another protocol use the connection, until it is done with it."""
        lines = [_status_line(response.status)]
        lines += (f"{name}: {value}" for name, value in response.headers)
        self._transport.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        upgrade.connect(self._write_upgraded)
        self._upgrade = upgrade
        if self._early:
            upgrade.receive(bytes(self._early))
            self._early.clear()
        self.go_on()
        self._is_streaming = True
        try:
            await upgrade.run()
        except asyncio.CancelledError:
            if self.is_lost or not self._is_closing:
                raise
            # The server stops.
            self._work.uncancel()
        finally:
            self._is_streaming = False

    def _write_upgraded(self, data: bytes) -> None:
        if not self.is_lost and not self._transport.is_closing():
            self._transport.write(data)

    async def _pump(self, body: Stream, encode: Callable[[bytes], bytes]) -> bool:
        """Write the chunks of a stream; return whether it ended before the connection does."""
        self._is_streaming = True
        try:
            async for chunk in body:
                if chunk and isinstance(chunk, bytes):
                    self._transport.write(encode(chunk))
                    await self._drain()
        except asyncio.CancelledError:
            if self.is_lost or not self._is_closing:
                raise
            # The server stops, or the client has closed its WebSocket: this is the end.
            self._work.uncancel()
            return False
        finally:
            self._is_streaming = False
            await body.aclose()
        return True

    async def _drain(self) -> None:
        """Wait until the client has read enough; abort the connection if it does not."""
        if self.is_lost:
            raise DisconnectedError
        if self._writable.is_set():
            return
        try:
            async with asyncio.timeout(CHUNK_SECONDS_MAX):
                await self._writable.wait()
        except TimeoutError:
            self._abort()
            raise DisconnectedError from None


@lru_cache(maxsize=64)
def _status_line(status: int) -> str:
    # A webhook chooses the status of what it denies, also one that HTTP does not name.
    phrase = HTTPStatus(status).phrase if status in HTTPStatus.__members__.values() else ""
    return f"HTTP/1.1 {status} {phrase}"


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    """Return a time in the form of HTTP, in every locale."""
    year, month, day, hour, minute, past, weekday, *_ = time.gmtime(second)
    date = f"{_DAYS[weekday]}, {day:02} {_MONTHS[month - 1]} {year}"
    return f"{date} {hour:02}:{minute:02}:{past:02} GMT"


def _bare(status: int, text: str = "", more: Iterable[tuple[str, str]] = ()) -> bytes:
    phrase = f"{status} {HTTPStatus(status).phrase}"
    text = text or phrase
    lines = (
        f"HTTP/1.1 {phrase}",
        *(f"{name}: {value}" for name, value in more),
        "content-type: text/plain; charset=utf-8",
        f"content-length: {len(text)}",
        "connection: close",
    )
    return "\r\n".join([*lines, "", text]).encode()
