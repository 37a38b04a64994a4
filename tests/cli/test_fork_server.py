"""A command from the fork server does what it does in a new Python."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.cli.command import EXAMPLES
from tests.cli.fork_server import ForkServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PLAIN = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
BAD_CLAIM = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: ä}\n"


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    server = ForkServer(PLAIN)
    yield server
    server.close()


def run(
    server: ForkServer,
    *words: str,
    cwd: Path = EXAMPLES,
    stdin: str = "",
    environment: Mapping[str, str] = PLAIN,
    seconds: float = 60,
) -> subprocess.CompletedProcess[str] | None:
    return server.run(words, cwd=cwd, stdin=stdin, environment=environment, seconds=seconds)


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (("allocate", "-f", "karpenter-gpu"), ""),
        (("lint", "-f", "-"), BAD_CLAIM),
        (("lint", "-f", "no-such-file"), ""),
        (("allocate", "--no-such-option"), ""),
        (("--version",), ""),
    ],
)
def test_output_and_status_are_those_of_a_new_process(
    server: ForkServer, words: tuple[str, ...], stdin: str
) -> None:
    """Arguments, folder, input, output, errors, and exit status are the same."""
    expected = subprocess.run(
        [sys.executable, "-m", "dryrack", *words],
        cwd=EXAMPLES,
        env=PLAIN,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    done = run(server, *words, stdin=stdin)

    assert done is not None
    assert (done.returncode, done.stdout, done.stderr) == (
        *(expected.returncode, expected.stdout, expected.stderr),
    )


def test_a_command_is_a_process_of_its_own(server: ForkServer, tmp_path: Path) -> None:
    """What a command changes in its process is gone in the next one."""
    first = run(server, "status", environment={**PLAIN, "DRYRACK_HOME": str(tmp_path / "a")})
    (tmp_path / "claim.yaml").write_text(BAD_CLAIM)
    second = run(server, "lint", "-f", "claim.yaml", cwd=tmp_path)
    again = run(server, "status", environment={**PLAIN, "DRYRACK_HOME": str(tmp_path / "a")})

    assert first is not None
    assert second is not None
    assert "claim.yaml" in second.stdout
    assert again is not None
    assert vars(first) == vars(again)


def test_a_command_that_does_not_end_is_killed(server: ForkServer, tmp_path: Path) -> None:
    """The server takes the next command after a timeout."""
    home = {**PLAIN, "DRYRACK_HOME": str(tmp_path)}
    with pytest.raises(subprocess.TimeoutExpired):
        run(server, "up", "--name", "endless", environment=home, seconds=3)
    done = run(server, "--version")

    assert done is not None
    assert done.returncode == 0


def test_another_environment_needs_a_new_process(server: ForkServer) -> None:
    """Modules may have read the variables of the server when they were loaded."""
    assert run(server, "--version", environment={**PLAIN, "FORCE_COLOR": "1"}) is None
