"""
From names on the command line to bytes: the one place of this face that reads files.

A name that cannot be read is a mistake in how the command was called (exit 2). What the bytes
say is judged later and elsewhere; a file that reads well but says something wrong is a mistake
in its content (exit 1).
"""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO

from dryrack.base.errors import DryrackError
from dryrack.base.limits import FILE_BYTES_MAX
from dryrack.cli.output import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STDIN = "-"
# From here on somebody at a terminal wonders whether anything happens.
_PATIENCE_MEGABYTES = 4
# Of a directory, those that kubectl reads.
_SUFFIXES = (".json", ".yaml", ".yml")


class UsageError(DryrackError):
    """The command was called wrongly; nothing was done."""


@dataclass(frozen=True, slots=True)
class Source:
    """One input as it was read."""

    name: str
    content: bytes


def read_sources(names: Sequence[str]) -> tuple[Source, ...]:
    if not names:
        raise UsageError("no input; name files with -f FILE, or - for standard input")
    if names.count(STDIN) > 1:
        raise UsageError("-: standard input can be read once; name it once")
    sources = tuple(source for name in names for source in _sources(name))
    megabytes = sum(len(source.content) for source in sources) // 1_000_000
    if megabytes >= _PATIENCE_MEGABYTES and sys.stderr.isatty():
        say(f"reading {megabytes} MB …")
    return sources


def _sources(name: str) -> Sequence[Source]:
    """
    Return what is in a file, or in the files of a directory that are not empty.

    kubectl passes over an empty file in a directory, too.
    """
    files = _files(name)
    found = [_read(file) for file in files]
    if files == (name,):
        return found
    filled = [source for source in found if not _is_empty(source.content)]
    if not filled:
        raise UsageError(f"{name}: all {', '.join(_SUFFIXES)} files in it are empty; name others")
    return filled


def _is_empty(content: bytes) -> bool:
    """Return whether a file has comments and ends of documents at most."""
    lines = (line.strip() for line in content.splitlines())
    return all(not line or line.startswith(b"#") or line == b"---" for line in lines)


def read_source(name: str) -> Source:
    """Of one file, where several make no sense."""
    if name and Path(name).is_dir():
        raise UsageError(f"{name}: is a directory; name a file in it")
    return _read(name)


def _files(name: str) -> Sequence[str]:
    """A directory stands for the manifests in it, as it does for kubectl."""
    path = Path(name)
    if not name or not path.is_dir():
        return (name,)
    found = sorted(str(each) for each in path.iterdir() if each.suffix in _SUFFIXES)
    if not found:
        raise UsageError(f"{name}: a directory without {', '.join(_SUFFIXES)} files; name others")
    return found


def _read(name: str) -> Source:
    if name == STDIN:
        return Source("<stdin>", _standard_input())
    if not name:
        raise UsageError("a file without a name; is a variable in the command empty?")
    try:
        with Path(name).open("rb") as file:
            return Source(name, _content(file, name))
    except FileNotFoundError:
        raise UsageError(f"{name}: no such file; check the path") from None
    except OSError as error:
        raise UsageError(
            f"{name}: {(error.strerror or str(error)).lower()}; check it can be read"
        ) from None


@contextmanager
def without_pauses() -> Iterator[None]:
    """
    For reading: millions of small objects are made, and none is dropped before the end.

    Looking for garbage among them would take half of the time, and again whenever more are made
    later; so they are set aside.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _standard_input() -> bytes:
    # Python has no stream at all for what was closed before it began.
    stream: TextIO | None = sys.stdin
    if stream is None:
        raise UsageError("-: standard input is closed; name a file, or pipe something into it")
    return _content(stream.buffer, STDIN)


def _content(file: BinaryIO, name: str) -> bytes:
    """Return all bytes of an input; raise if it exceeds the limit."""
    content = file.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise UsageError(
            f"{name}: larger than {FILE_BYTES_MAX >> 20} MiB, the limit for one input; split it"
        )
    return content
