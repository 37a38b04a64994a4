"""
What is to be looked at, each thing by one worker at a time.

A key that is added twice before somebody takes it is taken once; a key that is added while
somebody works on it is taken again afterwards, never beside. A failed key comes back later and
later; `forget` starts it over.
"""

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from dryrack.client.metering import QueueMeter
from dryrack.client.timekeeping import Timekeeper, Timer

Key = TypeVar("Key", bound=Hashable)

# The limits of client-go's per-item rate limiter.
RETRY_SECONDS_MIN = 0.005
RETRY_SECONDS_MAX = 1000.0


class WorkQueue(Generic[Key]):
    """See the module's docstring."""

    def __init__(self, clock: Timekeeper) -> None:
        self._clock = clock
        self._meter: QueueMeter | None = None
        self._ready: deque[Key] = deque()
        self._waiting: dict[Key, float] = {}
        self._taken: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._later: list[tuple[float, int, Key]] = []
        self._due: dict[Key, float] = {}
        self._order = itertools.count()
        self._timer: Timer | None = None
        self._woken = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def measure(self, meter: QueueMeter) -> None:
        """Tells the meter what happens from now on."""
        self._meter = meter

    def add(self, key: Key) -> None:
        """As soon as somebody is free."""
        if key in self._waiting:
            return
        self._waiting[key] = self._on_add()
        if key not in self._taken:
            self._ready.append(key)
            self._woken.set()

    def add_after(self, key: Key, seconds: float) -> None:
        """Not before; the earliest of several times counts."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.now() + seconds
        if self._due.get(key, due) < due:
            return
        self._due[key] = due
        heapq.heappush(self._later, (due, next(self._order), key))
        self._set_timer()

    def retry(self, key: Key) -> None:
        """After a failure: later each time."""
        if self._meter is not None:
            self._meter.retried()
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, min(RETRY_SECONDS_MIN * 2 ** min(failures, 40), RETRY_SECONDS_MAX))

    def forget(self, key: Key) -> None:
        """After a success."""
        self._failures.pop(key, None)

    async def take(self) -> Key:
        """The next key; `done` must follow."""
        while not self._ready:
            self._woken.clear()
            await self._woken.wait()
        key = self._ready.popleft()
        since = self._waiting.pop(key)
        self._taken.add(key)
        if self._meter is not None:
            self._meter.taken(self._clock.now() - since)
        return key

    def done(self, key: Key) -> None:
        self._taken.discard(key)
        if key in self._waiting:
            self._ready.append(key)
            self._woken.set()

    async def work(self, handle: Callable[[Key], Awaitable[object]]) -> None:
        """Takes keys for ever; whoever handles one decides about trying again."""
        while True:
            key = await self.take()
            try:
                await handle(key)
            finally:
                self.done(key)

    def _on_add(self) -> float:
        """The time, if somebody wants to know how long keys wait."""
        if self._meter is None:
            return 0.0
        self._meter.added()
        return self._clock.now()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._later:
            self._timer = self._clock.call_at(self._later[0][0], self._release)

    def _release(self) -> None:
        now = self._clock.now()
        while self._later and self._later[0][0] <= now:
            due, _, key = heapq.heappop(self._later)
            # An entry whose time was brought forward has happened already.
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)
        self._set_timer()
