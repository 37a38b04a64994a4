"""
An expression's text, and errors about it in the form that Kubernetes shows them.

Positions are offsets in code points. An error without one concerns the expression as a whole
and is shown at line -1.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

PROBLEMS_MAX = 100
# A longer line is not shown below its error.
SNIPPET_BYTES_MAX = 16384


class Problem(msgspec.Struct, frozen=True):
    position: int | None
    message: str


@dataclass(frozen=True, slots=True)
class Issues:
    """All problems of an expression that does not compile, in the order of the text."""

    text: str


def report(text: str, problems: Sequence[Problem]) -> Issues:
    """Show problems with the lines that they are about."""
    lines = _Lines(text)
    shown = sorted(problems[:PROBLEMS_MAX], key=lambda p: -2 if p.position is None else p.position)
    parts = [lines.show(problem) for problem in shown]
    if len(problems) > PROBLEMS_MAX:
        parts.append(f"{len(problems) - PROBLEMS_MAX} more errors were truncated")
    return Issues("\n".join(parts))


class _Lines:
    def __init__(self, text: str) -> None:
        self._lines = text.split("\n") if text else []
        self._starts = [0]
        for line in self._lines[:-1]:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def show(self, problem: Problem) -> str:
        if problem.position is None:
            return f"ERROR: <input>:-1:0: {problem.message}"
        line = bisect_right(self._starts, max(problem.position, 0))
        column = problem.position - self._starts[line - 1]
        return f"ERROR: <input>:{line}:{column + 1}: {problem.message}{self._point(line, column)}"

    def _point(self, line: int, column: int) -> str:
        if line > len(self._lines) or len(self._lines[line - 1].encode()) > SNIPPET_BYTES_MAX:
            return ""
        snippet = self._lines[line - 1].replace("\t", " ")
        column = max(column, 0)
        # Full-width marks below full-width characters keep the pointer where it belongs.
        before = "".join("." if c.isascii() else "．" for c in snippet[:column])
        wide = not snippet[column : column + 1].isascii()
        return f"\n | {snippet}\n | {before}{'＾' if wide else '^'}"
