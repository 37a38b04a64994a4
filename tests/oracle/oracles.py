"""
Kubernetes' allocator and CEL, as Python objects that answer cases.

An oracle is one process that is asked over its standard input and answers over its standard
output, in order. Writing and reading have a thread each, so neither side can wait for a pipe
that the other fills, and the process works on the next batch while the caller looks at this
one. Leaving the `with` block ends the process, whatever it is doing.

    with allocator_oracle() as oracle:
        for case, answer in oracle.ask(cases):
            …
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import msgspec
from tests.golang import build

from dryrack.kinds.releases import Release

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping
    from types import TracebackType

Case: TypeAlias = "Mapping[str, Any]"

# Enough to keep both sides busy, few enough that an answer is never long in coming.
BATCH_CASES = 64

# A batch in which every case needs its whole default timeout of 10 s, and a little more.
BATCH_SECONDS_MAX = BATCH_CASES * 10.0 + 60.0

MODULE = Path(__file__).parent / "go"
# The release of the packages in the module.
RELEASE = Release.V1_37


class OracleError(Exception):
    """The oracle ended or refused a case; the text is what it said."""


class AllocatorAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer of the real allocator for a case."""

    results: tuple[dict[str, Any], ...] = ()
    error: str = ""
    fatal: bool = False
    timeout: bool = False
    panic: str = ""
    allocate_one_calls: int = 0
    nanos: int = 0


class CelAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer of the real CEL environment for an expression and a device."""

    compile_error: str = ""
    match: bool = False
    match_error: str = ""
    panic: str = ""
    cost: int = 0
    actual_cost: int | None = None
    nanos_per_run: int = 0
    compile_nanos: int = 0


Answer = TypeVar("Answer")
Asked = TypeVar("Asked", bound="Mapping[str, Any]")


class Oracle(Generic[Answer]):
    """One running program; `ask` it as often as you like inside the `with` block."""

    def __init__(self, program: Path, answer: type[Answer], *arguments: str) -> None:
        self._command = [str(program), *arguments]
        self._decode = msgspec.json.Decoder(answer).decode
        self._encode = msgspec.json.Encoder().encode

    def __enter__(self) -> Oracle[Answer]:
        self._talk = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._talk
        )
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="oracle-writer")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="oracle-reader")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Killed first: its end frees a thread that still waits for one of the pipes.
        self.process.kill()
        self.process.wait()
        self._writer.shutdown(cancel_futures=True)
        self._reader.shutdown(cancel_futures=True)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self._talk.close()

    def ask(self, cases: Iterable[Asked]) -> Generator[tuple[Asked, Answer]]:
        """
        Each case with its answer, in order; cases are taken from the iterable as needed.

        Every batch has its own turn with the reader, so that a stream may be left unfinished,
        and others may be asked while it is.
        """
        rest = iter(cases)
        under_way: deque[tuple[list[Asked], Future[list[bytes]]]] = deque()
        while batch := list(islice(rest, BATCH_CASES)):
            self._writer.submit(self._write, b"".join(self._encode(c) + b"\n" for c in batch))
            under_way.append((batch, self._reader.submit(self._read, len(batch))))
            if len(under_way) > 1:
                yield from self._answers(*under_way.popleft())
        while under_way:
            yield from self._answers(*under_way.popleft())

    def _answers(
        self, batch: list[Asked], lines: Future[list[bytes]]
    ) -> Iterator[tuple[Asked, Answer]]:
        for case, line in zip(batch, lines.result(BATCH_SECONDS_MAX), strict=True):
            yield case, self._decode(line)

    def _write(self, payload: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(payload)
            self.process.stdin.flush()
        except BrokenPipeError:
            # The reader sees the end of the process too, and says why.
            return

    def _read(self, count: int) -> list[bytes]:
        assert self.process.stdout is not None
        lines = list(islice(self.process.stdout, count))
        if len(lines) < count:
            self._talk.seek(0)
            said = self._talk.read().decode(errors="replace").strip()
            raise OracleError(f"{self._command[0]} ended before its answer: {said[-4000:]}")
        return lines


def allocator_oracle(module: Path = MODULE) -> Oracle[AllocatorAnswer]:
    """The allocator of the reference release, built if need be."""
    return Oracle(build(module).path("allocator"), AllocatorAnswer)


def cel_oracle(module: Path = MODULE) -> Oracle[CelAnswer]:
    """The CEL environment of the reference release, built if need be."""
    return Oracle(build(module).path("cel"), CelAnswer)
