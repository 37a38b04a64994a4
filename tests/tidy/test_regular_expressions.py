"""No regular expression of the sources takes more than linear time, whatever the text is."""

from __future__ import annotations

import functools
import itertools
import re
import time
from pathlib import Path
from typing import Any

import pytest
from tests.tidy.regular_expressions import Expression, attacks, expressions

Attack = tuple[Any, Any, Any]
ROOT = Path(__file__).parents[2]
FOUND = list(expressions(ROOT))
# Small steps at first: an expression may take exponential time.
LENGTHS = (*range(16, 101, 3), 200, 400, 1_000, 3_000, 7_500, 30_000)
# An expression that takes linear time stays far below this at every length.
SECONDS_MAX = 0.25
# Quadratic time at the last length takes several times as long as this, on any machine.
SECONDS_SUSPICIOUS = 0.01
# Four times the length: linear time grows 4 times, quadratic time 16 times.
GROWTH_MAX = 8


def seconds(pattern: re.Pattern[Any], method: str, attack: Attack, length: int) -> float:
    """Return the processor time of a method on an attack of some length."""
    before, pump, after = attack
    text: Any = before + pump * (length // len(pump)) + after
    arguments = (type(text)(), text) if method in ("sub", "subn") else (text,)
    began = time.thread_time()
    found = getattr(pattern, method)(*arguments)
    if method == "finditer":
        list(found)
    return time.thread_time() - began


def slow(expression: Expression) -> str:
    """Return the attack that takes more than linear time, or ""."""
    pattern = re.compile(expression.text, expression.flags)
    for attack, method in itertools.product(attacks(expression), sorted(expression.methods)):
        measure = functools.partial(seconds, pattern, method, attack)
        taken = 0.0
        for length in LENGTHS:
            if (taken := measure(length)) > SECONDS_MAX:
                return f"{method} of {attack}, {length} characters: {taken:.2f} s"
        if taken > SECONDS_SUSPICIOUS:
            short, long = (min(measure(each) for _ in range(3)) for each in LENGTHS[-2:])
            if long > GROWTH_MAX * short:
                return (
                    f"{method} of {attack}: {long / short:.0f} times the time for 4 times the text"
                )
    return ""


def test_the_expressions_are_found() -> None:
    """The check finds the expressions of Python and of JavaScript."""
    assert len(FOUND) >= 150
    assert any("quantity.py" in each.place for each in FOUND)
    assert any(each.place.endswith(".js") for each in FOUND)


@pytest.mark.parametrize("expression", FOUND, ids=str)
def test_an_expression_takes_linear_time(expression: Expression) -> None:
    """A long text that enters a repetition and never completes the match takes linear time."""
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
    """The check finds exponential, cubic and quadratic time, and expressions that src had."""
    assert slow(Expression("here", text, 0, frozenset({method}))) != ""
