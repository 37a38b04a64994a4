"""
Start the program of a driver once for each node, as a DaemonSet does.

A program that exits starts again after a back-off. All programs end with this process, even if it
is killed: the kernel kills each program with its parent, and a guard process kills what the
programs have started.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.client.timekeeping import deadline, sleep
from dryrack.kubelet import program_guard, program_start
from dryrack.kubelet.registration import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.client.timekeeping import Timekeeper

_logger = logging.getLogger(__name__)

LOG = "driver.log"
# A program that does not end after SIGTERM is killed; `dryrack down` waits 15 seconds in all.
STOP_SECONDS_MAX = 5.0
# The back-off of a kubelet for containers that exit: none at first, then from 10 seconds on.
_RESTART_SECONDS = 10.0
_RESTART_SECONDS_MAX = 300.0
# A program that ran for so long starts without a back-off again.
_STABLE_SECONDS = 600.0
# A log that is larger when its program starts is kept as one older file.
_LOG_BYTES_MAX = 10 * 1024 * 1024


class ProgramError(DryrackError):
    """The program of a driver cannot be started."""


def places_of(node: str, directory: Path, kubeconfig: str) -> Mapping[str, str]:
    """Return the values of the placeholders in the words of a program, by name."""
    return {
        "node": node,
        "kubelet": str(directory),
        "plugins": str(directory / "plugins"),
        "registry": str(directory / REGISTRY),
        "cdi": str(directory / "cdi"),
        "kubeconfig": kubeconfig,
    }


def fill(word: str, places: Mapping[str, str]) -> str:
    """Return a word with the values of its placeholders; other braces stay."""
    return re.sub(r"\{(\w+)\}", lambda found: places.get(found[1], found[0]), word)


def find_program(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words with the absolute path of the program; raise if it does not exist."""
    path = shutil.which(words[0])
    if path is None:
        raise ProgramError(f"{words[0]}: no such program; name an executable file after --")
    return (str(Path(path).absolute()), *words[1:])


@dataclass(slots=True)
class DriverPrograms:
    """The program of a driver, which runs once for each node."""

    words: Sequence[str]
    kubeconfig: str
    clock: Timekeeper
    _running: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)
    _rebooted: set[str] = field(default_factory=set)
    _guard: asyncio.subprocess.Process | None = None
    _guard_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self, node: str, directory: Path) -> None:
        """Keep the program of a node running until the task is cancelled; then stop it."""
        wait = 0.0
        while True:
            began = self.clock.now()
            try:
                process = await self._start(node, directory)
            except OSError as error:
                _logger.warning("node %s: %s: %s", node, self.words[0], error.strerror)
            else:
                try:
                    status = await process.wait()
                finally:
                    await self._stop(node, process)
                if node in self._rebooted:
                    self._rebooted.discard(node)
                    wait = 0.0
                    continue
                _logger.warning(
                    "node %s: the driver ended with %s; see %s",
                    node,
                    f"signal {-status}" if status < 0 else f"exit status {status}",
                    directory / LOG,
                )
            if self.clock.now() - began > _STABLE_SECONDS:
                wait = 0.0
            await sleep(self.clock, wait)
            wait = min(max(2 * wait, _RESTART_SECONDS), _RESTART_SECONDS_MAX)

    def reboot(self, node: str) -> None:
        """Kill the program of a node, as a reboot does; it starts again at once."""
        process = self._running.get(node)
        if process is not None:
            self._rebooted.add(node)
            _kill_group(process.pid, signal.SIGKILL)

    async def close(self) -> None:
        """End the guard; call it when all programs have ended."""
        guard, self._guard = self._guard, None
        if guard is not None and guard.stdin is not None:
            guard.stdin.close()
            await guard.wait()

    async def _start(self, node: str, directory: Path) -> asyncio.subprocess.Process:
        places = places_of(node, directory, self.kubeconfig)
        words = [fill(each, places) for each in self.words]
        path = directory / LOG
        if path.exists() and path.stat().st_size > _LOG_BYTES_MAX:
            path.replace(path.with_suffix(".log.1"))
        environment = {**os.environ, "NODE_NAME": node}
        if self.kubeconfig:
            environment["KUBECONFIG"] = self.kubeconfig
        start = [sys.executable, "-I", "-S", program_start.__file__, str(os.getpid())]
        with path.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *start,
                *words,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._running[node] = process
        await self._report_to_guard("+", process.pid)
        return process

    async def _stop(self, node: str, process: asyncio.subprocess.Process) -> None:
        """End the program and its children: with SIGTERM, and after a while with SIGKILL."""
        self._running.pop(node, None)
        if process.returncode is None:
            _kill_group(process.pid, signal.SIGTERM)
            with suppress(TimeoutError):
                async with deadline(self.clock, self.clock.now() + STOP_SECONDS_MAX):
                    await process.wait()
        _kill_group(process.pid, signal.SIGKILL)
        await process.wait()
        await self._report_to_guard("-", process.pid)

    async def _report_to_guard(self, sign: str, group: int) -> None:
        async with self._guard_lock:
            if self._guard is None:
                self._guard = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", program_guard.__file__),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                )
            if self._guard.stdin is not None:
                with suppress(ConnectionError):
                    self._guard.stdin.write(f"{sign}{group}\n".encode())
                    await self._guard.stdin.drain()


def _kill_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
