"""
The HTTP server: accepted requests, refusals, and shutdown.

The API server behind it is a fake that answers what a test tells it to; connections are real,
over loopback, without TLS except where that is the point.
"""

from __future__ import annotations

import asyncio
import gc
import ssl
import time
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import pytest
from tests.apiserver.http_serving import (
    OK,
    EndlessStream,
    FakeServer,
    OpenDoor,
    SilentStream,
    answer,
    exchange,
    get,
    head,
    post,
    reason,
    serving,
)
from tests.apiserver.http_serving import run as run

from dryrack.apiserver.http import connections, https_server
from dryrack.apiserver.http.concurrency_limit import Flow, FlowLimits
from dryrack.apiserver.http.connections import Connection
from dryrack.apiserver.http.https_server import HttpServer
from dryrack.base.limits import REQUEST_BODY_BYTES_MAX
from dryrack.client.transport import ADMIN, Request, Response
from dryrack.cluster import certificates
from dryrack.cluster.process.serving import Address, listen, tls_context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.apiserver.http_serving import Run


def test_a_request_arrives_as_it_was_sent(run: Run) -> None:
    """Path and query stay encoded, header names are lower case, repeated ones are joined."""
    fake = FakeServer()

    async def scenario() -> None:
        async with serving(fake) as port:
            sent = post("/api/v1/a%2Fb?x=%20&x=2", b"{}", "Accept: a", "accept: b")
            status, _, body = await exchange(port, sent)
            assert (status, body) == (200, b"{}")

    run(scenario)
    (asked,) = fake.asked
    assert (asked.method, asked.path, asked.query) == ("POST", "/api/v1/a%2Fb", "x=%20&x=2")
    assert (asked.headers["accept"], asked.body, asked.user) == ("a,b", b"{}", ADMIN)


def test_strangers_get_a_status_and_nothing_reaches_the_server(run: Run) -> None:
    """A client that is not authenticated gets the real server's refusal."""
    fake = FakeServer()

    async def scenario() -> None:
        async with serving(fake) as port:
            status, _, body = await exchange(port, get("/api", "X-Stranger: yes"))
            assert (status, reason(body)) == (401, "Unauthorized")

    run(scenario)
    assert fake.asked == []


