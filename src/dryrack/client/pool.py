"""
A pool of connections that waits until all its sockets are closed.

aiohttp forgets a connection as soon as it begins to close it, and a server that hangs can delay the
end of TLS for half a minute. An event loop that ends meanwhile leaves the socket open, and a
process that continues accumulates open sockets. Therefore the pool tracks every socket from its
creation until it is closed. Closing the pool aborts the remaining connections, without the end of
TLS, and returns when the last socket is closed.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from aiohttp.connector import Connection

# Aborted sockets are closed within a few steps of the event loop; the limit ensures that closing a
# pool never hangs.
CLOSING_SECONDS = 5.0


class _Socket(socket.socket):
    """A socket with a callback for its end: asyncio closes sockets, uvloop detaches them."""

    def __init__(self, kind: tuple[int, int, int], on_close: Callable[[_Socket], None]) -> None:
        super().__init__(*kind)
        self._on_close = on_close

    def close(self) -> None:
        super().close()
        self._on_close(self)

    def detach(self) -> int:
        descriptor = super().detach()
        self._on_close(self)
        return descriptor


class Pool(aiohttp.TCPConnector):
    """A connector of aiohttp; the session that owns it closes it."""

    def __init__(self, context: ssl.SSLContext) -> None:
        # A limit would let watches block all other requests; the number of tasks is the limit.
        super().__init__(ssl=context, limit=0, socket_factory=self._new_socket)
        # A socket has a transport, which can be aborted, once all handshakes are done.
        self._sockets: dict[_Socket, asyncio.BaseTransport | None] = {}
        self._known: set[asyncio.BaseTransport] = set()
        self._none_open = _set_event()
        self._connecting: set[asyncio.Timeout] = set()
        self._none_connecting = _set_event()
        self._is_closing = False

    async def connect(self, *request: Any, **more: Any) -> Connection:
        # An aborted request would be tried again on a new connection.
        if self._is_closing:
            raise aiohttp.ClientConnectionError("closed before connecting")
        limit = asyncio.timeout(None)
        self._connecting.add(limit)
        self._none_connecting.clear()
        try:
            async with limit:
                connection = await super().connect(*request, **more)
                self._remember(connection.transport)
                return connection
        except TimeoutError:
            if not limit.expired():
                raise
            raise aiohttp.ClientConnectionError("closed while connecting") from None
        finally:
            self._connecting.discard(limit)
            if not self._connecting:
                self._none_connecting.set()

    async def close(self, *, abort_ssl: bool = True) -> None:
        self._is_closing = True
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_SECONDS):
                # The event loop itself cleans up a connection that is not established yet.
                now = asyncio.get_running_loop().time()
                for limit in self._connecting:
                    limit.reschedule(now)
                await self._none_connecting.wait()
                for each, transport in list(self._sockets.items()):
                    if isinstance(transport, asyncio.WriteTransport):
                        transport.abort()
                    # A handshake that was canceled before it began continues without a transport.
                    with suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)
                await super().close(abort_ssl=abort_ssl)
                await self._none_open.wait()

    def _remember(self, transport: asyncio.BaseTransport | None) -> None:
        """Store the transport of its socket; most connections are reused, and stored already."""
        if transport is None or transport in self._known:
            return
        descriptor = transport.get_extra_info("socket").fileno()
        for each in self._sockets:
            if each.fileno() == descriptor:
                self._sockets[each] = transport
                self._known.add(transport)

    def _new_socket(self, address: Any) -> socket.socket:
        new = _Socket(address[:3], self._forget)
        self._sockets[new] = None
        self._none_open.clear()
        return new

    def _forget(self, closed: _Socket) -> None:
        self._known.discard(self._sockets.pop(closed, None))
        if not self._sockets:
            self._none_open.set()


def _set_event() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event
