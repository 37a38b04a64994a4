"""Check the directory of virtual kubelets, and the driver program that runs for each node."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.cli.files import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

# The kernel refuses longer paths of sockets.
_SOCKET_BYTES_MAX = 107
# The directory must leave room for the name of a driver, such as dra.cpu or gpu.example.com.
_DRIVER_BYTES_MIN = 20


def kubelet_directory(text: str, node: str) -> Path:
    """Return the directory for drivers; raise if it cannot be used for nodes with such names."""
    directory = Path(text).absolute()
    longest = str(directory / node / "plugins_registry" / "-reg.sock")
    room = _SOCKET_BYTES_MAX - len(longest.encode())
    if room < _DRIVER_BYTES_MIN:
        raise UsageError(
            f"--kubelet-dir {text}: the path is {_DRIVER_BYTES_MIN - room} bytes too long for "
            f"sockets such as {node}/plugins_registry/DRIVER-reg.sock, whose paths are limited to "
            f"{_SOCKET_BYTES_MAX} bytes; use a shorter path, for example /tmp/kubelets"
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--kubelet-dir {text}: {error.strerror}; name a directory") from None
    if not os.access(directory, os.W_OK | os.X_OK):
        raise UsageError(f"--kubelet-dir {text}: not writable; name another directory")
    return directory


def driver_program(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a program with its absolute path; raise if it does not exist."""
    from dryrack.kubelet import ProgramError, find_program

    try:
        return find_program(words)
    except ProgramError as error:
        raise UsageError(str(error)) from None
