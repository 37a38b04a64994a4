"""
Lines out of chunks.

A watch is a stream of JSON documents, one per line, and a line may be as long as an object. The
chunks in which they arrive have nothing to do with lines.
"""

from collections.abc import Iterator

from dryrack.client.errors import TransportError

# The server refuses an object of more than 3 MiB; a line that is longer than this is no object.
LINE_BYTES_MAX = 16 * 1024 * 1024


class LineSplitter:
    """
    Keeps the beginning of a line until its end has come.

    What comes after the last newline is lost with the connection.
    """

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
