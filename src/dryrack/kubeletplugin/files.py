"""
The file system as a port, and atomic replacement on top of it.

Everything that the plugin keeps on disk goes through these few operations, so that a test can end
the process at any of them.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

_PRIVATE = 0o600
_TEMPORARY = ".tmp"
_WRITING = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class FileSystem(Protocol):
    """What the plugin asks of a file system; each call may be the last."""

    def make_directory(self, path: Path, mode: int) -> None: ...

    def names(self, directory: Path) -> tuple[str, ...]:
        """The files in a directory, in order; none if it is not there."""
        ...

    def read(self, path: Path) -> bytes | None:
        """None if it is not there."""
        ...

    def write(self, path: Path, data: bytes, mode: int) -> None:
        """Creates a file or overwrites it in place, and waits until it is on disk."""
        ...

    def write_cached(self, path: Path, data: bytes, mode: int) -> None:
        """The same, and waits for no disk: it outlives the process, and maybe not the machine."""
        ...

    def rename(self, old: Path, new: Path) -> None: ...

    def remove(self, path: Path) -> None:
        """One that is not there is no error."""
        ...

    def remove_tree(self, path: Path) -> None:
        """A directory with all that is in it; one that is not there is no error."""
        ...

    def sync(self, directory: Path) -> None:
        """Waits until names that were added or removed are on disk."""
        ...


class HostFileSystem:
    """The file system of this machine."""

    def make_directory(self, path: Path, mode: int) -> None:
        path.mkdir(mode=mode, parents=True, exist_ok=True)

    def names(self, directory: Path) -> tuple[str, ...]:
        try:
            return tuple(sorted(os.listdir(directory)))
        except FileNotFoundError:
            return ()

    def read(self, path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None

    def write(self, path: Path, data: bytes, mode: int) -> None:
        descriptor = os.open(path, _WRITING, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)

    def write_cached(self, path: Path, data: bytes, mode: int) -> None:
        with os.fdopen(os.open(path, _WRITING, mode), "wb") as file:
            file.write(data)

    def rename(self, old: Path, new: Path) -> None:
        old.replace(new)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def remove_tree(self, path: Path) -> None:
        if path.is_dir():
            shutil.rmtree(path)

    def sync(self, directory: Path) -> None:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def create_file(files: FileSystem, path: Path, data: bytes) -> None:
    """
    Afterwards there is such a file, also after a power failure.

    Whoever dies on the way leaves a beginning of it: its end must tell that it is whole.
    """
    files.write(path, data, _PRIVATE)
    files.sync(path.parent)


def replace_file(files: FileSystem, path: Path, data: bytes) -> None:
    """
    Afterwards the file has the new content, also after a power failure.

    Whoever dies on the way leaves the old one.
    """
    temporary = _temporary(path)
    files.write(temporary, data, _PRIVATE)
    files.rename(temporary, path)
    files.sync(path.parent)


def replace_cached_file(files: FileSystem, path: Path, data: bytes, mode: int) -> None:
    """The same without waiting for a disk, for what can be made again after a power failure."""
    temporary = _temporary(path)
    files.write_cached(temporary, data, mode)
    files.rename(temporary, path)


def remove_file(files: FileSystem, path: Path) -> None:
    """Afterwards the file is gone, also after a power failure."""
    files.remove(path)
    files.sync(path.parent)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}{_TEMPORARY}")


def is_temporary(name: str, prefix: str = "") -> bool:
    """Whether a file is what somebody left who died in `replace_file`."""
    return name.startswith(f".{prefix}") and name.endswith(_TEMPORARY)
