"""
Instances of a plugin on one node: one alone, or several during a rolling update.

All instances hold kernel locks on files in the directory of the plugin; the kernel releases them
when the process ends, in whatever way. An instance that runs alone shuts out all others. Instances
of a rolling update, each with a UID of its own, accept each other and shut out an instance that
wants to run alone.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.cluster.private_files import open_private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NEWEST = "newest"


class InstanceError(DryrackError):
    """The plugin cannot run on this node."""


@dataclass(frozen=True, slots=True)
class Instance:
    """This process, as one of the instances in the directory of a plugin."""

    directory: Path
    uid: str
    """The UID of its pod; "" if it runs alone."""
    lock: int
    """A descriptor of the file that all instances lock."""

    def is_newest(self) -> bool:
        """Return whether this instance publishes: the one that started last does."""
        if not self.uid:
            return True
        try:
            newest = (self.directory / _NEWEST).read_text()
        except OSError:
            return True
        return newest == self.uid or not _is_locked(_own_lock(self.directory, newest))

    def forget_killed(self) -> tuple[str, ...]:
        """Return the UIDs of instances that ended without cleaning up, each once."""
        locks = [path for path in self.directory.glob("plugin-*.lock") if not _is_locked(path)]
        for path in locks:
            path.unlink(missing_ok=True)
        return tuple(path.stem.removeprefix("plugin-") for path in locks)

    def is_last(self) -> bool:
        """Return whether no other instance runs; if so, no other can start any more."""
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(self.lock, fcntl.LOCK_SH)
            return False
        return True


@contextmanager
def instance(directory: Path, uid: str = "") -> Iterator[Instance]:
    """Hold the locks in a directory for the length of a block."""
    try:
        directory.mkdir(mode=0o750, parents=True, exist_ok=True)
        lock = open_private(directory / "plugin.lock", os.O_RDWR)
    except OSError as error:
        raise InstanceError(
            f"{directory}: {error.strerror}; run as root, or set --kubelet-dir and --cdi-dir"
        ) from None
    with _closing(lock):
        if not uid:
            _lock(
                lock,
                fcntl.LOCK_EX,
                f"{directory}: another plugin uses this directory; stop it first",
            )
            yield Instance(directory, uid, lock)
            return
        _lock(
            lock,
            fcntl.LOCK_SH,
            f"{directory}: a plugin without --rolling-update-uid uses this directory",
        )
        path = _own_lock(directory, uid)
        with _closing(open_private(path, os.O_RDWR)) as own:
            _lock(own, fcntl.LOCK_EX, f"{directory}: another plugin has the UID {uid}")
            with os.fdopen(open_private(directory / _NEWEST, os.O_RDWR), "w") as file:
                file.truncate()
                file.write(uid)
            try:
                yield Instance(directory, uid, lock)
            finally:
                path.unlink(missing_ok=True)


@contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    """Close a descriptor after a block, which releases its locks."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _own_lock(directory: Path, uid: str) -> Path:
    return directory / f"plugin-{uid}.lock"


def _lock(descriptor: int, how: int, refusal: str) -> None:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InstanceError(refusal) from None


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
