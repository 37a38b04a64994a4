"""When a way to a cluster is closed, nothing of it is left: on loopback, against rude servers."""

from __future__ import annotations

import asyncio
import gc
import itertools
import socket
import ssl
import threading
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

import aiohttp
import pytest
import uvloop
from tests.realcluster.pki import Authority

from dryrack.client import pool
from dryrack.client.credentials import Fixed, KeyPair
from dryrack.client.errors import TransportError
from dryrack.client.https import connected
from dryrack.client.kubeconfig import Connection
from dryrack.client.timekeeping import settle
from dryrack.client.transport import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from tests.realcluster.pki import Identity

    from dryrack.client.credentials import Credentials
    from dryrack.client.transport import Response

    LeftBy = Callable[[Coroutine[object, object, None]], list[str]]

# asyncio and uvloop wait half a minute for the end of TLS; a test that waits for it has failed.
pytestmark = pytest.mark.timeout(25)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
WHOLE = HEAD + b"Content-Length: 2\r\n\r\n{}"
HALF = HEAD + b"Content-Length: 100\r\n\r\n{"
# More than TLS and the client read ahead for a reader that does not read, but no more than
# the kernel takes for a client that does not read.
FLOOD_BYTES = 1_000_000
FLOOD = HEAD + b"Content-Length: 9000000\r\n\r\n" + bytes(FLOOD_BYTES)
ASK = Request("GET", "/api")
# A connection is there after some dozen steps of the loop, and asked for in each of them.
STEPS = 60


class Mute:
    """
    A server that sends one word to each client, and then never reads again.

    So a client that waits for the clean end of TLS never gets it.
    """

    def __init__(self, identity: Identity, word: bytes) -> None:
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(identity.certificate, identity.key)
        self._word = word
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._kept: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)
        self.said = threading.Semaphore(0)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Mute:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # The listener alone would not wake the thread that waits in accept.
        self._listener.shutdown(socket.SHUT_RDWR)
        for each in self._kept:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for each in (self._listener, *self._kept):
            each.close()

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            self._answer(plain)

    def _answer(self, plain: socket.socket) -> None:
        tls = self._tls.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        self._kept.append(tls)
        with suppress(OSError):
            tls.do_handshake()
            tls.recv(65536)
            tls.sendall(self._word)
        self.said.release()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="module")
def identity(authority: Authority) -> Identity:
    return authority.server("mute", addresses=["127.0.0.1"], names=[])


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def left_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> LeftBy:
    """Return the sockets that are open after the end of a loop of asyncio or uvloop."""
    # A socket that stays open for a while hangs the test, on any machine.
    monkeypatch.setattr(pool, "CLOSING_SECONDS", None)

    def run(scenario: Coroutine[object, object, None]) -> list[str]:
        gc.collect()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with asyncio.Runner(loop_factory=request.param) as runner:
                runner.run(scenario)
            del scenario
            gc.collect()
        return [str(each.message) for each in told]

    return run


def test_a_request_that_is_given_up_leaves_nothing(
    authority: Authority, identity: Identity, left_by: LeftBy
) -> None:
    """Given up in the middle of an answer, to a server that never says goodbye."""

    async def scenario() -> None:
        async with connected(to(server.url, authority)) as transport:
            asked = asyncio.create_task(transport.send(ASK))
            await asyncio.to_thread(server.said.acquire)
            await settle(STEPS)
            await given_up(asked)

    with Mute(identity, HALF) as server:
        assert left_by(scenario()) == []


@pytest.mark.parametrize("query", ["", "watch=true"], ids=["request", "watch"])
def test_whenever_a_request_is_given_up_nothing_is_left(
    authority: Authority, identity: Identity, left_by: LeftBy, query: str
) -> None:
    """Before, in and after every step of connecting, shaking hands, asking and being answered."""

    async def scenario() -> None:
        for steps in range(STEPS):
            async with connected(to(server.url, authority)) as transport:
                asked = asyncio.create_task(transport.send(Request("GET", "/api", query)))
                await settle(steps)
                await given_up(asked)

    with Mute(identity, HALF) as server:
        assert left_by(scenario()) == []


def test_a_handshake_that_nobody_answers_leaves_nothing(
    authority: Authority, left_by: LeftBy
) -> None:
    """The kernel of a machine takes connections for a process that hangs."""

    async def scenario() -> None:
        async with connected(to(f"https://127.0.0.1:{port}", authority)) as transport:
            asked = asyncio.create_task(transport.send(ASK))
            await settle(STEPS)
            await given_up(asked)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert left_by(scenario()) == []


