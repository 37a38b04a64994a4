"""
Standard output and standard error, through which all text leaves the process.

The streams escape control characters and commands for GitHub runners, which may come from files,
clusters or names. Styles that dryrack itself adds are marked with a token that no input can
contain, and libraries that draw write to `unfiltered`. If the reader of a pipe stops, as `head`
does, SIGPIPE ends the process, as it ends every Unix tool.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import secrets
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from dryrack.base.escaping import visible_lines, without_commands

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer

# An error handler for letters that the encoding of a terminal does not have.
_ERRORS = "dryrack.replace"
_SIMILAR = {"…": "...", "×": "x", "→": "->", "μ": "u", "µ": "u"}
_ESCAPE = "\x1b"
# Random in each process, so input cannot contain it.
_TRUSTED = f"\ue000{secrets.token_hex(8)}\ue001"
# Colors and weights, as in help texts.
_STYLE = re.compile(r"\x1b(?=\[[0-9;]*m)")
# A beginning of a line that may become a command: white space and a colon, or number signs.
_COMMAND_START = re.compile(r"[^\S\n]*+:?+#?#?+")


class SafeStream(io.TextIOWrapper):
    """A stream that escapes control characters and workflow commands in what is written."""

    trusts_styles = True
    """True while no command runs: styles pass without the token."""
    _line = ""
    """The written part of the current line, or as much of it as matters."""

    def write(self, text: str, /) -> int:
        if self.trusts_styles:
            text = _STYLE.sub(_TRUSTED, text)
        safe = without_commands(visible_lines(text), after=self._line)
        begun = (self._line + safe).rpartition("\n")[2]
        self._line = begun if _COMMAND_START.fullmatch(begun) else f"-{begun[-2:]}"
        return super().write(safe.replace(_TRUSTED, _ESCAPE))

    def write_unfiltered(self, text: str) -> int:
        self._line = ""
        return super().write(text)


class _Unfiltered(io.TextIOBase):
    """A view of a stream that writes text without escaping it."""

    def __init__(self, stream: SafeStream) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override] # writable in the base, for no reason
        return self._stream.encoding

    def write(self, text: str, /) -> int:
        return self._stream.write_unfiltered(text)

    def flush(self) -> None:
        # The finalizer of this view flushes, too. At exit, the stream can already be closed.
        if not self._stream.closed:
            self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


def unfiltered(stream: TextIO) -> TextIO:
    """Return a view of a stream that escapes nothing; only for text that is safe already."""
    return _Unfiltered(stream) if isinstance(stream, SafeStream) else stream  # type: ignore[return-value]


def trusted_style(text: str) -> str:
    """Return text whose escapes are styles of ours, which the streams let pass."""
    return text.replace(_ESCAPE, _TRUSTED) if isinstance(sys.stdout, SafeStream) else text


@contextmanager
def only_own_styles() -> Iterator[None]:
    """While a command runs, let only styles pass that `trusted_style` has marked."""
    streams = [each for each in (sys.stdout, sys.stderr) if isinstance(each, SafeStream)]
    for stream in streams:
        stream.trusts_styles = False
    try:
        yield
    finally:
        for stream in streams:
            stream.trusts_styles = True


def open_streams() -> None:
    """
    Replace both streams with safe ones.

    A stream that was closed before the start discards all text. A letter that a terminal cannot
    show is written as similar letters or as its number. If the reader of a stream is gone, writing
    raises `ReaderGone`.
    """
    codecs.register_error(_ERRORS, _replace)
    sys.stdout = _open(sys.stdout)
    sys.stderr = _open(sys.stderr)


def _replace(error: UnicodeError) -> tuple[str | bytes, int]:
    """Write the first letter that cannot be encoded as similar letters, or as its number."""
    if isinstance(error, UnicodeEncodeError):
        similar = _SIMILAR.get(error.object[error.start])
        if similar is not None:
            return similar, error.start + 1
        error.end = error.start + 1
    return codecs.backslashreplace_errors(error)


def _open(stream: TextIO | None) -> TextIO:
    if stream is None:
        return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    return SafeStream(
        io.BufferedWriter(_Pipe(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors=_ERRORS,
        # With PYTHONUNBUFFERED, each write would go out by itself; each line is enough.
        line_buffering=stream.line_buffering or stream.write_through,
    )


class ReaderGone(SystemExit):
    """
    Raised when the reader of an output stream is gone.

    It passes click, event loops and task groups as the end of the process does; a
    BrokenPipeError would look like the loss of a connection to the cluster.
    """


class _Pipe(io.FileIO):
    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise ReaderGone from None


def end_by_broken_pipe() -> None:
    """End the process by SIGPIPE, which Python ignores by default."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)
