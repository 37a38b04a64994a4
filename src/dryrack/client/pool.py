"""
Connections whose end can be waited for.

aiohttp forgets a connection as soon as it begins to close it, and the goodbye of TLS lasts as long
as the server likes: half a minute, if it hangs. A loop that ends meanwhile leaves the socket open,
and a process that stays collects them. So every socket is known here from the moment it is made
until it is closed, whoever made it and whoever gave it up. Closing the pool breaks off what is
left, without a goodbye, and returns when the last one is gone.
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

# Sockets that are broken off are closed within some steps of the loop; whoever closes a pool never
# hangs, even if that should not be so one day.
CLOSING_SECONDS = 5.0


class _Socket(socket.socket):
    """Tells when it is closed: asyncio closes sockets, and uvloop takes them away."""

    def __init__(self, kind: tuple[int, int, int], gone: Callable[[_Socket], None]) -> None:
        super().__init__(*kind)
        self._gone = gone

    def close(self) -> None:
        super().close()
        self._gone(self)

    def detach(self) -> int:
        descriptor = super().detach()
        self._gone(self)
        return descriptor


class Pool(aiohttp.TCPConnector):
    """See the module's docstring; belongs to a session, which closes it."""

    def __init__(self, context: ssl.SSLContext) -> None:
        # A limit would let watches starve everything else; the number of our tasks is the limit.
        super().__init__(ssl=context, limit=0, socket_factory=self._new_socket)
        # A socket has a transport that can be broken off once all handshakes are done.
        self._sockets: dict[_Socket, asyncio.BaseTransport | None] = {}
        self._known: set[asyncio.BaseTransport] = set()
        self._none_open = _set_event()
        self._connecting: set[asyncio.Timeout] = set()
        self._none_connecting = _set_event()
        self._is_closing = False

    async def connect(self, *request: Any, **more: Any) -> Connection:
        # A request that was broken off is tried again, on a new connection.
        if self._is_closing:
            raise aiohttp.ClientConnectionError("closed before connecting")
        patience = asyncio.timeout(None)
        self._begin(patience)
        try:
            async with patience:
                connection = await super().connect(*request, **more)
                self._know(connection.transport)
                return connection
        except TimeoutError:
            if not patience.expired():
                raise
            raise aiohttp.ClientConnectionError("closed while connecting") from None
        finally:
            self._end(patience)

    async def close(self, *, abort_ssl: bool = True) -> None:
        self._is_closing = True
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_SECONDS):
                # Loops tidy up best themselves after a connection that is not there yet.
                await self._stop_connecting()
                self._break_off()
                await super().close(abort_ssl=abort_ssl)
                await self._none_open.wait()

    async def _stop_connecting(self) -> None:
        now = asyncio.get_running_loop().time()
        for each in self._connecting:
            each.reschedule(now)
        await self._none_connecting.wait()

    def _break_off(self) -> None:
        for each, transport in list(self._sockets.items()):
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()
            # A handshake that was given up before it began goes on, and has no transport yet.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _begin(self, patience: asyncio.Timeout) -> None:
        self._connecting.add(patience)
        self._none_connecting.clear()

    def _end(self, patience: asyncio.Timeout) -> None:
        self._connecting.discard(patience)
        if not self._connecting:
            self._none_connecting.set()

    def _know(self, transport: asyncio.BaseTransport | None) -> None:
        """Remember whose transport it is; most connections are used again, and known."""
        if transport is None or transport in self._known:
            return
        descriptor = transport.get_extra_info("socket").fileno()
        for each in self._sockets:
            if each.fileno() == descriptor:
                self._sockets[each] = transport
                self._known.add(transport)

    def _new_socket(self, address: Any) -> socket.socket:
        made = _Socket(address[:3], self._forget)
        self._sockets[made] = None
        self._none_open.clear()
        return made

    def _forget(self, gone: _Socket) -> None:
        self._known.discard(self._sockets.pop(gone, None))
        if not self._sockets:
            self._none_open.set()


def _set_event() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event
