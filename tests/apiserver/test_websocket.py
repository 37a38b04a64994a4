"""
Watches over WebSocket, as Java's and JavaScript's clients ask for them.

The client is aiohttp's where a test is about what a client sees, and bytes on a socket where it is
about what a client must not send.
"""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict
from tests.apiserver.http_serving import EndlessStream, FakeServer, OpenDoor, SilentStream, serving
from tests.apiserver.replay import CountingChance
from tests.apiserver.token_world import TokenWorld
from tests.apiserver.websocket_client import (
    ACCEPT,
    HANDSHAKE,
    ORIGIN,
    masked_frame,
    read_frame,
)
from tests.apiserver.whole_plane import WholePlane

from dryrack.apiserver.answer.status import StatusError
from dryrack.apiserver.authentication import Authentication
from dryrack.apiserver.http import connections
from dryrack.apiserver.http.concurrency_limit import Flow
from dryrack.apiserver.http.https_server import HttpServer
from dryrack.apiserver.http.websocket import (
    CloseCode,
    Message,
    MessageReader,
    Opcode,
    WebSocketError,
    frame,
)
from dryrack.base.limits import WEBSOCKET_MESSAGE_BYTES_MAX
from dryrack.client.timekeeping import VirtualClock
from dryrack.client.transport import Request, Response
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.process.serving import Address, listen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

MAPS = "/api/v1/namespaces/default/configmaps"


@asynccontextmanager
async def plane_served(plane: WholePlane) -> AsyncIterator[str]:
    """Serve the API server of a plane on loopback, to anybody."""
    listening = listen(Address())
    server = HttpServer(plane.plane.transport, OpenDoor(), Flow())
    await server.start(listening, None)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        await server.stop()


@asynccontextmanager
async def opened(
    port: int, **changes: str | None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, str]]:
    """Ask for a WebSocket by hand; yield both ends and the head of the answer."""
    headers = HANDSHAKE | {name.replace("_", "-"): value for name, value in changes.items()}
    lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write("\r\n".join(["GET /watch HTTP/1.1", *lines, "", ""]).encode())
        yield reader, writer, (await reader.readuntil(b"\r\n\r\n")).decode()
    finally:
        writer.close()


def watching(stream: Any) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return Response(200, (("content-type", "application/json"),), stream)

    return answer


def configured(name: str, **data: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data}


def test_each_event_of_a_watch_is_a_text_message() -> None:
    """The messages are the lines that the same watch has over plain HTTP."""
    plane = WholePlane()

    async def change() -> None:
        await plane.asked("POST", MAPS, configured("b"))
        await plane.asked("PUT", f"{MAPS}/b", configured("b", color="€" * 30_000))
        await plane.asked("DELETE", f"{MAPS}/a")

    async def scenario() -> tuple[list[str], list[str]]:
        await plane.asked("POST", MAPS, configured("a"))
        async with plane_served(plane) as server, aiohttp.ClientSession(server) as session:
            asked = f"{MAPS}?watch=true&resourceVersion=0"
            async with (
                session.get(asked) as plain,
                session.ws_connect(asked, origin=ORIGIN, max_msg_size=0) as socket,
            ):
                assert socket.protocol is None
                # Both see the object that exists before anything changes.
                messages = [await socket.receive_str()]
                lines = [(await plain.content.readuntil(b"\n")).decode()]
                await change()
                messages += [await socket.receive_str() for _ in range(3)]
                lines += [(await plain.content.readuntil(b"\n")).decode() for _ in range(3)]
        return messages, lines

    messages, lines = asyncio.run(scenario())
    assert messages == lines
    events = [json.loads(each) for each in messages]
    assert [(each["type"], each["object"]["metadata"]["name"]) for each in events] == [
        *(("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a")),
    ]


def test_a_watch_that_ends_closes_the_websocket() -> None:
    """The end of a watch by its time limit is a normal close."""
    clock = VirtualClock()
    plane = WholePlane(ControlPlaneOptions(clock=clock, chance=CountingChance()))

    async def scenario() -> tuple[aiohttp.WSMsgType, int | None]:
        async with (
            plane_served(plane) as server,
            aiohttp.ClientSession(server) as session,
            session.ws_connect(f"{MAPS}?watch=1&timeoutSeconds=5", origin=ORIGIN) as socket,
        ):
            await clock.advance(6)
            return (await socket.receive(timeout=5)).type, socket.close_code

    assert asyncio.run(scenario()) == (aiohttp.WSMsgType.CLOSE, CloseCode.NORMAL)


