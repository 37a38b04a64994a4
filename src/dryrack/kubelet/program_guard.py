"""
Kill driver programs when the process that started them ends. Runs as a script.

    python program_guard.py MARK [DIRECTORY]

That process holds the other end of standard input. When it is closed, however the process ended,
the guard kills every process whose environment has the entry MARK, and removes the directory.
Processes that a driver starts inherit the entry, so the guard finds them, too.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

# A process that is being started can be missed once.
_SCANS_MAX = 20


def main(mark: str, directory: str) -> None:
    sys.stdin.buffer.read()
    for _ in range(_SCANS_MAX):
        left = _processes_with(mark.encode())
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            break
    if directory:
        shutil.rmtree(directory, ignore_errors=True)


def _processes_with(mark: bytes) -> list[int]:
    """Return the processes that have an entry in their environment, without this one."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            if int(entry.name) == os.getpid():
                continue
            # The environment of a process that has ended is empty.
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
