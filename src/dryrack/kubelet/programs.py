"""
Start the program of a driver once for each node, as a DaemonSet does.

A program that exits starts again after a back-off. All programs end with this process, even if it
is killed: a guard process then kills them, and the processes that they have started.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.client.timekeeping import deadline, sleep
from dryrack.kubelet import program_guard
from dryrack.kubelet.registration import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.client.timekeeping import Timekeeper

_logger = logging.getLogger(__name__)

LOG = "driver.log"
_MARK = "DRYRACK_DRIVER_PROGRAM"
# Removing the directory of a long run takes a moment.
_GUARD_SECONDS_MAX = 30.0
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


@contextmanager
def start_guard(directory: Path | None = None) -> Iterator[Mapping[str, str]]:
    """
    Yield environment variables for programs that must not survive this process.

    If this process ends in the block, in whatever way, a guard kills the programs that have these
    variables, and removes the directory. It does the same at the end of the block.
    """
    value = uuid.uuid4().hex
    words = [sys.executable, "-I", "-S", program_guard.__file__]
    guard = subprocess.Popen(
        [*words, f"{_MARK}={value}", str(directory or "")],
        stdin=subprocess.PIPE,
        # Ctrl-C is for the run, which then stops its programs; the guard comes after it.
        start_new_session=True,
    )
    try:
        yield {_MARK: value}
    finally:
        guard.communicate(timeout=_GUARD_SECONDS_MAX)


@dataclass(slots=True)
class DriverPrograms:
    """The program of a driver, which runs once for each node."""

    words: Sequence[str]
    kubeconfig: str
    clock: Timekeeper
    _running: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)
    _rebooted: set[str] = field(default_factory=set)
    _guard: ExitStack = field(default_factory=ExitStack)
    # The environment variable by which the guard finds the programs; empty before the first start.
    _mark: Mapping[str, str] = field(default_factory=dict)

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
        await asyncio.to_thread(self._guard.close)

    async def _start(self, node: str, directory: Path) -> asyncio.subprocess.Process:
        places = places_of(node, directory, self.kubeconfig)
        words = [fill(each, places) for each in self.words]
        path = directory / LOG
        if path.exists() and path.stat().st_size > _LOG_BYTES_MAX:
            path.replace(path.with_suffix(".log.1"))
        self._mark = self._mark or self._guard.enter_context(start_guard())
        environment = {**os.environ, **self._mark, "NODE_NAME": node}
        if self.kubeconfig:
            environment["KUBECONFIG"] = self.kubeconfig
        with path.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *words,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._running[node] = process
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


def _kill_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