async def test_a_refused_watch_is_a_status_over_http() -> None:
    """An error before the handshake, or a request that is no watch, is answered without upgrade."""
    plane = WholePlane()

    async with plane_served(plane) as server, aiohttp.ClientSession(server) as session:
        for path, status in (("/api/v1/nothing?watch=1", 404), (MAPS, 200)):
            async with session.get(path, headers=HANDSHAKE) as answer:
                assert (answer.status, answer.headers["connection"]) == (status, "close")
                assert (await answer.json())["kind"] == "Status" if status > 200 else True


@pytest.mark.parametrize(
    ("changes", "status", "header"),
    [
        ({"Sec_WebSocket_Key": None}, 400, ""),
        ({"Sec_WebSocket_Version": "8"}, 400, "sec-websocket-version: 13"),
        ({"Origin": None}, 403, ""),
        ({"Origin": "null"}, 403, ""),
        ({"Origin": "http://["}, 403, ""),
        ({"Sec_WebSocket_Protocol": "a, b"}, 400, ""),
        ({}, 101, f"sec-websocket-accept: {ACCEPT}"),
        ({"Sec_WebSocket_Protocol": "binary.k8s.io"}, 101, "sec-websocket-protocol: binary.k8s.io"),
        ({"Upgrade": "h2c"}, 200, "transfer-encoding: chunked"),
    ],
)
def test_handshakes_are_answered_as_kube_apiserver_answers_them(
    changes: dict[str, str | None], status: int, header: str
) -> None:
    """A refused handshake ends the watch; a request for another protocol is not a handshake."""
    stream = SilentStream()

    async def scenario() -> str:
        async with (
            serving(FakeServer(watching(stream))) as port,
            opened(port, **changes) as (reader, _, head),
        ):
            if status == 101:
                assert await read_frame(reader) == (Opcode.TEXT, b"first\n")
            elif status >= 400:
                await asyncio.wait_for(stream.closed.wait(), 5)
            return head

    head = asyncio.run(scenario())
    assert head.startswith(f"HTTP/1.1 {status} ")
    assert header in head.lower() or header in head


