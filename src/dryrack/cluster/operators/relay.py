"""
Pass connections on between two networks, through Unix sockets.

It runs in dryrack, and as a script in the network of a program, where its argument is a JSON list
of pairs: the address to listen at, and the address to connect to. An address is
`unix:PATH` or `tcp:HOST:PORT`. The script closes its output when it listens.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from functools import partial

_BYTES = 65536
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def listen(source: str, target: str) -> asyncio.Server:
    """Connect every client of `source` to `target`."""
    on_client = partial(_on_client, target)
    kind, _, address = source.partition(":")
    if kind == "unix":
        return await asyncio.start_unix_server(on_client, address)
    host, _, port = address.rpartition(":")
    return await asyncio.start_server(on_client, host, int(port))


async def _on_client(
    target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        far_reader, far_writer = await _connect(target)
    except OSError:
        writer.close()
        return
    await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
    for each in (writer, far_writer):
        each.close()


async def _connect(target: str) -> Streams:
    kind, _, address = target.partition(":")
    if kind == "unix":
        return await asyncio.open_unix_connection(address)
    host, _, port = address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_BYTES):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def _main(pairs: list[tuple[str, str]]) -> None:
    servers = [await listen(source, target) for source, target in pairs]
    os.close(1)
    await asyncio.gather(*(each.serve_forever() for each in servers))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(_main(json.loads(sys.argv[1])))
