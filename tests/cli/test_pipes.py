"""Commands in a pipe whose reader stops, as in `dryrack devices | head -1`."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from tests.cli.command import EXAMPLES, dryrack_without_reader

_FLEET = str(EXAMPLES / "nodes.yaml")


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("allocate", "-h"),
        ("version",),
        ("hardware", "list"),
        ("hardware", "list", "-o", "json"),
        ("hardware", "list", "-o", "yaml"),
        ("devices", "-f", _FLEET),
        ("lint", "../lint/mistakes.yaml", "-o", "yaml"),
        ("lint", _FLEET, "-o", "sarif"),
        ("scenario", "schema"),
        ("scenario", "run", "dual-gpu"),
        ("publish", "--print-rbac"),
    ],
    ids=" ".join,
)
def test_a_command_that_nobody_reads_ends_as_unix_tools_do(words: tuple[str, ...]) -> None:
    """SIGPIPE ends the command, without an error message."""
    done = dryrack_without_reader(*words)

    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, "")


def test_a_reader_gets_what_it_reads_before_it_stops() -> None:
    """Longer than a pipe holds: the command is still writing when the reader goes."""
    words = [sys.executable, "-m", "dryrack", "hardware", "list", "-o", "json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()

    assert (first, process.returncode, said) == (b"{\n", -signal.SIGPIPE, b"")


def test_a_complaint_that_nobody_reads_ends_the_command_alike() -> None:
    """`dryrack … 2>&1 | head -1` writes both streams to the same pipe."""
    words = [sys.executable, "-m", "dryrack", "lint", "no-such-file"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        process.stdout.close()

    assert process.returncode == -signal.SIGPIPE