def test_pings_and_fragments_are_understood_in_any_pieces() -> None:
    """A ping is answered in the middle of a split message; data of the client is ignored."""
    sent = b"".join(
        (
            masked_frame(Opcode.TEXT, b"to be", is_final=False),
            masked_frame(Opcode.PING, b"here?"),
            masked_frame(Opcode.CONTINUATION, b"", is_final=False),
            masked_frame(Opcode.CONTINUATION, b" ignored"),
            masked_frame(Opcode.PONG, b""),
            masked_frame(Opcode.BINARY, bytes(40_000)),
            masked_frame(Opcode.PING, b""),
            masked_frame(Opcode.CLOSE, (4321).to_bytes(2) + b"enough"),
        )
    )
    cuts = (0, 1, 2, 6, 7, 12, 13, 20, 40, 45, 50, len(sent) - 1)

    async def scenario(cut: int) -> list[Message]:
        stream = SilentStream()
        async with (
            serving(FakeServer(watching(stream))) as port,
            opened(port) as (reader, writer, _),
        ):
            messages = [await read_frame(reader)]
            writer.write(sent[:cut])
            await asyncio.sleep(0)
            writer.write(sent[cut:])
            messages += [await read_frame(reader) for _ in range(3)]
            assert await reader.read() == b"", "the server ends the connection"
            await asyncio.wait_for(stream.closed.wait(), 5)
        return messages

    for cut in cuts:
        assert asyncio.run(scenario(cut)) == [
            (Opcode.TEXT, b"first\n"),
            (Opcode.PONG, b"here?"),
            (Opcode.PONG, b""),
            (Opcode.CLOSE, (4321).to_bytes(2)),
        ]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\x81\x05hello", CloseCode.PROTOCOL_ERROR),
        (masked_frame(0x43, b""), CloseCode.PROTOCOL_ERROR),
        (masked_frame(Opcode.TEXT | 0x40, b"x"), CloseCode.PROTOCOL_ERROR),
        (masked_frame(3, b"x"), CloseCode.PROTOCOL_ERROR),
        (masked_frame(Opcode.CONTINUATION, b"x"), CloseCode.PROTOCOL_ERROR),
        (masked_frame(Opcode.TEXT, b"x", is_final=False) * 2, CloseCode.PROTOCOL_ERROR),
        (masked_frame(Opcode.PING, b"x", is_final=False), CloseCode.PROTOCOL_ERROR),
        (masked_frame(Opcode.PING, b"x" * 126), CloseCode.PROTOCOL_ERROR),
        (masked_frame(Opcode.CLOSE, b"x"), CloseCode.PROTOCOL_ERROR),
        (masked_frame(Opcode.CLOSE, (1005).to_bytes(2)), CloseCode.PROTOCOL_ERROR),
        (masked_frame(Opcode.TEXT, b"\xff"), CloseCode.INVALID_PAYLOAD),
        (b"\x82\xff" + (1 << 62).to_bytes(8), CloseCode.TOO_LARGE),
        (b"\x82\xff" + (WEBSOCKET_MESSAGE_BYTES_MAX + 1).to_bytes(8), CloseCode.TOO_LARGE),
        (
            masked_frame(Opcode.BINARY, bytes(40_000), is_final=False)
            + masked_frame(Opcode.CONTINUATION, bytes(40_000)),
            CloseCode.TOO_LARGE,
        ),
    ],
    ids=[
        *("no mask", "reserved opcode", "extension", "opcode 3", "continuation of nothing"),
        *("two beginnings", "split ping", "long ping", "half a code", "reserved code"),
        *("not UTF-8", "huge frame", "large frame", "large message"),
    ],
)
def test_a_client_that_breaks_the_protocol_is_told_why(content: bytes, code: CloseCode) -> None:
    """The connection and the watch end with the code of the RFC, before a large frame arrives."""
    stream = SilentStream()

    async def scenario() -> Message:
        async with (
            serving(FakeServer(watching(stream))) as port,
            opened(port) as (reader, writer, _),
        ):
            await read_frame(reader)
            writer.write(content)
            message = await read_frame(reader)
            assert await reader.read() == b""
            await asyncio.wait_for(stream.closed.wait(), 5)
            return message

    opcode, payload = asyncio.run(scenario())
    assert (opcode, int.from_bytes(payload[:2])) == (Opcode.CLOSE, code)


async def test_a_watch_ends_with_its_websocket_client() -> None:
    """A client that goes away without a close frame leaves no watch behind."""
    stream = SilentStream()

    async with serving(FakeServer(watching(stream))) as port:
        async with opened(port) as (reader, _, _):
            await read_frame(reader)
        await asyncio.wait_for(stream.closed.wait(), 5)


def test_stopping_the_server_closes_websockets() -> None:
    """The client learns that the server goes away, and can connect again."""
    stream = SilentStream()

    async def scenario() -> list[Message]:
        listening = listen(Address())
        server = HttpServer(FakeServer(watching(stream)), OpenDoor(), Flow())
        await server.start(listening, None)
        async with opened(listening.getsockname()[1]) as (reader, _, _):
            messages = [await read_frame(reader)]
            await server.stop()
            return [*messages, await read_frame(reader)]

    last = asyncio.run(scenario())[-1]
    assert last == (Opcode.CLOSE, CloseCode.GOING_AWAY.to_bytes(2))
    assert stream.closed.is_set()


@pytest.mark.parametrize("pings", [False, True], ids=["events", "pings"])
def test_a_websocket_client_that_does_not_read_is_cut(
    monkeypatch: pytest.MonkeyPatch, *, pings: bool
) -> None:
    """Neither events nor answers to pings pile up: the server stops reading, and then ends it."""
    monkeypatch.setattr(connections, "CHUNK_SECONDS_MAX", 0.2)
    stream = EndlessStream(b"x" * 65535 + b"\n")

    async def scenario() -> int:
        sent = 0
        async with serving(FakeServer(watching(stream))) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            lines = [f"{name}: {value}" for name, value in HANDSHAKE.items()]
            writer.write("\r\n".join(["GET / HTTP/1.1", *lines, "", ""]).encode())
            burst = masked_frame(Opcode.PING, b"x" * 125) * 1000
            while pings and not stream.closed.is_set() and not writer.is_closing():
                writer.write(burst)
                sent += len(burst)
                try:
                    async with asyncio.timeout(0.5):
                        await writer.drain()
                except (TimeoutError, ConnectionError):
                    break
            await asyncio.wait_for(stream.closed.wait(), 10)
            writer.transport.abort()
            del reader
        return sent

    assert asyncio.run(scenario()) < 32 * 1024 * 1024
    assert stream.read * len(stream.chunk) < 32 * 1024 * 1024