@pytest.mark.parametrize(
    "content",
    [
        b"rubbish\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32),
        get("/", "Content-Length: many"),
        get("/", "Content-Length: 1", "Content-Length: 2"),
        get("/", "Bad Header: x"),
        b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=[
        *("rubbish", "no path", "no such version", "tls", "length is no number", "two lengths"),
        *("space in a name", "no path at all"),
    ],
)
def test_bad_http_is_a_bad_request(run: Run, content: bytes) -> None:
    """Invalid or too large HTTP is answered with 400, and other clients are served."""
    fake = FakeServer()

    async def scenario() -> None:
        async with serving(fake) as port:
            status, _, _ = await exchange(port, content)
            assert status == 400
            status, _, _ = await exchange(port, get("/healthz"))
            assert status == 200

    run(scenario)
    assert [asked.path for asked in fake.asked] == ["/healthz"]


@pytest.mark.parametrize(
    "content",
    [
        get("/", "X-Long: " + "x" * 110_000),
        get("/" + "x" * 110_000),
        get("/", *(f"X-{number}: {number}" for number in range(10_000))),
        b"GET /" + b"x" * 110_000,
    ],
    ids=["long header", "long path", "many headers", "no end in sight"],
)
def test_too_much_before_the_body_is_refused(run: Run, content: bytes) -> None:
    """Headers have a bound, whether or not they come to an end."""
    fake = FakeServer()

    async def scenario() -> None:
        async with serving(fake) as port:
            status, _, _ = await exchange(port, content)
            assert status == 431

    run(scenario)
    assert fake.asked == []


def test_requests_in_a_row_are_answered_in_order(run: Run) -> None:
    """One connection, many requests sent at once: each gets its own answer, and none is lost."""

    async def echo(request: Request) -> Response:
        await asyncio.sleep(0)
        return Response(200, (), request.path.encode() + request.body)

    async def scenario() -> None:
        async with serving(FakeServer(echo)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"".join(post(f"/{number}", b"!" * number) for number in range(50)))
            for number in range(50):
                assert (await answer(reader))[2] == f"/{number}".encode() + b"!" * number
            writer.close()

    run(scenario)


def test_a_last_request_may_have_a_body(run: Run) -> None:
    """`Connection: close` ends the connection after the answer, not before the body is there."""
    fake = FakeServer()

    async def scenario() -> None:
        async with serving(fake) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            content = post("/", b"x" * 1000, "Connection: close")
            writer.write(content[:-900])
            await asyncio.sleep(0)
            writer.write(content[-900:])
            status, headers, _ = await answer(reader)
            assert (status, headers["connection"]) == (200, "close")
            assert await reader.read() == b""
            writer.close()

    run(scenario)
    assert fake.asked[0].body == b"x" * 1000


def test_who_asks_first_is_told_to_go_on(run: Run) -> None:
    """A client that waits for permission to send its body gets it."""

    async def scenario() -> None:
        async with serving(FakeServer()) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
            assert (await head(reader))[0] == 100
            writer.write(b"{}")
            assert (await answer(reader))[0] == 200
            writer.close()

    run(scenario)


def test_a_body_that_breaks_off_harms_nobody(run: Run) -> None:
    """Chunks that are none are a bad request; a client that goes away is forgotten."""
    fake = FakeServer()

    async def scenario() -> None:
        async with serving(fake) as port:
            lines = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
            assert (await exchange(port, lines + b"zz\r\n"))[0] == 400
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(lines + b"5\r\nab")
            writer.close()
            assert (await exchange(port, get("/")))[0] == 200

    run(scenario)
    assert [asked.method for asked in fake.asked] == ["GET"]


def test_half_a_request_does_not_keep_a_connection(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that does not finish the headers, or never begins, is disconnected."""
    monkeypatch.setattr(connections, "IDLE_SECONDS_MAX", 0.02)

    async def scenario() -> None:
        async with serving(FakeServer()) as port:
            for content in (b"", b"GET / HTTP/1.1\r\nHost:"):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(content)
                assert await _all(reader) == b""
                writer.close()

    run(scenario)


async def _all(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


def test_a_large_answer_arrives_whole(run: Run) -> None:
    """Lists of many megabytes go out piece by piece; a HEAD gets their length alone."""
    body = bytes(range(256)) * 20_000

    async def large(request: Request) -> Response:
        return Response(200, (), body)

    async def scenario() -> None:
        async with serving(FakeServer(large)) as port:
            assert (await exchange(port, get("/")))[2] == body
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(get("/").replace(b"GET", b"HEAD") + get("/"))
            assert (await head(reader))[1]["content-length"] == str(len(body))
            assert (await head(reader))[0] == 200
            writer.close()

    run(scenario)


def test_a_body_that_says_it_is_too_large_is_not_read(run: Run) -> None:
    """413 comes before the body does, and the connection ends."""

    async def scenario() -> None:
        async with serving(FakeServer()) as port:
            lines = f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {REQUEST_BODY_BYTES_MAX + 1}"
            status, headers, body = await exchange(port, f"{lines}\r\n\r\n".encode())
            assert (status, reason(body)) == (413, "RequestEntityTooLarge")
            assert headers["connection"] == "close"

    run(scenario)


def test_a_body_that_turns_out_too_large_is_refused(run: Run) -> None:
    """A chunked body has no length to refuse it by; it is refused when it has grown too large."""

    async def scenario() -> None:
        async with serving(FakeServer()) as port:
            chunk = b"%x\r\n" % 65536 + b"x" * 65536 + b"\r\n"
            lines = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            sent = lines + chunk * (REQUEST_BODY_BYTES_MAX // 65536 + 1) + b"0\r\n\r\n"
            status, _, body = await exchange(port, sent)
            assert (status, reason(body)) == (413, "RequestEntityTooLarge")

    run(scenario)


def test_a_bug_of_the_server_is_one_answer(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """An exception becomes 500 with a Status, is logged, and the next request is served."""

    async def broken(request: Request) -> Response:
        if request.path == "/broken":
            raise KeyError("a bug")
        return OK

    async def scenario() -> None:
        async with serving(FakeServer(broken)) as port:
            status, _, body = await exchange(port, get("/broken"))
            assert (status, reason(body)) == (500, "InternalError")
            assert (await exchange(port, get("/whole")))[0] == 200

    run(scenario)
    assert "no answer to GET /broken" in caplog.text


def test_a_flood_waits_and_then_is_told_to_come_later(run: Run) -> None:
    """So many at work, so many in line; the others get 429 with Retry-After at once."""
    gate = asyncio.Event()
    both = asyncio.Barrier(3)

    async def held(request: Request) -> Response:
        if not gate.is_set():
            await both.wait()
        await gate.wait()
        return OK

    async def scenario() -> None:
        fake = FakeServer(held)
        async with serving(fake, FlowLimits(2, 3, 30.0)) as port:
            waiting = [asyncio.create_task(exchange(port, get("/"))) for _ in range(5)]
            await both.wait()
            status, headers, body = await _refused(port)
            assert (status, reason(body), headers["retry-after"]) == (429, "TooManyRequests", "1")
            assert len(fake.asked) == 2
            gate.set()
            assert [status for status, _, _ in await asyncio.gather(*waiting)] == [200] * 5

    run(scenario)


async def _refused(port: int) -> tuple[int, dict[str, str], bytes]:
    """The first answer that comes while all places are taken."""
    asking = [asyncio.create_task(exchange(port, get("/"))) for _ in range(4)]
    done, rest = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    return done.pop().result()


def test_who_waits_too_long_is_told_to_come_later(run: Run) -> None:
    """A place that does not come free in time is a 429, too."""

    async def held(request: Request) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    async def scenario() -> None:
        async with serving(FakeServer(held), FlowLimits(1, 1, 0.01)) as port:
            first = asyncio.create_task(exchange(port, get("/")))
            status, _, _ = await _refused(port)
            assert status == 429
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)

    run(scenario)


def test_streams_go_out_chunk_by_chunk_and_hold_no_place(run: Run) -> None:
    """The first event is there while the stream goes on, and others are served meanwhile."""

    async def watch(request: Request) -> Response:
        if request.path == "/watch":
            return Response(200, (("content-type", "application/json"),), SilentStream())
        return OK

    async def scenario() -> None:
        async with serving(FakeServer(watch), FlowLimits(1, 1, 1.0)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(get("/watch"))
            assert (await head(reader))[1]["transfer-encoding"] == "chunked"
            assert await reader.readuntil(b"first\n\r\n") == b"6\r\nfirst\n\r\n"
            assert (await exchange(port, get("/")))[0] == 200
            writer.close()

    run(scenario)


def test_a_stream_ends_with_its_reader(run: Run) -> None:
    """When the client goes away, the stream is closed, also one on which nothing happens."""
    stream = SilentStream()

    async def watch(request: Request) -> Response:
        return Response(200, (), stream)

    async def scenario() -> None:
        async with serving(FakeServer(watch)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(get("/"))
            await reader.readuntil(b"first\n")
            writer.close()
            await asyncio.wait_for(stream.closed.wait(), 5)

    run(scenario)


def test_who_does_not_read_is_cut(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that stops gets no more than the buffers hold, and then no connection."""
    monkeypatch.setattr(connections, "CHUNK_SECONDS_MAX", 0.05)
    stream = EndlessStream()

    async def watch(request: Request) -> Response:
        return Response(200, (), stream)

    async def scenario() -> None:
        async with serving(FakeServer(watch)) as port:
            # Nobody takes anything from the reader, so it stops when it holds twice its limit.
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            writer.write(get("/"))
            await asyncio.wait_for(stream.closed.wait(), 10)
            writer.close()

    run(scenario)
    assert stream.read * len(stream.chunk) < 32 * 1024 * 1024


def test_stopping_ends_watches_with_an_end(run: Run) -> None:
    """A watch that the stop of the server cuts is ended as HTTP ends a stream."""
    stream = SilentStream()

    async def watch(request: Request) -> Response:
        return Response(200, (), stream)

    async def scenario() -> None:
        listening = listen(Address())
        server = HttpServer(FakeServer(watch), OpenDoor(), Flow())
        await server.start(listening, None)
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        writer.write(get("/"))
        await reader.readuntil(b"first\n\r\n")
        await server.stop()
        assert await reader.read() == b"0\r\n\r\n"
        writer.close()

    run(scenario)
    assert stream.closed.is_set()


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """As the plane shows itself."""
    keys = certificates.ensure(tmp_path_factory.mktemp("keys"), ["127.0.0.1"], time.time())
    return tls_context(keys)


@contextmanager
def without_collector() -> Iterator[None]:
    """Closed connections leave no reference cycles."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def none_is_kept() -> None:
    """Returns once the last connection is gone; raises if that does not happen."""
    async with asyncio.timeout(5):
        while kept := [each for each in gc.get_objects() if isinstance(each, Connection)]:
            gone = asyncio.Event()
            weakref.finalize(kept.pop(), gone.set)
            kept.clear()
            await gone.wait()


async def connected(port: int, content: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    stranger.check_hostname = False
    stranger.verify_mode = ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=stranger)
    writer.write(content)
    return reader, writer


UPGRADE = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")


@pytest.mark.parametrize(
    "content",
    [
        get("/exec", *UPGRADE),
        post("/exec", b"", "Connection: Upgrade", "Upgrade: SPDY/3.1"),
        get("/"),
        get("/stream"),
        get("/stream", *UPGRADE, "Sec-WebSocket-Key: x", "Origin: /"),
        get("/stuck"),
        post("/", b"x" * 9)[:-3],
        b"GET /half",
    ],
    ids=[
        *("no websocket", "SPDY", "kept alive", "in a stream", "in a websocket", "no answer"),
        *("half a body", "half"),
    ],
)
def test_a_connection_leaves_nothing_for_the_collector_of_cycles(
    run: Run, tls: ssl.SSLContext, content: bytes
) -> None:
    """
    However a client ends, its connection is gone at once, with the buffers of TLS.

    The collector of cycles counts objects. For it a thousand closed connections are little, for
    the memory of the process they are 50 MB.
    """

    stuck = asyncio.Semaphore(0)

    async def answered(request: Request) -> Response:
        if request.path == "/stuck":
            stuck.release()
            await asyncio.Event().wait()
        return Response(200, (), SilentStream()) if request.path == "/stream" else OK

    async def scenario() -> None:
        async with serving(FakeServer(answered), tls=tls) as port:
            for _ in range(3):
                reader, writer = await connected(port, content)
                if b"stuck" in content:
                    await stuck.acquire()
                elif content.endswith((b"\r\n\r\n", b"{}")):
                    await head(reader)
                writer.close()
            await none_is_kept()

    with without_collector():
        run(scenario)


def test_a_client_that_does_not_say_goodbye_is_not_waited_for(
    run: Run, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the end of the connection, a silent client takes no memory."""
    monkeypatch.setattr(https_server, "_SHUTDOWN_SECONDS_MAX", 0.02)

    async def scenario() -> None:
        async with serving(FakeServer(), tls=tls) as port:
            reader, writer = await connected(port, get("/exec", *UPGRADE))
            await head(reader)
            # The transports of both loops are of both kinds, whatever their types say.
            silent = cast("asyncio.Transport", writer.transport)
            silent.pause_reading()
            await none_is_kept()
            writer.transport.abort()

    with without_collector():
        run(scenario)