def test_a_handshake_ends_with_the_way_itself(authority: Authority, left_by: LeftBy) -> None:
    """Requests that wait for a connection when the transport is closed fail at once."""

    async def scenario() -> None:
        async with connected(to(f"https://127.0.0.1:{port}", authority)) as transport:
            asked = asyncio.create_task(transport.send(ASK))
            accepted, _ = await asyncio.to_thread(listener.accept)
            await settle(STEPS)
        accepted.close()
        with pytest.raises(TransportError):
            await asked

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert left_by(scenario()) == []


def test_a_request_that_is_broken_off_is_not_tried_again(
    authority: Authority, identity: Identity, left_by: LeftBy
) -> None:
    """On a connection that was used before, a request is tried twice; not after the end."""

    async def scenario() -> None:
        async with connected(to(server.url, authority)) as transport:
            await transport.send(ASK)
            asked = asyncio.create_task(transport.send(ASK))
            await settle(STEPS)
        with pytest.raises(TransportError):
            await asked

    with Mute(identity, WHOLE) as server:
        assert left_by(scenario()) == []


def test_a_watch_that_nobody_reads_ends_with_the_way(
    authority: Authority, identity: Identity, left_by: LeftBy
) -> None:
    """Its connection does not even look whether the other end is gone."""

    async def scenario() -> None:
        async with connected(to(server.url, authority)) as transport:
            watched = await transport.send(Request("GET", "/api", "watch=true"))
            await asyncio.to_thread(server.said.acquire)
        assert not isinstance(watched.body, bytes)
        await watched.body.aclose()

    with Mute(identity, FLOOD) as server:
        assert left_by(scenario()) == []


class Changing:
    """Credentials with another certificate each time they are asked for."""

    def __init__(self, pairs: Sequence[KeyPair]) -> None:
        self._pairs = itertools.cycle(pairs)

    async def headers(self) -> Mapping[str, str]:
        return {}

    async def key_pair(self) -> KeyPair | None:
        return next(self._pairs)

    def renew(self) -> bool:
        return False


def test_certificates_that_change_leave_nothing(
    authority: Authority, identity: Identity, left_by: LeftBy
) -> None:
    """Requests that find a new certificate at the same moment do not lose each other's ways."""
    pairs = [pair_of(authority.client(name)) for name in ("one", "two", "three")]

    async def scenario() -> None:
        connection = to(server.url, authority, Changing(pairs))
        async with connected(connection) as transport:
            await transport.send(ASK)
            asked = [asyncio.create_task(transport.send(ASK)) for _ in range(5)]
            await asyncio.wait(asked)
            assert all(each.exception() is None or is_broken_off(each) for each in asked)

    with Mute(identity, WHOLE) as server:
        assert left_by(scenario()) == []


def test_a_way_that_is_closed_stays_closed(
    authority: Authority, identity: Identity, left_by: LeftBy
) -> None:
    """A closed transport opens no connection that would never be closed."""

    async def scenario() -> None:
        async with connected(to(server.url, authority)) as transport:
            assert (await transport.send(ASK)).body == b"{}"
        with pytest.raises(TransportError, match="closed"):
            await transport.send(ASK)

    with Mute(identity, WHOLE) as server:
        assert left_by(scenario()) == []


def test_nothing_is_replaced_that_aiohttp_does_not_promise() -> None:
    """Another release of it may name its private parts otherwise, or use our names."""

    async def names() -> tuple[set[str], set[str]]:
        async with (
            aiohttp.TCPConnector() as theirs,
            pool.Pool(ssl.create_default_context()) as ours,
        ):
            return {*dir(theirs)}, {*vars(pool.Pool), *(vars(ours).keys() - vars(theirs).keys())}

    theirs, ours = asyncio.run(names())

    assert {each for each in ours & theirs if not each.endswith("__")} == {"connect", "close"}


def to(url: str, authority: Authority, credentials: Credentials | None = None) -> Connection:
    trusted = authority.certificate.read_bytes()
    return Connection(url, credentials or Fixed(), authority=trusted)


def pair_of(identity: Identity) -> KeyPair:
    return KeyPair(identity.certificate.read_bytes(), identity.key.read_bytes())


def is_broken_off(task: asyncio.Task[Response]) -> bool:
    return isinstance(task.exception(), TransportError)


async def given_up(task: asyncio.Task[Response]) -> None:
    """An open watch is closed by the end of its block."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        body = (await task).body
        if not isinstance(body, bytes):
            await body.aclose()
