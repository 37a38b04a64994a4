"""
HTTP/1.1 on one connection.

Bytes become requests one after the other; each is answered before the next is looked at. What a
client sends is held back, not stored: a body is read when somebody asks for it, and an answer is
written no further ahead than a bound. Who does not read, or does not finish what it began to
send, is cut off.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import cast

import httptools
from multidict import CIMultiDict

from dryrack.base.limits import (
    CHUNK_SECONDS_MAX,
    HEADER_BYTES_MAX,
    IDLE_SECONDS_MAX,
    STREAM_BUFFER_BYTES_MAX,
)
from dryrack.client.transport import Response, Stream

log = logging.getLogger(__name__)

# What is read of a body before somebody asks for it, and how many requests may wait in line.
_UNASKED_BYTES_MAX = 64 * 1024
_IN_LINE_MAX = 8
# How long a client that was refused in the middle of sending may take to notice.
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
    """A request whose headers are there; its body may be on the way."""

    __slots__ = (
        "_arrived",
        "_connection",
        "_content",
        "_is_broken",
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
        self._is_broken = False

    @property
    def certificate(self) -> Mapping[str, object]:
        """The client's, as `ssl` gives it; {} if it showed none."""
        return self._connection.certificate

    @property
    def has_body(self) -> bool:
        return not self.is_whole or bool(self._content)

    def arrive(self, content: bytes) -> None:
        self._content += content
        self._arrived.set()
        if len(self._content) > _UNASKED_BYTES_MAX:
            self._connection.hold_back()

    def give_up(self) -> None:
        """The rest of the body will never be understood."""
        self._is_broken = True
        self._arrived.set()

    def complete(self) -> None:
        self.is_whole = True
        self._arrived.set()

    async def body(self, bytes_max: int) -> bytes:
        """The whole body; raises if it is larger, or never comes."""
        if int(self.headers.get("Content-Length", "0")) > bytes_max:
            raise BodyTooLargeError
        if not self.is_whole and self.headers.get("Expect", "").lower() == "100-continue":
            self._connection.invite()
        while not self.is_whole:
            self._connection.go_on()
            self._arrived.clear()
            await self._arrived.wait()
            if self._is_broken:
                raise DisconnectedError
            if len(self._content) > bytes_max:
                raise BodyTooLargeError
        if len(self._content) > bytes_max:
            raise BodyTooLargeError
        return bytes(self._content)


Handler = Callable[[Incoming], Awaitable[Response]]


