"""The way over a socket: on loopback, against a server that does odd things."""

from __future__ import annotations

import asyncio
import gzip
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from dryrack.client.client import Client
from dryrack.client.credentials import Fixed, KeyPair
from dryrack.client.endpoints import CONFIG_MAPS
from dryrack.client.errors import ApiError, TransportError
from dryrack.client.https import connected
from dryrack.client.kubeconfig import Connection
from dryrack.client.transport import Request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from dryrack.client.credentials import Credentials
    from dryrack.client.https import HttpsTransport


class Renewable:
    """Credentials that are accepted after one renewal."""

    def __init__(self) -> None:
        self.number = 0

    async def headers(self) -> Mapping[str, str]:
        return {"authorization": f"Bearer {self.number}"}

    async def key_pair(self) -> KeyPair | None:
        return None

    def renew(self) -> bool:
        self.number += 1
        return self.number <= 1


@asynccontextmanager
async def way_to(
    handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
    credentials: Credentials | None = None,
) -> AsyncIterator[HttpsTransport]:
    """A server that answers so, and the way to it."""
    async with serving(handle) as server:
        connection = Connection(server, credentials or Fixed())
        async with connected(connection) as transport:
            yield transport


@asynccontextmanager
async def serving(
    handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def test_new_credentials_are_tried_once() -> None:
    """After a 401 the request is sent again, with what is new, and not a third time."""
    seen: list[str] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        seen.append(request.headers["authorization"])
        return web.json_response({"kind": "Status", "code": 401}, status=401)

    async def play() -> None:
        async with way_to(handle, Renewable()) as transport:
            response = await transport.send(Request("GET", "/api"))
        assert response.status == 401

    asyncio.run(play())
    assert seen == ["Bearer 0", "Bearer 1"]


def test_a_watch_that_breaks_is_a_transport_error() -> None:
    """Events before the break are returned; the break itself is an error, never the end."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n{"type":"ADD')
        assert request.transport is not None
        request.transport.abort()
        return response

    async def play() -> list[str]:
        way = way_to(handle)
        async with way as transport, Client(transport).watch(CONFIG_MAPS) as events:
            first = await anext(events)
            with pytest.raises(TransportError):
                await anext(events)
        return [first.object["metadata"]["name"]]

    assert asyncio.run(play()) == ["a"]


async def test_an_answer_that_is_no_status_is_still_an_error() -> None:
    """A proxy's page becomes an error with its code and the beginning of its text."""

    async def handle(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=502, text="<html>bad gateway</html>")

    async with way_to(handle) as transport:
        with pytest.raises(ApiError, match="bad gateway") as found:
            await Client(transport).get(CONFIG_MAPS, "a", "default")
    assert found.value.code == 502


async def test_nobody_there_is_a_transport_error() -> None:
    """A refused connection names the request and the server."""
    async with connected(Connection("http://127.0.0.1:1", Fixed())) as transport:
        with pytest.raises(TransportError, match=r"GET http://127\.0\.0\.1:1/api"):
            await transport.send(Request("GET", "/api"))


async def test_an_answer_has_a_limit() -> None:
    """A server that sends more than the limit is given up, compressed or not."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/plain":
            return web.Response(body=b"x" * 1001)
        return web.Response(body=gzip.compress(b"x" * 1001), headers={"content-encoding": "gzip"})

    async with serving(handle) as server:
        connection = Connection(server, Fixed())
        async with connected(connection, answer_bytes_max=1000) as transport:
            for path in ("/plain", "/gzip"):
                with pytest.raises(TransportError, match="is larger than 1000 bytes"):
                    await transport.send(Request("GET", path))
        async with connected(connection, answer_bytes_max=1001) as transport:
            for path in ("/plain", "/gzip"):
                assert (await transport.send(Request("GET", path))).body == b"x" * 1001


def test_a_redirect_is_not_followed() -> None:
    """Another server must not get the request, nor its credentials."""
    paths: list[str] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        paths.append(request.path)
        return web.Response(status=307, headers={"location": "/elsewhere"})

    async def play() -> None:
        async with way_to(handle) as transport:
            with pytest.raises(TransportError, match="redirected to /elsewhere"):
                await transport.send(Request("GET", "/api"))

    asyncio.run(play())
    assert paths == ["/api"]
