"""
An HTTP server for tests: a fake API server behind real connections over loopback.

The fake answers with the response of a test, without TLS unless a test is about that.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import uvloop

from dryrack.apiserver.answer.status import unauthorized
from dryrack.apiserver.http.concurrency_limit import Flow, FlowLimits
from dryrack.apiserver.http.https_server import HttpServer
from dryrack.client.transport import ADMIN, Request, Response, User
from dryrack.cluster.process.serving import Address, listen

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping

    from multidict import CIMultiDict

    Run = Callable[[Callable[[], Coroutine[Any, Any, None]]], None]

OK = Response(200, (("content-type", "application/json"),), b"{}")


class EndlessStream:
    """An endless stream that counts its chunks and notes whether it was closed."""

    def __init__(self, chunk: bytes = b"x" * 65536) -> None:
        self.chunk = chunk
        self.read = 0
        self.closed = asyncio.Event()

    def __aiter__(self) -> EndlessStream:
        return self

    async def __anext__(self) -> bytes:
        await asyncio.sleep(0)
        self.read += 1
        return self.chunk

    async def aclose(self) -> None:
        self.closed.set()


class SilentStream(EndlessStream):
    """A stream of one chunk that does not end."""

    async def __anext__(self) -> bytes:
        if self.read:
            await asyncio.Event().wait()
        self.read += 1
        return b"first\n"


@dataclass
class FakeServer:
    """Records its requests."""

    answer: Callable[[Request], Awaitable[Response]] | None = None
    asked: list[Request] = field(default_factory=list)

    async def send(self, request: Request) -> Response:
        self.asked.append(request)
        return await self.answer(request) if self.answer else OK


class OpenDoor:
    """Authenticates every client as the administrator, unless it sends `x-stranger`."""

    def user_of(
        self, path: str, headers: CIMultiDict[str], certificate: Mapping[str, object]
    ) -> User:
        if "x-stranger" in headers:
            raise unauthorized()
        return ADMIN


@asynccontextmanager
async def serving(
    fake: FakeServer, limits: FlowLimits | None = None, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    listening = listen(Address())
    server = HttpServer(fake, OpenDoor(), Flow(limits))
    await server.start(listening, tls)
    try:
        yield listening.getsockname()[1]
    finally:
        await server.stop()


async def exchange(port: int, content: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes and read one answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(content)
        await writer.drain()
        return await answer(reader)
    finally:
        writer.close()


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    status, headers = await head(reader)
    return status, headers, await reader.readexactly(int(headers.get("content-length", "0")))


async def head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
    return int(lines[0].split()[1]), headers


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run on asyncio's own loop, and on uvloop, whose transports differ in small ways."""

    def run_on(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(scenario())

    return run_on


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def reason(body: bytes) -> Any:
    return json.loads(body)["reason"]
