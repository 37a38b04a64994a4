"""
Recursion that does not use Python's stack.

An expression may nest a few hundred levels deep, and what a macro makes of it several times
that. A function that walks it is written as a generator: it yields the call that it needs the
result of, and is sent that result.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

R = TypeVar("R")
Steps: TypeAlias = Generator["Steps[Any]", Any, R]


def run(call: Steps[R]) -> R:
    """Run a call and all the calls that it yields; give what it returns."""
    waiting: list[Steps[Any]] = [call]
    result: Any = None
    while waiting:
        try:
            needed = waiting[-1].send(result)
        except StopIteration as finished:
            waiting.pop()
            result = finished.value
        else:
            waiting.append(needed)
            result = None
    returned: R = result
    return returned