class Connection(asyncio.Protocol):
    """One client. `everybody` are all connections of the server, this one among them."""

    def __init__(self, handler: Handler, everybody: set["Connection"]) -> None:
        self._handler = handler
        self._everybody = everybody
        self._parser = httptools.HttpRequestParser(self)
        self._head_bytes = 0
        self._target = b""
        self._headers: CIMultiDict[str] = CIMultiDict()
        self._reading: Incoming | None = None
        self._line: deque[Incoming] = deque()
        self._next = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_streaming = False
        # Closing: nothing is answered but what has begun. Deaf: nothing is even looked at.
        self._is_closing = False
        self._is_deaf = False
        self._refusal = 0
        self.is_lost = False
        self.certificate: Mapping[str, object] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are what asyncio's are, and do not say so.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=STREAM_BUFFER_BYTES_MAX)
        self.certificate = transport.get_extra_info("peercert") or {}
        self._everybody.add(self)
        self._loop = asyncio.get_running_loop()
        self._idle = self._loop.call_later(IDLE_SECONDS_MAX, self._cut)
        self._work = self._loop.create_task(self._work_off(), name="connection")

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        self._idle.cancel()
        self._everybody.discard(self)
        self._writable.set()
        self._work.cancel()
        # The parser refers to this. The buffers of TLS are large, and the collector of cycles
        # counts objects, not bytes: it would come when a thousand connections wait for it.
        del self._parser
        self._reading = None

    def data_received(self, data: bytes) -> None:
        if self._reading is None:
            if self._is_closing:
                return
            self._head_bytes += len(data)
        if not self._is_deaf:
            self._parse(data)
        if self._reading is None and self._head_bytes > HEADER_BYTES_MAX:
            self._refuse(431)

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Nothing here is anything but HTTP; the request is answered, and that is the end.
            self._is_closing = True
        except httptools.HttpParserError:
            if self._reading is not None or not self._is_closing:
                self._refuse(400)

    def on_url(self, part: bytes) -> None:
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.add(name.decode("latin-1"), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        incoming = self._reading = Incoming(self, self._headers)
        incoming.method = self._parser.get_method().decode("latin-1")
        incoming.target = self._target
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
            self._reading.arrive(content)

    def on_message_complete(self) -> None:
        assert self._reading is not None, "a message has ended that did not begin"
        self._reading.complete()
        self._reading = None
        self._head_bytes = 0
        self._target, self._headers = b"", CIMultiDict()
        if len(self._line) >= _IN_LINE_MAX:
            self.hold_back()

    def hold_back(self) -> None:
        """Takes no more from the client for now."""
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def go_on(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def invite(self) -> None:
        """Tells a client that waits for it to send its body."""
        self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def stop(self) -> None:
        """Ends a stream at once, a request when it is answered, and an idle connection now."""
        self._is_closing = True
        if self._is_streaming:
            self._work.cancel()
        elif not self._line:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    async def ended(self) -> None:
        """Returns when nothing more is done for the client."""
        await asyncio.wait([self._work])

    def _cut(self) -> None:
        self._transport.abort()

    def _refuse(self, status: int) -> None:
        """What follows cannot be understood; this is the last that is answered."""
        self._is_closing = self._is_deaf = True
        self._refusal = status
        self._next.set()
        if self._reading is not None:
            self._reading.give_up()

    async def _work_off(self) -> None:
        try:
            await self._answer_all()
        except asyncio.CancelledError:
            # Of a client that has gone, nothing is left to tell; a task that was cancelled would
            # keep the frames it was cancelled in, and they this connection.
            if not self.is_lost:
                raise
        except Exception:
            # A bug; it costs this client its connection, and must be seen.
            log.exception("a connection ended")
            self._transport.abort()
        finally:
            self._line.clear()

    async def _answer_all(self) -> None:
        with contextlib.suppress(DisconnectedError):
            while await self._has_next():
                await self._answer(self._line[0])
                self._line.popleft()
                if self._is_closing and not self._line:
                    break
                self.go_on()
        if self._refusal and not self._transport.is_closing():
            self._transport.write(_bare(self._refusal))
        await self._part()

    async def _part(self) -> None:
        """Closes; a client that is still sending is heard out a while, or it would miss the end."""
        if self._reading is not None or self._refusal:
            self._is_deaf = True
            self.go_on()
            await asyncio.sleep(LINGER_SECONDS)
        # TLS gives a client little time from the close on, and the last answer may take more.
        self._transport.set_write_buffer_limits(high=1, low=0)
        with contextlib.suppress(DisconnectedError):
            await self._drained()
        self._transport.close()

    async def _has_next(self) -> bool:
        """Whether there is another request to answer; waits for one, or for the end."""
        if not self._line and not self._refusal:
            # The one that counts from the beginning of the connection, if it is the first time.
            self._idle.cancel()
            self._idle = self._loop.call_later(IDLE_SECONDS_MAX, self._cut)
            self._next.clear()
            await self._next.wait()
            self._idle.cancel()
        return bool(self._line) and not self._refusal

    async def _answer(self, incoming: Incoming) -> None:
        response = await self._handler(incoming)
        if not incoming.is_whole:
            # What is left of the body is not wanted, and would be read as the next request.
            self._is_closing = True
        head = _head(response, closes=self._is_closing)
        if isinstance(response.body, bytes):
            await self._write_plain(head, response, incoming.method)
        else:
            await self._write_stream(head, response.body)

    async def _write_plain(self, head: bytes, response: Response, method: str) -> None:
        body = response.body
        assert isinstance(body, bytes), "streams are written elsewhere"
        if response.status in _BODILESS:
            self._transport.write(head + b"\r\n")
            return
        head += b"Content-Length: %d\r\n\r\n" % len(body)
        if method == "HEAD":
            body = b""
        if len(body) <= STREAM_BUFFER_BYTES_MAX:
            self._transport.write(head + body)
            await self._drained()
            return
        self._transport.write(head)
        view = memoryview(body)
        for start in range(0, len(body), STREAM_BUFFER_BYTES_MAX):
            self._transport.write(view[start : start + STREAM_BUFFER_BYTES_MAX])
            await self._drained()

    async def _write_stream(self, head: bytes, body: Stream) -> None:
        """Chunk by chunk, each as soon as it is there."""
        self._transport.write(head + b"Transfer-Encoding: chunked\r\n\r\n")
        self._is_streaming = True
        try:
            async for chunk in body:
                if chunk and isinstance(chunk, bytes):
                    self._transport.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                    await self._drained()
        except asyncio.CancelledError:
            if self.is_lost or not self._is_closing:
                raise
            # The server stops: the client is told that this is the end.
            self._work.uncancel()
        finally:
            self._is_streaming = False
            await body.aclose()
        self._transport.write(b"0\r\n\r\n")

    async def _drained(self) -> None:
        """Returns when the client has read enough; cuts one that does not."""
        if self.is_lost:
            raise DisconnectedError
        if self._writable.is_set():
            return
        try:
            async with asyncio.timeout(CHUNK_SECONDS_MAX):
                await self._writable.wait()
        except TimeoutError:
            self._cut()
            raise DisconnectedError from None


def _head(response: Response, *, closes: bool) -> bytes:
    lines = [_status_line(response.status)]
    lines += (f"{name}: {value}" for name, value in response.headers)
    lines.append(f"date: {_date(int(time.time()))}")
    if closes:
        lines.append("connection: close")
    return "\r\n".join([*lines, ""]).encode("latin-1", "replace")


@lru_cache(maxsize=64)
def _status_line(status: int) -> str:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    """As HTTP has it, whatever the language of the machine."""
    year, month, day, hour, minute, past, weekday, *_ = time.gmtime(second)
    date = f"{_DAYS[weekday]}, {day:02} {_MONTHS[month - 1]} {year}"
    return f"{date} {hour:02}:{minute:02}:{past:02} GMT"


def _bare(status: int) -> bytes:
    text = f"{status} {HTTPStatus(status).phrase}"
    lines = (
        f"HTTP/1.1 {text}",
        "content-type: text/plain; charset=utf-8",
        f"content-length: {len(text)}",
        "connection: close",
    )
    return "\r\n".join([*lines, "", text]).encode()
