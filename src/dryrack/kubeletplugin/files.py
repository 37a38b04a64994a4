"""
The file system as a port, and atomic replacement on top of it.

Everything that the plugin keeps on disk uses these few operations, so a test can end the process at
any of them.
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
    """The operations of a file system that the plugin uses; each call may be the last."""

    def make_directory(self, path: Path, mode: int) -> None: ...

    def names(self, directory: Path) -> tuple[str, ...]:
        """Return the files in a directory, in order; () if it does not exist."""
        ...

    def read(self, path: Path) -> bytes | None:
        """Return the content, or None if the file does not exist."""
        ...

    def write(self, path: Path, data: bytes, mode: int) -> None:
        """Create a file or overwrite it in place, and wait until it is on disk."""
        ...

    def write_cached(self, path: Path, data: bytes, mode: int) -> None:
        """Do the same without waiting: a power failure may lose the content."""
        ...

    def rename(self, old: Path, new: Path) -> None: ...

    def remove(self, path: Path) -> None:
        """Remove a file, if it exists."""
        ...

    def remove_tree(self, path: Path) -> None:
        """Remove a directory with its contents, if it exists."""
        ...

    def sync(self, directory: Path) -> None:
        """Wait until names that were added or removed are on disk."""
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
    Create a file that survives a power failure.

    A process that ends in between leaves an incomplete file, so the content needs an end mark.
    """
    files.write(path, data, _PRIVATE)
    files.sync(path.parent)


def replace_file(files: FileSystem, path: Path, data: bytes) -> None:
    """
    Replace the content of a file; the new content survives a power failure.

    A process that ends in between leaves the old content.
    """
    temporary = _temporary(path)
    files.write(temporary, data, _PRIVATE)
    files.rename(temporary, path)
    files.sync(path.parent)


def replace_cached_file(files: FileSystem, path: Path, data: bytes, mode: int) -> None:
    """Do the same without waiting, for content that can be made again after a power failure."""
    temporary = _temporary(path)
    files.write_cached(temporary, data, mode)
    files.rename(temporary, path)


def remove_file(files: FileSystem, path: Path) -> None:
    """Remove a file, also with regard to a power failure."""
    files.remove(path)
    files.sync(path.parent)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}{_TEMPORARY}")


def is_temporary(name: str, prefix: str = "") -> bool:
    """Return True if a file was left by a process that ended in `replace_file`."""
    return name.startswith(f".{prefix}") and name.endswith(_TEMPORARY)
