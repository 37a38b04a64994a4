"""
Time that passes, for engines.

The clock port of `base` tells the time; an engine also has to wait. Everything that waits is
built on one seam, `call_at`, so that a simulation can hold a whole cluster's time in its hands:
`VirtualClock` stands still until somebody advances it.
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
    """Something that will happen, and can be called off."""

    def cancel(self) -> None: ...


class Timekeeper(Clock, Protocol):
    """A clock that can also wake somebody."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Calls once, on the running loop, at or after `when` (seconds since 1970)."""
        ...


async def sleep(clock: Timekeeper, seconds: float) -> None:
    """Waits by that clock."""
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
    """A block that ends by then; `TimeoutError` if it does not by itself."""
    async with asyncio.timeout(None) as limit:
        timer = clock.call_at(when, lambda: limit.reschedule(0.0))
        try:
            yield
        finally:
            timer.cancel()


def fraction(chance: Chance) -> float:
    """A number from 0 up to 1, exclusive."""
    return int(chance.uuid()[:8], 16) / 2**32


def jittered(chance: Chance, seconds: float) -> float:
    """Between the half of it and the whole: waits of many spread out, and none grows."""
    return seconds * (0.5 + fraction(chance) / 2)


def timestamp(seconds: float) -> str:
    """A time as metadata has it: RFC 3339, whole seconds."""
    return _timestamp(int(seconds))


# One write asks some times for the same second.
@lru_cache(maxsize=64)
def _timestamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(seconds: float) -> str:
    """A time as leases and events have it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(text: str) -> float:
    """The time that a timestamp tells."""
    return datetime.fromisoformat(text).timestamp()


class _Pending:
    """One call that waits in a virtual clock."""

    __slots__ = ("callback", "is_cancelled")

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True
        # It stays in line, but keeps nobody.
        self.callback = _nothing


def _nothing() -> None:
    """What a call that was called off does."""


# A reconciliation in process is a chain of some dozens of steps of the loop: a request, its
# answer, the watch events that follow. Time moves on only when such chains have had their turn.
SETTLING_STEPS = 200

# A thousand nodes that gangs fill at one moment take some 3,000 steps.
RESTLESS_STEPS = 200_000


class VirtualClock:
    """Time that moves only when told to; what falls due happens in order."""

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

    async def advance(self, seconds: float) -> None:
        """Lets time pass; whoever wakes up acts before the next one does."""
        end = self._now + seconds
        await settle()
        while self._calls and self._calls[0][0] <= end:
            if self._call_next():
                await settle()
        self._now = end

    async def advance_until(self, is_done: Callable[[], bool]) -> None:
        """Lets time pass, from one call to the next, until something is so."""
        await settle()
        while not is_done():
            assert self._calls, "all tasks wait, and none of them for a timer"
            if self._call_next():
                await settle()

    def _call_next(self) -> bool:
        """Moves on to the next call; whether there was one that was not called off."""
        when, _, pending = heapq.heappop(self._calls)
        if pending.is_cancelled:
            return False
        self._now = max(self._now, when)
        pending.callback()
        return True


async def settle(steps: int = SETTLING_STEPS) -> None:
    """Lets everybody who can act without time passing do so."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualTimeLoop):
        await loop.idle()
        return
    for _ in range(steps):
        await asyncio.sleep(0)


class RestlessError(DryrackError):
    """Somebody goes on for ever without time passing: what one does another undoes at once."""

    def __init__(self) -> None:
        super().__init__(f"nothing comes to rest: {RESTLESS_STEPS} steps, and no time passed")


class _IdleSelector(selectors.DefaultSelector):
    """Notices when a loop would wait: it asks for events, and has nothing else to do."""

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
    An event loop that knows when all tasks wait, for simulations in one process.

    With it, time moves on as soon as nobody can act, and not a step earlier.
    """

    def __init__(self) -> None:
        self._idle_selector = _IdleSelector()
        super().__init__(self._idle_selector)

    async def idle(self) -> None:
        """Waits until nobody can act without time passing."""
        future: asyncio.Future[None] = self.create_future()
        self._idle_selector.waiting.append(future)
        await future


def run_virtual(main: Coroutine[Any, Any, Result]) -> Result:
    """Runs a simulation; threads and sockets that somebody waits for are not part of it."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
