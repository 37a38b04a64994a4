"""The streams of commands: the terminal or log of the process, files, pipes, and strings."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Protocol

from dryrack.shell.process import Pause, Until

# A writer whose reader never reads ends at this size.
PIPE_BYTES_MAX = 64 << 20


class ClosedPipeError(Exception):
    """The reader of a pipe has ended; the writer ends, too."""


class Writer(Protocol):
    """Takes output."""

    def write(self, data: bytes) -> None: ...


class Reader(Protocol):
    """Gives input: some bytes, or none at its end."""

    def read(self) -> Generator[Pause, None, bytes]: ...


@dataclass(frozen=True, slots=True)
class Call:
    """A writer that calls a function."""

    function: Callable[[bytes], None]

    def write(self, data: bytes) -> None:
        self.function(data)


class Pipe:
    """Bytes from writers to one reader. `Pipe.of` is one that has its content already."""

    def __init__(self) -> None:
        self._content = bytearray()
        self.is_complete = False
        self.is_broken = False

    @classmethod
    def of(cls, content: bytes) -> "Pipe":
        pipe = cls()
        pipe.write(content)
        pipe.is_complete = True
        return pipe

    def write(self, data: bytes) -> None:
        if self.is_broken or len(self._content) > PIPE_BYTES_MAX:
            raise ClosedPipeError
        self._content += data

    def read(self) -> Generator[Pause, None, bytes]:
        if not self._content and not self.is_complete:
            yield Until(lambda: bool(self._content) or self.is_complete)
        content = bytes(self._content)
        self._content.clear()
        return content

    def unread(self, data: bytes) -> None:
        self._content[:0] = data


@dataclass(frozen=True, slots=True)
class Streams:
    """The streams of a command by descriptor."""

    input: Pipe
    output: Writer
    error: Writer


def read_all(source: Pipe) -> Generator[Pause, None, bytes]:
    """Read up to the end of the input."""
    parts: list[bytes] = []
    while part := (yield from source.read()):
        parts.append(part)
    return b"".join(parts)


def read_line(source: Pipe) -> Generator[Pause, None, bytes]:
    """Read one line with its newline; without one only at the end of the input."""
    line = b""
    while b"\n" not in line:
        part = yield from source.read()
        if not part:
            return line
        line += part
    first, newline, rest = line.partition(b"\n")
    source.unread(rest)
    return first + newline
