"""
The console blocks of a page, as things to run.

A line that begins with `$ ` is a command; what follows, up to the next command, is what it
prints on standard output. `...` stands for any text within a line, and a line of `...` for any
lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
_ANY = re.escape("...")


@dataclass(frozen=True, slots=True)
class Example:
    """One command and what it must print; None where the page does not show it."""

    command: str
    output: str | None


def examples(page: Path) -> list[Example]:
    found = []
    for block in _BLOCK.findall(page.read_text()):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append(Example(command, output or None))
    return found


def fits(expected: str, printed: str) -> bool:
    pattern = "".join(
        "(?:.*\n)*" if line == "..." else re.escape(line).replace(_ANY, ".*") + "\n"
        for line in expected.splitlines()
    )
    return re.fullmatch(pattern, printed) is not None
