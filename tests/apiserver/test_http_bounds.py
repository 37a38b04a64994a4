"""
Anonymous and slow clients of the HTTP server take no place, and little memory.

The API server behind it is a fake; connections are real, over loopback, without TLS.
"""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.apiserver.http_serving import (
    OK,
    FakeServer,
    answer,
    exchange,
    get,
    head,
    post,
    reason,
    serving,
)
from tests.apiserver.http_serving import run as run

from dryrack.apiserver.answer.status import StatusError
from dryrack.apiserver.http import connections
from dryrack.apiserver.http.concurrency_limit import BodyMemory, FlowLimits
from dryrack.apiserver.http.connections import Connection
from dryrack.base.limits import HEADER_BYTES_MAX, HEADERS_MAX

if TYPE_CHECKING:
    from tests.apiserver.http_serving import Run

    from dryrack.client.transport import Request, Response

CHUNKED = b"POST /api HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
CLIENT_SECONDS_MAX = 10.0


@pytest.mark.parametrize("path", ["/healthz", "/readyz/ping", "/api/v1/namespaces"])
def test_clients_that_send_no_body_lock_nobody_out(run: Run, path: str) -> None:
    """A request whose body does not come takes no place of the concurrency limit."""
    lines = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n".encode()

    async def scenario() -> None:
        async with serving(FakeServer(), FlowLimits(2, 1, 0.5)) as port:
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(6)]
            for _, writer in silent:
                writer.write(lines)
                await writer.drain()
            for _ in range(4):
                assert (await exchange(port, get("/api")))[0] == 200
            for _, writer in silent:
                writer.close()

    run(scenario)


def test_a_health_page_is_answered_without_the_body_of_its_request(run: Run) -> None:
    """The answer comes at once, and the connection ends because the body is still on the way."""
    fake = FakeServer()

    async def scenario() -> None:
        async with serving(fake) as port:
            lines = b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
            status, headers, _ = await exchange(port, lines)
            assert (status, headers["connection"]) == (200, "close")

    run(scenario)
    assert [asked.body for asked in fake.asked] == [b""]


def test_health_pages_answer_while_every_place_is_taken(run: Run) -> None:
    """A probe does not wait for requests that wait for something else."""
    held = asyncio.Event()
    begun = asyncio.Event()

    async def wait(request: Request) -> Response:
        if request.path == "/healthz":
            return OK
        begun.set()
        await held.wait()
        return OK

    async def scenario() -> None:
        async with serving(FakeServer(wait), FlowLimits(1, 0, 0.1)) as port:
            first = asyncio.create_task(exchange(port, get("/api")))
            await begun.wait()
            assert (await exchange(port, get("/healthz")))[0] == 200
            held.set()
            assert (await first)[0] == 200

    run(scenario)


class Arriving:
    """A body on the way; remembers why it was refused."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def give_up(self, error: Exception) -> None:
        self.error = error


def test_the_oldest_unfinished_body_makes_room_for_others() -> None:
    """A slow client is refused with 429; what is complete stays; the newest is last to go."""
    memory = BodyMemory(bytes_max=100)
    bodies = [Arriving() for _ in range(4)]
    with (
        memory.hold(bodies[0]) as whole,
        memory.hold(bodies[1]) as slow,
        memory.hold(bodies[2]) as other,
        memory.hold(bodies[3]) as large,
    ):
        whole.grow(40)
        whole.complete()
        slow.grow(40)
        other.grow(20)
        large.grow(10)
        refused = bodies[1].error
        assert isinstance(refused, StatusError)
        assert refused.status.code == 429
        assert (bodies[0].error, bodies[2].error) == (None, None)
        with pytest.raises(StatusError):
            large.grow(70)
        assert bodies[2].error is not None
    with memory.hold(Arriving()) as alone:
        alone.grow(100)


def test_a_slow_body_is_refused_when_bodies_take_too_much(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client is asked to retry later, and the others are served."""
    monkeypatch.setattr(BodyMemory.__init__, "__defaults__", (3000,))

    async def scenario() -> None:
        async with serving(FakeServer()) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(CHUNKED + b"7d0\r\n" + b"x" * 2000 + b"\r\n")
            await writer.drain()
            for _ in range(3):
                assert (await exchange(port, post("/api", b"x" * 2500)))[0] == 200
            status, _, body = await answer(reader)
            assert (status, reason(body)) == (429, "TooManyRequests")
            writer.close()

    run(scenario)


@pytest.mark.parametrize("name", ["Authorization", "Impersonate-User", "Content-Type"])
def test_trailers_are_no_headers(run: Run, name: str) -> None:
    """Trailers cannot change the user or any other header."""
    fake = FakeServer()

    async def scenario() -> None:
        async with serving(fake) as port:
            # The server looks at the headers after the trailer has arrived, and before.
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(CHUNKED + b"2\r\n{}\r\n0\r\n" + f"{name}: root\r\n\r\n".encode())
            assert (await answer(reader))[0] == 200
            writer.write(CHUNKED.removesuffix(b"\r\n") + b"Expect: 100-continue\r\n\r\n")
            assert (await head(reader))[0] == 100
            writer.write(b"2\r\n{}\r\n0\r\n" + f"{name}: root\r\n\r\n".encode())
            assert (await answer(reader))[0] == 200
            writer.write(get("/after"))
            assert (await answer(reader))[0] == 200
            writer.close()

    run(scenario)
    assert [asked.body for asked in fake.asked] == [b"{}", b"{}", b""]
    assert all(name.lower() not in asked.headers for asked in fake.asked)


