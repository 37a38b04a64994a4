"""A way to the page that can be cut, as networks are."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Relay:
    """Hands connections on to a port, until it is cut."""

    def __init__(self, port: int, *, host: str = "127.0.0.1") -> None:
        self._to = port
        self._host = host
        self.port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._relayed, self._host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        assert self._server is not None, "it was started"
        self._server.close()
        for each in tuple(self._open):
            each.transport.abort()
        await self._server.wait_closed()

    async def _relayed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        self._open |= {writer, back}
        await asyncio.gather(self._pumped(reader, back), self._pumped(there, writer))
        self._open -= {writer, back}

    async def _pumped(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()
