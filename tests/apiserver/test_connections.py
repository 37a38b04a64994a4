"""Any bytes on a connection, in any pieces, lead to an answer or an end, never to an error."""

from __future__ import annotations

import asyncio
import logging
import unittest.mock
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from dryrack.apiserver.http import connections
from dryrack.apiserver.http.connections import Connection, Incoming
from dryrack.base.limits import IDLE_SECONDS_MAX
from dryrack.client.transport import Response

if TYPE_CHECKING:
    from collections.abc import Callable

_PIECES = st.sampled_from(
    [
        *(
            b"GET / HTTP/1.1\r\n",
            b"POST /x HTTP/1.1\r\n",
            b"GET / HTTP/1.0\r\n",
            b"PRI * HTTP/2.0\r\n",
        ),
        *(b"Host: x\r\n", b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n"),
        *(b"Connection: close\r\n", b"Connection: Upgrade\r\nUpgrade: websocket\r\n"),
        *(b"Expect: 100-continue\r\n", b"Content-Length: -1\r\n", b"\r\n", b"abc", b"3\r\nabc\r\n"),
        *(b"0\r\n\r\n", b"\x00", b"\xff" * 9, b": \r\n", b"zz\r\n"),
    ]
)


class Wire(asyncio.Transport):
    """A client that takes everything, and remembers the answers."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        return

    def resume_reading(self) -> None:
        return

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        return


class SlowWire(Wire):
    """A client that has not taken its last answer yet."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.connection = connection

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is not None and len(self.written) >= high:
            self.connection.pause_writing()


class Bugs(logging.Handler):
    """Return the log of a connection about its own errors."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(self.format(record))


async def _read_and_answer(incoming: Incoming) -> Response:
    body = await incoming.body(1024) if incoming.has_body else b""
    return Response(200, (), body)


@given(st.lists(st.one_of(_PIECES, st.binary(max_size=20)), max_size=12))
def test_any_bytes_in_any_pieces_are_answered_or_end_the_connection(pieces: list[bytes]) -> None:
    """No exception escapes, and all that is written is whole answers."""

    async def scenario() -> bytes:
        everybody: set[Connection] = set()
        connection = Connection(_read_and_answer, everybody)
        wire = Wire()
        connection.connection_made(wire)
        for piece in pieces:
            if not wire.is_closed:
                connection.data_received(piece)
            await asyncio.sleep(0)
        connection.connection_lost(None)
        await connection.wait_ended()
        assert everybody == set()
        return bytes(wire.written)

    bugs = Bugs()
    connections.log.addHandler(bugs)
    try:
        written = asyncio.run(scenario())
    finally:
        connections.log.removeHandler(bugs)
    assert bugs.told == []
    assert written == b"" or written.startswith(b"HTTP/1.1 ")
    assert written.count(b"HTTP/1.1 400") <= 1


async def test_the_last_answer_is_taken_before_the_connection_is_closed() -> None:
    """Closing starts a short time limit under TLS; a slow client is not held to it before."""
    connection = Connection(_read_and_answer, set())
    wire = SlowWire(connection)
    connection.connection_made(wire)
    connection.data_received(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
    for _ in range(5):
        await asyncio.sleep(0)
    assert wire.written.startswith(b"HTTP/1.1 200")
    was_closed = wire.is_closed
    connection.resume_writing()
    await connection.wait_ended()
    assert (was_closed, wire.is_closed) == (False, True)
    connection.connection_lost(None)


def test_answers_keep_their_order_whatever_the_pieces() -> None:
    """Requests that are cut anywhere are the same requests."""
    content = b"POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\n\r\n"

    async def scenario(cut: int) -> bytes:
        connection = Connection(_read_and_answer, set())
        wire = Wire()
        connection.connection_made(wire)
        for piece in (content[:cut], content[cut:]):
            if piece:
                connection.data_received(piece)
            for _ in range(5):
                await asyncio.sleep(0)
        connection.connection_lost(None)
        await connection.wait_ended()
        return bytes(wire.written)

    for cut in range(len(content)):
        written = asyncio.run(scenario(cut))
        assert written.count(b"HTTP/1.1 200 OK") == 2
        assert b"\r\n\r\nabcHTTP/1.1" in written


def test_a_connection_that_is_used_is_not_idle() -> None:
    """Time counts from the last answer; a connection can be as old as it likes."""

    async def scenario() -> list[float]:
        connection = Connection(_read_and_answer, set())
        wire = Wire()
        loop = asyncio.get_running_loop()
        ends: list[float] = []

        def later(seconds: float, cut: Callable[[], None]) -> asyncio.TimerHandle:
            handle = loop.call_at(loop.time() + 3600, cut)
            due.append((handle, seconds))
            return handle

        due: list[tuple[asyncio.TimerHandle, float]] = []
        with unittest.mock.patch.object(loop, "call_later", later):
            connection.connection_made(wire)
            await asyncio.sleep(0)
            for _ in range(3):
                connection.data_received(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                ends = [seconds for handle, seconds in due if not handle.cancelled()]
        connection.connection_lost(None)
        await connection.wait_ended()
        return ends

    assert asyncio.run(scenario()) == [IDLE_SECONDS_MAX]
