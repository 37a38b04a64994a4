"""The driver program of a conformance run."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_TAIL_LINES = 15
_STOP_SECONDS_MAX = 15.0


class BenchError(DryrackError):
    """The suite cannot run: the driver does not start, register, or publish devices."""


@dataclass(slots=True)
class Program:
    """A driver program, with the words to start it."""

    words: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    process: asyncio.subprocess.Process | None = None
    _start: int = field(default=0, init=False)

    async def start(self) -> None:
        """Start the program; its output goes to the log."""
        with self.log.open("ab") as log:
            self._start = log.tell()
            try:
                self.process = await asyncio.create_subprocess_exec(
                    *self.words,
                    env={**os.environ, **self.environment},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    # A signal reaches the driver also if a script started it.
                    start_new_session=True,
                )
            except OSError as error:
                raise BenchError(f"{self.words[0]}: {error.strerror}") from None

    async def stop(
        self, number: int = signal.SIGTERM, seconds: float = _STOP_SECONDS_MAX
    ) -> int | None:
        """Send a signal and return the exit status; None if the program did not end in time."""
        if self.process is None:
            return None
        process, self.process = self.process, None
        _send(process, number)
        try:
            async with asyncio.timeout(seconds):
                return await process.wait()
        except TimeoutError:
            return None
        finally:
            # Processes that the program started end with it, as in a container.
            _send(process, signal.SIGKILL)
            await process.wait()

    def send(self, number: int) -> None:
        """Send a signal to the program."""
        if self.process is not None:
            _send(self.process, number)

    @property
    def has_ended(self) -> bool:
        return self.process is not None and self.process.returncode is not None

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.returncode is None

    def output(self) -> str:
        """Return the log since the last start."""
        with suppress(OSError), self.log.open("rb") as log:
            log.seek(self._start)
            return log.read().decode(errors="replace")
        return ""

    def tail(self) -> str:
        """Return the last lines of the log, or the panic, and how the program ended."""
        lines = self.output().splitlines()
        panics = [number for number, line in enumerate(lines) if line.startswith("panic: ")]
        lines = lines[panics[0] :][:_TAIL_LINES] if panics else lines[-_TAIL_LINES:]
        if self.process is not None and self.process.returncode is not None:
            lines.append(f"({_end_of(self.process.returncode)})")
        return "\n".join(lines)


def _send(process: asyncio.subprocess.Process, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _end_of(status: int) -> str:
    if status >= 0:
        return f"the program ended with status {status}"
    return f"signal {signal.Signals(-status).name} ended the program"
