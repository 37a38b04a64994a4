"""Lock a file for one process at a time; the kernel releases the lock when the process ends."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.cluster.private_files import open_private

if TYPE_CHECKING:
    from pathlib import Path


class HeldError(DryrackError):
    """Another process holds the file."""


def hold(path: Path) -> int:
    """Lock a file, and return the descriptor; closing it releases the lock."""
    descriptor = open_private(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(descriptor, 32).decode(errors="replace").strip()
        os.close(descriptor)
        raise HeldError(
            f"{path.parent}: in use by process {holder or 'unknown'}; stop it, or choose another "
            "directory"
        ) from None
    os.truncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())
    return descriptor
