"""Work that must end in time, or is stopped: a search that has no end must not hide itself."""

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
    """What the work returns, or `TooLongError`; for the main thread only."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLongError(f"no end after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return work()
    finally:
        # Whoever set a timer before us (a limit on the whole test) gets it back.
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, left)
