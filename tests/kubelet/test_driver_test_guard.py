"""A run of `dryrack driver test` that is killed leaves no process and no directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kubelet.programs import short_directory

from dryrack.kubelet import start_guard

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS_MAX = 60.0
directory = pytest.fixture(short_directory)
# It starts a process of its own, as a script that wraps a driver does.
_DRIVER = "sleep 600 & echo $! > {work}/pid; echo started > {work}/started; wait"


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail after a minute."""
    end = time.monotonic() + _SECONDS_MAX
    while not condition():
        assert time.monotonic() < end, "the condition never held"
        os.sched_yield()


def processes_of(directory: Path) -> list[str]:
    """Return the processes whose environment names a directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(directory) in (entry / "environ").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_leaves_nothing(directory: Path, number: int) -> None:
    """The driver, its children, and the cluster end, whatever signal ended the run."""
    words = ("driver", "test", "--timeout", "300", "--keep", str(directory))
    run = subprocess.Popen(
        [sys.executable, "-m", "dryrack", *words, "--", "sh", "-c", _DRIVER],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until((directory / "work" / "started").exists)
    child = Path("/proc") / (directory / "work" / "pid").read_text().strip()
    assert child.exists()
    assert processes_of(directory)

    run.send_signal(number)
    run.wait(_SECONDS_MAX)

    until(lambda: not processes_of(directory))
    until(lambda: not child.exists())


def test_the_guard_removes_the_directory(tmp_path: Path) -> None:
    """Also at the end of a run that was not killed."""
    directory = tmp_path / "run"
    directory.mkdir()
    with start_guard(directory) as environment:
        child = subprocess.Popen(["sleep", "600"], env={**os.environ, **environment})

    assert child.wait(_SECONDS_MAX) == -signal.SIGKILL
    assert not directory.exists()
