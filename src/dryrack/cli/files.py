"""
Read the files that the command line names.

A file that cannot be read is wrong usage (exit 2). A file with invalid content is an error in
its content (exit 1), which the readers of the content report.
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

    from dryrack.kinds.releases import Release

STDIN = "-"
# From this size on, reading takes so long that a note on the terminal helps.
_PATIENCE_MEGABYTES = 4
# The files of a directory that kubectl reads.
_SUFFIXES = (".json", ".yaml", ".yml")


class UsageError(DryrackError):
    """The command was called wrongly; nothing was done."""


def parse_release(text: str) -> Release:
    """Return the release that `--release` names."""
    from dryrack.kinds.releases import Release, ReleaseError

    try:
        return Release.parse(text)
    except ReleaseError as error:
        raise UsageError(f"--release {error}") from None


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
    sources = [_read(file) for file in files]
    if files == (name,):
        return sources
    sources = [source for source in sources if not _is_empty(source.content)]
    if not sources:
        kinds = ", ".join(_SUFFIXES)
        raise UsageError(f"{name}: all {kinds} files in the directory are empty; name other files")
    return sources


def _is_empty(content: bytes) -> bool:
    """Return whether a file has only comments and document separators."""
    lines = (line.strip() for line in content.splitlines())
    return all(not line or line.startswith(b"#") or line == b"---" for line in lines)


def read_source(name: str) -> Source:
    """Return the content of one file that is not a directory."""
    if name and Path(name).is_dir():
        raise UsageError(f"{name}: this is a directory; name a file in it")
    return _read(name)


def _files(name: str) -> Sequence[str]:
    """Return the manifests of a directory, as kubectl does, or the file itself."""
    path = Path(name)
    if not name or not path.is_dir():
        return (name,)
    names = sorted(str(each) for each in path.iterdir() if each.suffix in _SUFFIXES)
    if not names:
        kinds = ", ".join(_SUFFIXES)
        raise UsageError(f"{name}: the directory has no {kinds} files; name other files")
    return names


def _read(name: str) -> Source:
    if name == STDIN:
        return Source("<stdin>", _standard_input())
    if not name:
        raise UsageError("'': a file name is empty; check the variables in the command")
    try:
        with Path(name).open("rb") as file:
            return Source(name, _content(file, name))
    except FileNotFoundError:
        raise UsageError(f"{name}: no such file; check the path") from None
    except OSError as error:
        raise UsageError(
            f"{name}: {(error.strerror or str(error)).lower()}; check the permissions of the file"
        ) from None


@contextmanager
def without_pauses() -> Iterator[None]:
    """
    Read without garbage collection: reading creates millions of objects and drops none.

    Collection would take half of the time, and again later, so the objects are frozen.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _standard_input() -> bytes:
    # Python has no stream if standard input was closed before the process started.
    stream: TextIO | None = sys.stdin
    if stream is None:
        raise UsageError("-: standard input is closed; name a file, or pipe data into the command")
    return _content(stream.buffer, STDIN)


def _content(file: BinaryIO, name: str) -> bytes:
    """Return all bytes of an input; raise if it exceeds the limit."""
    content = file.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise UsageError(
            f"{name}: larger than {FILE_BYTES_MAX >> 20} MiB, the limit for one input; split it"
        )
    return content
