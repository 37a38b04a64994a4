"""Files for `dryrack lint`, and a function that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cli import command
from tests.linter.examples import CLASS, POD, SLICE, TEMPLATE, join

if TYPE_CHECKING:
    from pathlib import Path

WARNED = join(CLASS, TEMPLATE, POD.replace("one-gpu", "two-gpus"))
REFUSED = SLICE.replace("driver: gpu.example.com", "driver: example.com/gpu")


def run(*arguments: str) -> tuple[int, str, str]:
    return command.run("lint", *arguments)


def write(directory: Path, content: str | bytes, name: str = "a.yaml") -> str:
    path = directory / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)
