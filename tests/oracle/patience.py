"""
Work with a time limit, so that a search that never ends is noticed.

Time is what the process uses of the processor, so a busy machine stops nobody.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

Result = TypeVar("Result")


class TooLongError(Exception):
    """The work did not end in time."""


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """Return the result of the work, or raise `TooLongError`; for the main thread only."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLongError(f"no end after {seconds:g} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    left, _ = signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        return work()
    finally:
        # A timer that was set before is restored.
        signal.signal(signal.SIGVTALRM, before)
        signal.setitimer(signal.ITIMER_VIRTUAL, left)