TRAILER = b"x: " + b"y" * 200 + b"\r\n"
FLOODS = {
    "trailers": (CHUNKED + b"2\r\n{}\r\n0\r\n", TRAILER * 300),
    "tiny trailers": (CHUNKED + b"0\r\n", b"a:\r\n" * 10_000),
    "one endless trailer": (CHUNKED + b"0\r\nx: ", b"y" * 60_000),
    "an endless chunk extension": (CHUNKED + b"1;x=", b"y" * 60_000),
    "tiny headers": (b"GET / HTTP/1.1\r\n", b"a:\r\n" * 10_000),
    "an endless header": (b"GET / HTTP/1.1\r\nx: ", b"y" * 60_000),
    "an endless path": (b"GET /", b"y" * 60_000),
    "empty lines": (b"", b"\r\n" * 30_000),
}


async def _flood(connection: Connection, wire: _Wire, begin: bytes, more: bytes) -> int:
    """Send without end, as far as the server reads; the number of bytes that it took."""
    sent = len(begin)
    connection.data_received(begin)
    for _ in range(100):
        await asyncio.sleep(0)
        if wire.written or wire.is_paused:
            break
        connection.data_received(more)
        sent += len(more)
    return sent


class _Wire(asyncio.Transport):
    """A client whose sending the server can pause."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_paused = self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        return


@pytest.mark.parametrize("kind", FLOODS)
async def test_what_is_no_content_is_refused_before_it_takes_memory(kind: str) -> None:
    """Headers, trailers and chunk extensions without end are refused with 431, and not kept."""
    begin, more = FLOODS[kind]

    async def never_read(incoming: connections.Incoming) -> Response:
        await incoming.body(1024)
        raise AssertionError

    connection = Connection(never_read, set())
    wire = _Wire()
    connection.connection_made(wire)
    tracemalloc.start()
    try:
        sent = await _flood(connection, wire, begin, more)
        for _ in range(3):
            await asyncio.sleep(0)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert wire.written.startswith(b"HTTP/1.1 431")
    assert sent < 4 * HEADER_BYTES_MAX
    # Each header may cost some 200 bytes beside its text.
    assert kept < 3 * HEADER_BYTES_MAX + HEADERS_MAX * 300
    connection.connection_lost(None)
    await connection.wait_ended()


async def test_a_client_that_sends_many_requests_ahead_fills_no_memory() -> None:
    """Requests are parsed a few at a time; the rest waits as it was sent, or at the client."""
    gate = asyncio.Event()
    content = b"GET / HTTP/1.1\r\n\r\n" * 14_000

    async def wait(incoming: connections.Incoming) -> Response:
        await gate.wait()
        return OK

    connection = Connection(wait, set())
    wire = _Wire()
    connection.connection_made(wire)
    tracemalloc.start()
    try:
        connection.data_received(content)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    was_paused = wire.is_paused
    assert was_paused
    assert kept < 2 * len(content)
    gate.set()
    for _ in range(100_000):
        await asyncio.sleep(0)
        if not wire.is_paused:
            break
    assert wire.written.count(b"HTTP/1.1 200") == 14_000
    connection.connection_lost(None)
    await connection.wait_ended()


def test_strangers_who_open_all_connections_lock_nobody_out(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new connection takes the place of one whose client has not proven who it is."""
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 5)

    async def scenario() -> None:
        async with serving(FakeServer()) as port:
            known = await asyncio.open_connection("127.0.0.1", port)
            known[1].write(get("/api"))
            assert (await head(known[0]))[0] == 200
            strangers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(10)]
            assert (await exchange(port, get("/api")))[0] == 200
            # The first stranger has made room; the client that is known stays.
            assert await asyncio.wait_for(_ended(strangers[0][0]), CLIENT_SECONDS_MAX)
            await known[0].readexactly(2)
            known[1].write(get("/api"))
            assert (await head(known[0]))[0] == 200
            for _, writer in (known, *strangers):
                writer.close()

    run(scenario)


async def _ended(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


def test_answers_that_are_not_taken_share_one_bound(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that does not read its list loses its connection when others need memory."""
    size = 20 * 1024 * 1024
    monkeypatch.setattr(connections, "ANSWERS_BYTES_MAX", 2 * size)
    body = b"x" * size

    async def large(request: Request) -> Response:
        return msgspec.structs.replace(OK, body=body)

    async def scenario() -> None:
        async with serving(FakeServer(large)) as port:
            idle = []
            for _ in range(2):
                client = await asyncio.open_connection("127.0.0.1", port, limit=1024)
                client[1].write(get("/api"))
                assert (await head(client[0]))[0] == 200
                idle.append(client)
            assert (await exchange(port, get("/api")))[2] == body
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await idle[0][0].readexactly(size)
            assert len(await idle[1][0].readexactly(size)) == size
            for _, writer in idle:
                writer.close()

    run(scenario)
