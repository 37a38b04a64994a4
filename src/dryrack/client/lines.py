"""
Lines out of chunks.

A watch is a stream of JSON documents, one per line, and a line may be as long as an object. The
chunks in which they arrive have nothing to do with lines.
"""

from collections.abc import AsyncGenerator, Iterator

from dryrack.client.errors import TransportError
from dryrack.client.transport import Stream

# The server refuses an object of more than 3 MiB; a line that is longer than this is no object.
LINE_BYTES_MAX = 16 * 1024 * 1024


class LineSplitter:
    """Keeps the beginning of a line until its end has come."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that this chunk completes; empty ones are left out."""
        *complete, rest = chunk.split(b"\n")
        for part in complete:
            line = b"".join((*self._begun, part)) if self._begun else part
            self._begun.clear()
            self._size = 0
            if line:
                yield line
        self._keep(rest)

    def _keep(self, rest: bytes) -> None:
        if not rest:
            return
        self._begun.append(rest)
        self._size += len(rest)
        if self._size > LINE_BYTES_MAX:
            raise TransportError(f"a line of more than {LINE_BYTES_MAX} bytes; this is no watch")


async def lines_of(stream: Stream) -> AsyncGenerator[bytes, None]:
    """Every complete line; what comes after the last newline is lost with the connection."""
    splitter = LineSplitter()
    async for chunk in stream:
        for line in splitter.feed(chunk):
            yield line
        # The next one may be long in coming, and this one may be megabytes.
        del chunk
