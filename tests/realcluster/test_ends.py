"""A wait for the end of processes ends with the processes, and not before."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.realcluster import ends

if TYPE_CHECKING:
    from collections.abc import Iterator

# Longer than any machine needs to end a process; it is not reached.
AGES = 60.0


@pytest.fixture
def reader() -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends when its input does."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_the_end_of_a_process_is_told(reader: subprocess.Popen[bytes]) -> None:
    """A process counts as running until it ends, also if its exit code was not read."""
    with ends.held([reader.pid]) as held:
        assert not ends.await_end(held, 0.0)

        assert reader.stdin is not None
        reader.stdin.close()
        assert ends.await_end(held, AGES)


def test_who_is_killed_is_gone(reader: subprocess.Popen[bytes]) -> None:
    """When the killing returns there is nothing left to wait for."""
    assert ends.kill([reader.pid], AGES)
    assert reader.poll() is not None


def test_who_is_gone_already_is_not_waited_for(reader: subprocess.Popen[bytes]) -> None:
    """An unused process id means that the process has ended."""
    reader.kill()
    reader.wait()

    assert ends.kill([reader.pid], AGES)
