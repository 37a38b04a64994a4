"""
A page that costs nothing until somebody opens it.

The port is bound at once, so that the address can be printed. The server and all that it needs are
loaded when the first connection comes, which waits in the meantime. Nothing that goes wrong here
ends the process that it is part of.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator

    from dryrack.client.client import Client
    from dryrack.cluster.process.launching import ReadPast

_logger = logging.getLogger(__name__)
_TOKEN_BYTES = 24


def new_token() -> str:
    """Something that nobody can guess, in letters that an address may have."""
    return os.urandom(_TOKEN_BYTES).hex()


def address_of(listening: socket.socket, token: str) -> str:
    """What somebody opens."""
    host, port = listening.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "127.0.0.1"
    where = f"[{host}]" if ":" in host else host
    return f"http://{where}:{port}/?token={token}"


@asynccontextmanager
async def opened_when_visited(client: Client, read_past: ReadPast) -> AsyncIterator[str]:
    """Serves for the length of a block, at any port that is free; the address."""
    from dryrack.cluster.process import Address, listen

    token = new_token()
    with closing(listen(Address())) as listening:
        listening.listen()
        listening.setblocking(False)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(_serve(client, read_past, listening, token), name="page")
            try:
                yield address_of(listening, token)
            finally:
                task.cancel()


async def _serve(client: Client, read_past: ReadPast, listening: socket.socket, token: str) -> None:
    await _visited(listening)
    try:
        await asyncio.to_thread(_load)
        from dryrack.cluster import SystemChance, SystemClock
        from dryrack.dashboard.access import Access
        from dryrack.dashboard.live import Live
        from dryrack.dashboard.server import serving

        live = Live(client, clock=SystemClock(), chance=SystemChance(), read_past=read_past)
        async with serving(live, listening, Access(token)):
            await asyncio.Event().wait()
    except Exception:
        _logger.exception("the dashboard has stopped because of an internal error")


async def _visited(listening: socket.socket) -> None:
    """Return when the first client connects."""
    loop = asyncio.get_running_loop()
    knocked = asyncio.Event()

    def knock() -> None:
        loop.remove_reader(listening)
        knocked.set()

    loop.add_reader(listening, knock)
    try:
        await knocked.wait()
    finally:
        loop.remove_reader(listening)


def _load() -> None:
    """In a thread of its own, so that the process goes on answering."""
    from dryrack.dashboard import server

    _ = server
