"""
Processes that are started, watched and stopped by identity.

A process is known by its number and its start time, so that a number which the system gave
to somebody else in the meantime is never signalled. A process of a test dies with the test
run, even if that is killed; one that was started to stay is written down in a file, and found
there by whoever stops it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.realcluster import ends

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# kube-apiserver drains for some seconds after SIGTERM.
STOP_SECONDS_MAX = 20.0
_LOG_LINES_SHOWN = 15


class ProcessError(Exception):
    """A process ended, or did not get ready; the text carries the end of its log."""


@dataclass(frozen=True, slots=True)
class Identity:
    """One process, and no other that gets its number later."""

    name: str
    pid: int
    born: int

    def alive(self) -> bool:
        return _born(self.pid) == self.born


@dataclass(slots=True)
class Processes:
    """The processes of one cluster, in the order of their start."""

    directory: Path
    detached: bool = False
    running: list[Identity] = field(default_factory=list)
    _children: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def _record(self) -> Path:
        return self.directory / "processes.json"

    def start(
        self, name: str, command: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> Identity:
        log = self.log(name)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            child = subprocess.Popen(
                self._leashed(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        self._children[child.pid] = child
        identity = Identity(name, child.pid, _born(child.pid) or 0)
        self.running.append(identity)
        self._write()
        return identity

    def log(self, name: str) -> Path:
        return self.directory / "logs" / f"{name}.log"

    def check(self) -> None:
        """Says at once when a process has ended that should run."""
        for identity in self.running:
            if not identity.alive():
                raise ProcessError(f"{identity.name} ended; {self.tail(identity.name)}")

    def tail(self, name: str) -> str:
        lines = self.log(name).read_text(errors="replace").splitlines()[-_LOG_LINES_SHOWN:]
        return "\n".join([f"the end of {self.log(name)}:", *lines])

    def stop_all(self) -> None:
        """Last started, first stopped: with etcd gone, kube-apiserver would not end."""
        for identity in reversed(self.running):
            self.stop(identity)
        self.running.clear()
        self._record.unlink(missing_ok=True)

    def kill_all(self) -> None:
        """Kill all processes in any order, if all of them are discarded."""
        for identity in self.running:
            if identity.alive():
                os.kill(identity.pid, signal.SIGKILL)
        self.stop_all()

    def stop(self, identity: Identity) -> None:
        with ends.held([identity.pid]) as held:
            for number in (signal.SIGTERM, signal.SIGKILL):
                if identity.alive():
                    os.kill(identity.pid, number)
                if not identity.alive() or ends.await_end(held, STOP_SECONDS_MAX):
                    break
        child = self._children.pop(identity.pid, None)
        if child is not None:
            child.wait()

    def kill(self, identity: Identity) -> None:
        """Kill the process, like a machine that loses power."""
        if identity.alive():
            os.kill(identity.pid, signal.SIGKILL)
        self.stop(identity)
        self.running.remove(identity)

    def release(self) -> None:
        """Lets the processes outlive this one."""
        for child in self._children.values():
            # It is not waited for here, on purpose.
            child.returncode = 0
        self._children.clear()

    def _leashed(self, command: Sequence[str]) -> list[str]:
        if self.detached:
            return list(command)
        setpriv = shutil.which("setpriv")
        assert setpriv is not None, "setpriv is part of util-linux, which every Debian has"
        return [setpriv, "--pdeathsig", "KILL", "--", *command]

    def _write(self) -> None:
        self._record.write_text(json.dumps([asdict(identity) for identity in self.running]))


def recorded(directory: Path) -> Processes:
    """The processes that an earlier run started in `directory`."""
    record = directory / "processes.json"
    entries = json.loads(record.read_text()) if record.exists() else []
    return Processes(directory, detached=True, running=[Identity(**entry) for entry in entries])


def _born(pid: int) -> int | None:
    """Return when the process started, in ticks since boot; None if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *rest = stat.rpartition(")")[2].split()
    return None if state == "Z" else int(rest[18])