def frames_of(message: Message, sizes: list[int]) -> Iterator[bytes]:
    """A message in fragments of these sizes, and one of the rest."""
    opcode: int = message.opcode
    rest = message.payload
    for size in sizes:
        yield masked_frame(opcode, rest[:size], is_final=False)
        opcode = Opcode.CONTINUATION
        rest = rest[size:]
    yield masked_frame(opcode, rest)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([Opcode.BINARY, Opcode.PING]),
            st.binary(max_size=120),
            st.lists(st.integers(0, 60), max_size=3),
        ),
        max_size=5,
    ),
    st.integers(1, 40),
)
def test_messages_are_read_as_they_were_sent(
    parts: list[tuple[Opcode, bytes, list[int]]], step: int
) -> None:
    """However a client splits a message and the network its bytes, the message is the same."""
    messages = [Message(opcode, payload) for opcode, payload, _ in parts]
    sent = b"".join(
        piece
        for (opcode, _, sizes), message in zip(parts, messages, strict=True)
        for piece in frames_of(message, [] if opcode.is_control else sizes)
    )
    reader = MessageReader(1024)
    pieces = (sent[start : start + step] for start in range(0, len(sent), step))
    assert [message for piece in pieces for message in reader.read(piece)] == messages


@given(st.lists(st.binary(max_size=30), max_size=10))
def test_any_bytes_are_messages_or_an_error_of_the_client(pieces: list[bytes]) -> None:
    """No input leads to another error, and nothing larger than the limit is kept."""
    reader = MessageReader(64)
    messages: list[Message] = []
    with suppress(WebSocketError):
        for piece in pieces:
            messages += reader.read(piece)
    assert all(len(each.payload) <= 125 for each in messages)


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536])
def test_frames_have_the_shortest_length_that_fits(size: int) -> None:
    """The server sends each message in one frame, of any size."""

    async def scenario() -> Message:
        reader = asyncio.StreamReader(limit=1 << 20)
        reader.feed_data(frame(Opcode.TEXT, b"x" * size))
        reader.feed_eof()
        message = await read_frame(reader)
        assert await reader.read() == b""
        return message

    assert asyncio.run(scenario()) == (Opcode.TEXT, b"x" * size)
    assert len(frame(Opcode.TEXT, b"x" * size)) - size == {0: 2, 125: 2, 65536: 10}.get(size, 4)


def token_protocol(token: str) -> str:
    encoded = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
    return f"base64url.bearer.authorization.k8s.io.{encoded}"


def test_a_browser_sends_its_token_as_a_subprotocol() -> None:
    """The token proves the user and is removed, so that the server does not repeat it."""
    world = TokenWorld()
    headers = CIMultiDict(HANDSHAKE)
    headers["Sec-WebSocket-Protocol"] = f"{token_protocol(world.issue())}, base64.binary.k8s.io"
    user = Authentication(world.tokens, lambda _: False).user_of(MAPS, headers, {})
    assert user.name == "system:serviceaccount:factory:robot"
    assert headers["Sec-WebSocket-Protocol"] == "base64.binary.k8s.io"


@pytest.mark.parametrize(
    "protocols",
    [
        "{token}",
        "{token}, {token}, binary.k8s.io",
        "base64url.bearer.authorization.k8s.io.!, binary.k8s.io",
        "base64url.bearer.authorization.k8s.io._w, binary.k8s.io",
        "base64url.bearer.authorization.k8s.io.eA, binary.k8s.io",
        "binary.k8s.io",
    ],
    ids=["alone", "twice", "not base64", "not UTF-8", "not a token", "none"],
)
def test_a_subprotocol_that_is_no_valid_token_proves_nothing(protocols: str) -> None:
    """Such a request is unauthorized."""
    world = TokenWorld()
    headers = CIMultiDict(HANDSHAKE)
    token = token_protocol(world.issue())
    headers["Sec-WebSocket-Protocol"] = protocols.format(token=token)
    with pytest.raises(StatusError) as refused:
        Authentication(world.tokens, lambda _: False).user_of(MAPS, headers, {})
    assert refused.value.status.code == 401
