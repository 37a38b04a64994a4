"""Texts for events and conditions: lists that fit, and what does not fit is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.hardware.dialects.report import Rest
from dryrack.kinds.validation.parts import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.documents import Problem

# What an event may say at most, in bytes.
MESSAGE_MAX = 1024

_REST_MAX = len("and 1000000 more")


def counted(count: int, word: str) -> str:
    """`1 device`, `2 devices`."""
    return f"1 {word}" if count == 1 else f"{count} {word}s"


def listed(problems: Sequence[Problem], *more: str) -> str:
    """
    One thing a line, as many as an event can hold; what `more` says comes last in any case.

    Tables show the first line only, and descriptions show them all.
    """
    told = [_said(each) for each in problems if not isinstance(each, Rest)]
    untold = sum(each.count for each in problems if isinstance(each, Rest))
    return fitted(told, *more, untold=untold)


def _said(problem: Problem) -> str:
    # An object that was never a file has no lines; its fields are found by their names.
    if problem.line:
        return str(problem)
    return f"{problem.message}; {problem.fix}" if problem.fix else problem.message


def fitted(parts: Sequence[str], *more: str, untold: int = 0, between: str = "\n") -> str:
    """
    The parts that have room, the first in any case; the rest is counted, with the `untold`.

    A first part that has no room loses its middle.
    """
    room = MESSAGE_MAX - _REST_MAX - sum(_size(each) + len(between) for each in more)
    kept: list[str] = []
    for part in parts:
        if kept and _size(part) > room:
            break
        kept.append(shortened(part, room - len(between)))
        room -= _size(kept[-1]) + len(between)
    left = len(parts) - len(kept) + untold
    return between.join([*kept, *([f"and {left} more"] if left else ()), *more])


def _size(text: str) -> int:
    return len(text.encode())
