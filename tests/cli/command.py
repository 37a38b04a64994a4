"""dryrack as a person runs it: a process, its two streams and its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

_ROOT = Path(__file__).parents[2]
EXAMPLES = _ROOT / "examples" / "what-if"
_LIBRARY = _ROOT / "src" / "dryrack" / "scenario" / "library"
_SECONDS_MAX = 60


def example_path(name: str) -> Path:
    """A file of an example for files, or of a packaged scenario as `karpenter-gpu/nodes.yaml`."""
    return next(
        each / name for each in (EXAMPLES, EXAMPLES.parent, _LIBRARY) if (each / name).exists()
    )


def documents(name: str) -> list[dict[str, Any]]:
    """The objects in such a file."""
    return list(yaml.safe_load_all(example_path(name).read_text()))


def dryrack(
    *words: str | Path, cwd: Path = EXAMPLES, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs the command in a plain environment, where no terminal is."""
    return subprocess.run(
        [sys.executable, "-m", "dryrack", *map(str, words)],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=_SECONDS_MAX,
        check=False,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
    )


def dryrack_without_reader(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs the command in a pipe whose reader has already gone."""
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
