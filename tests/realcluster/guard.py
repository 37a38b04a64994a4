"""
A process that cleans up after a test run that was killed.

A run starts one guard. It gives the run a directory for everything that is temporary, waits until
the run is gone, however it went, and then ends what is left: every process that has this directory
in its environment, every cluster below it, and the directory. A run that ended well has left
nothing but the directory.

    python -m tests.realcluster.guard DIRECTORY
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tests.realcluster import cluster, ends, kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.realcluster.cluster import Cluster, Parts
    from tests.realcluster.controlplane import Options

_CLONE = Path(__file__).parents[2]
_SECONDS_MAX = 120.0
_END_SECONDS_MAX = 10.0


@contextmanager
def throw_away(options: Options, parts: Parts | None = None) -> Iterator[Cluster]:
    """A cluster for the length of a block, or as long as this process lives."""
    ensure()
    bed = cluster.start(Path(tempfile.mkdtemp(prefix="c-")), options, parts)
    try:
        yield bed
    finally:
        bed.stop()


@cache
def ensure() -> Guard:
    """Clean up everything that is started from now on."""
    return Guard()


class Guard:
    """Waits for the end of this process."""

    def __init__(self) -> None:
        elsewhere = {**os.environ, "PYTHONPATH": f"{_CLONE}{os.pathsep}{_CLONE / 'src'}"}
        # pytest keeps the directories of some runs for debugging.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
        # Sockets are below it, and their paths must stay under 108 bytes.
        directory = tempfile.mkdtemp(prefix="dryrack-")
        tempfile.tempdir = os.environ["TMPDIR"] = directory
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.realcluster.guard", directory],
            stdin=subprocess.PIPE,
            cwd=_CLONE,
            env=elsewhere,
            # Ctrl-C is for the run, which then has things to do; the guard comes after it.
            start_new_session=True,
        )
        atexit.register(self._dismiss)

    @property
    def pid(self) -> int:
        """The process that tidies up; when it has ended, that is done."""
        return self._process.pid

    def _dismiss(self) -> None:
        self._process.communicate(timeout=_SECONDS_MAX)


def main(directory: Path) -> int:
    # Ends when the other end of the pipe is closed.
    sys.stdin.read()
    left = kernel.processes_with(f"TMPDIR={directory}")
    for pid, command in sorted(left.items()):
        sys.stderr.write(f"the test run left a process, which is ended: {pid} {command}\n")
    ends.kill(sorted(left), _END_SECONDS_MAX)
    for record in directory.glob("*/processes.json"):
        cluster.stop_recorded(record.parent)
    kernel.remove(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
