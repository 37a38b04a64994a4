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
        self.write_cached(path, data, mode)

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
        """Return True if this operation is the last one."""
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

    def write_cached(self, path: Path, data: bytes, mode: int) -> None:
        self.write(path, data, mode)

    def rename(self, old: Path, new: Path) -> None:
        self._step()
        self._host.rename(old, new)

    def remove(self, path: Path) -> None:
        self._step()
        self._host.remove(path)

    def remove_tree(self, path: Path) -> None:
        self._step()
        self._host.remove_tree(path)

    def sync(self, directory: Path) -> None:
        self._step()
        self._host.sync(directory)


class VolatileFileSystem(UnsyncedFileSystem):
    """A machine that may lose its power: what is on its disk is what was waited for."""

    def __init__(self) -> None:
        self._synced: set[Path] = set()
        """Files whose content is on disk, under whatever name."""
        self._disk: dict[Path, bytes] = {}

    def write(self, path: Path, data: bytes, mode: int) -> None:
        super().write_cached(path, data, mode)
        self._synced.add(path)
        if path in self._disk:
            self._disk[path] = data

    def write_cached(self, path: Path, data: bytes, mode: int) -> None:
        super().write_cached(path, data, mode)
        self._synced.discard(path)

    def rename(self, old: Path, new: Path) -> None:
        super().rename(old, new)
        self._synced.discard(new)
        if old in self._synced:
            self._synced.remove(old)
            self._synced.add(new)

    def sync(self, directory: Path) -> None:
        super().sync(directory)
        for path in [each for each in self._disk if each.parent == directory]:
            del self._disk[path]
        for path in directory.iterdir():
            if path.is_file():
                self._disk[path] = path.read_bytes() if path in self._synced else b""

    def lose_power(self, *directories: Path) -> None:
        """Afterwards these directories have what the disk has."""
        for directory in directories:
            for path in [each for each in directory.rglob("*") if each.is_file()]:
                path.unlink()
        for path, data in self._disk.items():
            path.write_bytes(data)
