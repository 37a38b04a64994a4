"""No regular expression of the sources takes more than linear time, whatever it is asked."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from tests.tidy.regular_expressions import Expression, attacks, expressions

ROOT = Path(__file__).parents[2]
FOUND = list(expressions(ROOT))
# Small steps at first: an expression may take exponential time. At the last, one that takes
# linear time needs a thousandth of the limit, and one that takes quadratic time more than it.
LENGTHS = (*range(16, 101, 3), 200, 400, 1_000, 3_000, 10_000, 30_000)
SECONDS_MAX = 0.25


def slow(expression: Expression) -> str:
    """Return the attack that takes too long, or ""."""
    pattern = re.compile(expression.text, expression.flags)
    for before, pump, after in attacks(expression):
        for method in expression.methods:
            run = getattr(pattern, method)
            for length in LENGTHS:
                text: Any = before + pump * (length // len(pump)) + after
                began = time.thread_time()
                found = run(type(text)(), text) if method in ("sub", "subn") else run(text)
                if method == "finditer":
                    list(found)
                if time.thread_time() - began > SECONDS_MAX:
                    return f"{method} of {before!r} + {pump!r} * {length} + {after!r}"
    return ""


def test_the_expressions_are_found() -> None:
    """The check looks at what it claims to look at."""
    assert len(FOUND) >= 150
    assert any("quantity.py" in each.place for each in FOUND)
    assert any(each.place.endswith(".js") for each in FOUND)


@pytest.mark.parametrize("expression", FOUND, ids=str)
def test_an_expression_takes_linear_time(expression: Expression) -> None:
    """Text that leads to each of its repetitions and never ends it is judged in a moment."""
    assert slow(expression) == ""


@pytest.mark.parametrize(
    ("text", "method"),
    [
        (r"(a+)+b", "match"),
        (r"(?:a|aa)*b", "fullmatch"),
        (r"0*[0-9]*[0-9]*x", "fullmatch"),
        (r"\s*\s*\s*x", "match"),
        (r"\s+x", "search"),
        (r"(?:^|\n)\s*export", "search"),
        (r"[0-9]+\.?[0-9]*e", "match"),
        (r"\[\?\(\s*@((?:\.(?:[^.\[\]\\\s=!<>]|\\.)+)*)\s*(==|!=)\s*([^)]*?)\s*\)\]", "match"),
        (r"<[^>]*>[^<]*</[^<]*<", "findall"),
    ],
)
def test_the_check_finds_expressions_that_backtrack(text: str, method: str) -> None:
    """Exponential, cubic and quadratic ones; those that were in the sources, too."""
    assert slow(Expression("here", text, 0, frozenset({method}))) != ""
