"""
Clocks with timers, and virtual time for simulations.

The clock port of `base` returns the time; components also have to wait. All waits use one function,
`call_at`, so that a simulation can control the time of a whole cluster: `VirtualClock` stands still
until it is advanced.
"""

import asyncio
import heapq
import itertools
import selectors
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from dryrack.base.errors import DryrackError
from dryrack.base.ports import Chance, Clock

Result = TypeVar("Result")


class Timer(Protocol):
    """A call in the future that can be canceled."""

    def cancel(self) -> None: ...


class Timekeeper(Clock, Protocol):
    """A clock with timers."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call once, on the running loop, at or after `when` (seconds since 1970)."""
        ...

    async def compute(self, function: Callable[[], Result]) -> Result:
        """Return the result of a long computation, which shares no mutable object with the loop."""
        ...


async def sleep(clock: Timekeeper, seconds: float) -> None:
    """Wait by that clock."""
    if seconds <= 0:
        await asyncio.sleep(0)
        return
    woken = asyncio.Event()
    timer = clock.call_at(clock.now() + seconds, woken.set)
    try:
        await woken.wait()
    finally:
        timer.cancel()


@asynccontextmanager
async def deadline(clock: Timekeeper, when: float) -> AsyncIterator[None]:
    """Raise `TimeoutError` if the block does not end before that time."""
    async with asyncio.timeout(None) as limit:
        timer = clock.call_at(when, lambda: limit.reschedule(0.0))
        try:
            yield
        finally:
            timer.cancel()


def fraction(chance: Chance) -> float:
    """Return a random number from 0 up to 1, exclusive."""
    return int(chance.uuid()[:8], 16) / 2**32


def add_jitter(chance: Chance, seconds: float) -> float:
    """Return a random time between the half and the whole, so that many waits spread out."""
    return seconds * (0.5 + fraction(chance) / 2)


def timestamp(seconds: float) -> str:
    """Return a time as in metadata: RFC 3339, whole seconds."""
    return _timestamp(int(seconds))


# One write needs the same second several times.
@lru_cache(maxsize=64)
def _timestamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(seconds: float) -> str:
    """Return a time as in leases and events: RFC 3339 with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(text: str) -> float:
    """Return the time of a timestamp."""
    return datetime.fromisoformat(text).timestamp()


class _Pending:
    """A pending call of a virtual clock."""

    __slots__ = ("callback", "is_cancelled")

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True
        # The entry stays in the heap, without a reference to the callback's objects.
        self.callback = _do_nothing


def _do_nothing() -> None:
    pass


# A reconciliation in the process takes some dozens of steps of the loop: a request, its answer, the
# watch events that follow. Time advances only after such steps.
SETTLING_STEPS = 200

# Gangs that fill a thousand nodes at one moment take some 3,000 steps.
RESTLESS_STEPS = 200_000


class VirtualClock:
    """A clock that moves only by `advance`; timers run in the order of their times."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self._now = start
        self._calls: list[tuple[float, int, _Pending]] = []
        self._order = itertools.count()

    def now(self) -> float:
        return self._now

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        pending = _Pending(callback)
        heapq.heappush(self._calls, (when, next(self._order), pending))
        return pending

    async def compute(self, function: Callable[[], Result]) -> Result:
        # Another thread would make the order of events depend on the machine.
        return function()

    async def advance(self, seconds: float) -> None:
        """Let time pass; all tasks that a timer wakes run before the next timer does."""
        end = self._now + seconds
        await settle()
        while self._calls and self._calls[0][0] <= end:
            if self._call_next():
                await settle()
        self._now = end

    async def advance_until(self, is_done: Callable[[], bool]) -> None:
        """Let time pass, from one timer to the next, until the condition is true."""
        await settle()
        while not is_done():
            assert self._calls, "all tasks wait, and none of them for a timer"
            if self._call_next():
                await settle()

    def _call_next(self) -> bool:
        """Run the next timer; return False if it was canceled."""
        when, _, pending = heapq.heappop(self._calls)
        if pending.is_cancelled:
            return False
        self._now = max(self._now, when)
        pending.callback()
        return True


async def settle(steps: int = SETTLING_STEPS) -> None:
    """Run all tasks until each of them waits for time to pass."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualTimeLoop):
        await loop.idle()
        return
    for _ in range(steps):
        await asyncio.sleep(0)


class RestlessError(DryrackError):
    """Tasks never come to rest, for example because they undo each other's changes."""

    def __init__(self) -> None:
        super().__init__(f"nothing comes to rest: {RESTLESS_STEPS} steps, and no time passed")


class _IdleSelector(selectors.DefaultSelector):
    """Detects when a loop would wait: it selects events, and has no other work."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[asyncio.Future[None]] = []
        self._steps = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not self.waiting:
            return super().select(timeout)
        events = super().select(0)
        if timeout is not None and timeout <= 0:
            self._steps += 1
            if self._steps == RESTLESS_STEPS:
                self._answer(RestlessError())
        elif not events:
            self._answer(None)
        return events

    def _answer(self, error: RestlessError | None) -> None:
        waiting = self.waiting
        self.waiting = []
        self._steps = 0
        for each in waiting:
            if each.done():
                continue
            if error is None:
                each.set_result(None)
            else:
                each.set_exception(error)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """
    An event loop that detects when all tasks wait, for simulations in one process.

    With it, time advances exactly when no task can run any more.
    """

    def __init__(self) -> None:
        self._idle_selector = _IdleSelector()
        super().__init__(self._idle_selector)

    async def idle(self) -> None:
        """Wait until all tasks wait for time to pass."""
        future: asyncio.Future[None] = self.create_future()
        self._idle_selector.waiting.append(future)
        await future


def run_virtual(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a simulation; it does not wait for threads and sockets."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
