"""A file system on which the process dies at a chosen operation."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.kubeletplugin.files import HostFileSystem

if TYPE_CHECKING:
    from pathlib import Path


NEVER = sys.maxsize


class Killed(BaseException):
    """The process is no more; nothing in it may catch this and go on."""


class UnsyncedFileSystem(HostFileSystem):
    """Waits for no disk: what a process that is killed has written, the kernel has."""

    def write(self, path: Path, data: bytes, mode: int) -> None:
        path.write_bytes(data)
        path.chmod(mode)

    def sync(self, directory: Path) -> None:
        assert directory.is_dir()


@dataclass(slots=True)
class MortalFileSystem:
    """
    Does what it is told until its last operation.

    That one is not done, or half done if it is a write: a kill leaves what the kernel had so far.
    Every operation after it fails likewise, because a dead process does nothing. With an `error`
    it is the disk that fails, at that operation alone.
    """

    last: int = NEVER
    is_half_done: bool = False
    error: OSError | None = None
    done: int = 0
    _host: HostFileSystem = field(default_factory=UnsyncedFileSystem)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def _count(self) -> bool:
        """Whether this is the last one."""
        with self._lock:
            self.done += 1
            if self.done > self.last and self.error is None:
                raise Killed
            return self.done == self.last

    def _step(self) -> None:
        if self._count():
            raise self.error or Killed

    def make_directory(self, path: Path, mode: int) -> None:
        self._step()
        self._host.make_directory(path, mode)

    def names(self, directory: Path) -> tuple[str, ...]:
        return self._host.names(directory)

    def read(self, path: Path) -> bytes | None:
        return self._host.read(path)

    def write(self, path: Path, data: bytes, mode: int) -> None:
        if self._count():
            if self.is_half_done:
                self._host.write(path, data[: len(data) // 2], mode)
            raise self.error or Killed
        self._host.write(path, data, mode)

    def rename(self, old: Path, new: Path) -> None:
        self._step()
        self._host.rename(old, new)

    def remove(self, path: Path) -> None:
        self._step()
        self._host.remove(path)

    def sync(self, directory: Path) -> None:
        self._step()
        self._host.sync(directory)
