"""
Serve the dashboard of `dryrack up`, and load it only when a client connects.

The port is bound at once, so that the URL can be printed. The server and its modules are loaded
when the first connection arrives, which waits meanwhile. An error here does not end the process.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
from contextlib import asynccontextmanager, closing
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator

    from dryrack.client.client import Client
    from dryrack.cluster.process.launching import ReadPast

_logger = logging.getLogger(__name__)
_TOKEN_BYTES = 24


def new_token() -> str:
    """Return a random token that a URL can contain."""
    return os.urandom(_TOKEN_BYTES).hex()


def address_of(listening: socket.socket, token: str) -> str:
    """Return the URL of the dashboard."""
    host, port = listening.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "127.0.0.1"
    where = f"[{host}]" if ":" in host else host
    return f"http://{where}:{port}/?token={token}"


@asynccontextmanager
async def serve_when_visited(client: Client, read_past: ReadPast) -> AsyncIterator[str]:
    """Serve at a free port for the length of a block; yield the URL."""
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
    await _wait_for_visit(listening)
    try:
        # In a thread of its own, so that the process continues to answer.
        await asyncio.to_thread(import_module, "dryrack.dashboard.server")
        from dryrack.cluster import SystemChance, SystemClock
        from dryrack.dashboard.access import Access
        from dryrack.dashboard.live import Live
        from dryrack.dashboard.server import serve

        live = Live(client, clock=SystemClock(), chance=SystemChance(), read_past=read_past)
        async with serve(live, listening, Access(token)):
            await asyncio.Event().wait()
    except Exception:
        _logger.exception("the dashboard has stopped because of an internal error")


async def _wait_for_visit(listening: socket.socket) -> None:
    """Return when the first client connects."""
    loop = asyncio.get_running_loop()
    connected = asyncio.Event()

    def on_connection() -> None:
        loop.remove_reader(listening)
        connected.set()

    loop.add_reader(listening, on_connection)
    try:
        await connected.wait()
    finally:
        loop.remove_reader(listening)
