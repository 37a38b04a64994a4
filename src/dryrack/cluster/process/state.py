"""
The state directories of clusters that run as processes.

A cluster NAME has a directory that only its owner can read: its keys, its kubeconfig, its log, and
a record of the process. A process is identified by its number and its start time, so that a process
that got the same number later is never signalled.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.cluster.private_files import (
    check_owner,
    check_parent,
    ensure_own_directory,
    write_private,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

# The name of a cluster that was given none.
DEFAULT = "default"
# A cluster stops in a moment; one that is saving a large journal may take some more.
STOP_SECONDS_MAX = 15.0
_POLL_SECONDS = 0.02
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class ClusterStateError(DryrackError):
    """A cluster is not in the state that the caller expects."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process, identified also if its number is used again."""

    pid: int
    born: str

    @classmethod
    def of(cls, pid: int) -> Process:
        return cls(pid, _born(pid) or "")

    def is_alive(self) -> bool:
        return bool(self.born) and _born(self.pid) == self.born

    def stop(self) -> None:
        """Ask the process to end, and kill it if it does not."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.is_alive():
                return
            os.kill(self.pid, number)
            deadline = time.monotonic() + STOP_SECONDS_MAX
            while self.is_alive() and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)


@dataclass(frozen=True, slots=True)
class Running:
    """The record of a running cluster."""

    process: Process
    server: str
    data_directory: str
    merged_into: str
    """The kubeconfig of the user that names the cluster, or ""."""
    catalogue_files: tuple[str, ...] | None = None
    """The files on top of the packaged hardware catalog; None if the cluster has no catalog."""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The directory of one cluster."""

    name: str
    directory: Path

    @property
    def down_command(self) -> str:
        """The command that stops the cluster."""
        return "dryrack down" if self.name == DEFAULT else f"dryrack down --name {self.name}"

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def keys(self) -> Path:
        return self.directory / "keys"

    @property
    def log(self) -> Path:
        return self.directory / "log"

    @property
    def _record(self) -> Path:
        return self.directory / "running.json"

    def make(self) -> None:
        """Create the directory; refuse one that other users could have put files into."""
        try:
            ensure_own_directory(self.directory)
            check_parent(self.directory)
            # The directory may exist with another mode.
            self.directory.chmod(0o700)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise ClusterStateError(
                f"{self.directory}: {why}; set DRYRACK_HOME to a directory that you can write to"
            ) from None

    def write(self, running: Running) -> None:
        write_private(self._record, json.dumps(asdict(running)).encode(), lasts=False)

    def running(self) -> Running | None:
        """
        Return the record of the process if it is alive, else None.

        Refuse a directory of another user: its record and its kubeconfig would lead commands to
        that user's server.
        """
        try:
            check_owner(self.directory)
            check_parent(self.directory)
            raw = json.loads(self._record.read_text())
            found = Running(**{**raw, "process": Process(**raw["process"])})
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError):
            raise ClusterStateError(
                f"{self._record}: not a record of a cluster; remove it"
            ) from None
        return found if found.process.is_alive() else None

    def forget(self) -> None:
        """Delete the state of the cluster, except its data directory."""
        if self.directory.exists():
            shutil.rmtree(self.directory)

    def forget_all_but_log(self) -> None:
        """Delete the state of a cluster that ended by itself; keep the log, which says why."""
        for path in self.directory.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path != self.log:
                path.unlink()


def home(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory with the state of all clusters of the user."""
    if environment.get("DRYRACK_HOME"):
        return Path(environment["DRYRACK_HOME"])
    base = environment.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "dryrack"


def state_of(name: str, under: Path | None = None) -> ClusterState:
    if not _NAME.fullmatch(name):
        raise ClusterStateError(
            f'cluster name "{name}": use at most 63 lowercase letters, digits, and hyphens'
        )
    return ClusterState(name, (under or home()) / name)


def all_states(under: Path | None = None) -> tuple[ClusterState, ...]:
    """Return the clusters of this user that have a directory, by name."""
    directory = under or home()
    paths = sorted(directory.iterdir()) if directory.is_dir() else []
    own = [path.name for path in paths if path.lstat().st_uid == os.geteuid()]
    return tuple(ClusterState(name, directory / name) for name in own if _NAME.fullmatch(name))


def _born(pid: int) -> str | None:
    """Return the start time of a process; None if it does not run."""
    if os.path.isdir("/proc/self"):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        state, *rest = stat.rpartition(")")[2].split()
        return None if state == "Z" else rest[18]
    import subprocess

    command = ["ps", "-o", "lstart=", "-p", str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None
