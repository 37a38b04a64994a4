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

    from aiohttp.client_proto import ResponseHandler

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
        self._sockets: dict[_Socket, asyncio.Transport | None] = {}
        self._connecting: set[asyncio.Task[ResponseHandler]] = set()
        self._none_open = asyncio.Event()
        self._none_open.set()
        self._is_closing = False

    async def close(self, *, abort_ssl: bool = True) -> None:
        self._is_closing = True
        # Loops tidy up best themselves after a connection that is not there yet.
        for each in self._connecting:
            each.cancel()
        await asyncio.gather(*self._connecting, return_exceptions=True)
        self._break_off()
        await super().close(abort_ssl=abort_ssl)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_SECONDS):
                await self._none_open.wait()

    def _break_off(self) -> None:
        for each, transport in list(self._sockets.items()):
            if transport is not None:
                transport.abort()
            # A handshake that was given up before it began goes on, and has no transport yet.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    async def _create_connection(self, *request: Any) -> ResponseHandler:
        # A request that was broken off is tried again, on a new connection.
        if self._is_closing:
            raise aiohttp.ClientConnectionError("closed before connecting")
        connecting = asyncio.create_task(self._connect(*request))
        self._connecting.add(connecting)
        try:
            return await connecting
        except asyncio.CancelledError:
            if not connecting.cancelled() and connecting.exception() is None:
                # Given up in the very moment in which it was there.
                connecting.result().abort()
            if _is_cancelled():
                raise
            raise aiohttp.ClientConnectionError("closed while connecting") from None
        finally:
            self._connecting.discard(connecting)

    async def _connect(self, *request: Any) -> ResponseHandler:
        handler = await super()._create_connection(*request)
        if handler.transport is not None:
            descriptor = handler.transport.get_extra_info("socket").fileno()
            found = (each for each in self._sockets if each.fileno() == descriptor)
            self._sockets |= dict.fromkeys(found, handler.transport)
        return handler

    def _new_socket(self, address: Any) -> socket.socket:
        made = _Socket(address[:3], self._forget)
        self._sockets[made] = None
        self._none_open.clear()
        return made

    def _forget(self, gone: _Socket) -> None:
        self._sockets.pop(gone, None)
        if not self._sockets:
            self._none_open.set()


def _is_cancelled() -> bool:
    """Whether it is the running task that is given up, and not only what it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
