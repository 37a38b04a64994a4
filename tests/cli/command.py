"""Run dryrack: as a process with its streams and exit status, or in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tests.cli.fork_server import ForkServer
from typer.testing import CliRunner

from dryrack.cli.main import app

_ROOT = Path(__file__).parents[2]
EXAMPLES = _ROOT / "examples" / "what-if"
_LIBRARY = _ROOT / "src" / "dryrack" / "scenario" / "library"
_SECONDS_MAX = 60


def example_path(name: str) -> Path:
    """Return a file of an example, or of a packaged scenario, as `karpenter-gpu/nodes.yaml`."""
    return next(
        each / name for each in (EXAMPLES, EXAMPLES.parent, _LIBRARY) if (each / name).exists()
    )


def documents(name: str) -> list[dict[str, Any]]:
    """Return the objects in such a file."""
    return list(yaml.safe_load_all(example_path(name).read_text()))


def dryrack(
    *words: str | Path, cwd: Path = EXAMPLES, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the command in a plain environment without a terminal."""
    variables = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    texts = [str(word) for word in words]
    done = _server().run(texts, cwd=cwd, stdin=stdin, environment=variables, seconds=_SECONDS_MAX)
    return done or subprocess.run(
        [sys.executable, "-m", "dryrack", *texts],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=_SECONDS_MAX,
        check=False,
        env=variables,
    )


@cache
def _server() -> ForkServer:
    return ForkServer({**os.environ, "COLUMNS": "200", "NO_COLOR": "1"})


def dryrack_without_reader(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a pipe whose reader is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(
            [sys.executable, "-m", "dryrack", *map(str, words)],
            cwd=EXAMPLES,
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
        )
    finally:
        os.close(writer)


def run(*arguments: str) -> tuple[int, str, str]:
    """Run a command in this process; return exit status, output and error output."""
    result = CliRunner().invoke(app, [*arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr
