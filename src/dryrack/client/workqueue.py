"""
A queue of keys, of which each is handled by one worker at a time.

A key that is added twice before it is taken is taken once; a key that is added while a worker
handles it is taken again afterwards. A failed key is retried with an increasing delay; `forget`
resets the delay.

No key starves the others: workers let the event loop run between keys, and a key that is added
again at once many times, for example because two writers undo each other's work, is delayed more
and more until that ends.
"""

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from collections.abc import Set as AbstractSet
from typing import Generic, Protocol, TypeVar

from dryrack.client.metering import QueueMeter
from dryrack.client.timekeeping import Timekeeper, Timer

Key = TypeVar("Key", bound=Hashable)

# The limits of client-go's per-item rate limiter.
RETRY_SECONDS_MIN = 0.005
RETRY_SECONDS_MAX = 1000.0

# A key that needs no request is handled in some 100 µs; other tasks wait for a few such keys.
KEYS_AT_A_STRETCH = 16

# No object has to be handled more often than this in a second; controllers handle owners of many
# pods less often. Each second in which a key exceeds its number halves the number, down to one.
TURN_SECONDS = 1.0
TURNS_MAX = 200


class ReadyKeys(Protocol[Key]):
    """The keys that can be taken, in their order; a deque is one."""

    def __len__(self) -> int: ...

    def append(self, key: Key, /) -> None: ...

    def popleft(self) -> Key: ...


class _Turns(Generic[Key]):
    """The number of times that each key was taken in the current second."""

    def __init__(self) -> None:
        self._ends_at = 0.0
        self._taken: dict[Key, int] = {}
        self._held_back: set[Key] = set()
        self._excesses: dict[Key, int] = {}
        """The number of consecutive seconds in which a key exceeded its turns."""

    def take(self, key: Key, now: float) -> None:
        self._begin(now)
        self._taken[key] = self._taken.get(key, 0) + 1

    def wait_of(self, key: Key, now: float) -> float:
        """Return how long a key has to wait for its next turn; 0 if it has turns left."""
        self._begin(now)
        if self._taken.get(key, 0) < max(1, TURNS_MAX >> self._excesses.get(key, 0)):
            return 0.0
        self._held_back.add(key)
        return self._ends_at - now

    def is_notorious(self, key: Key) -> bool:
        """Return whether a key was held back in the second before this one, too."""
        return key in self._excesses

    def _begin(self, now: float) -> None:
        if now < self._ends_at:
            return
        quiet = (now - self._ends_at) // TURN_SECONDS
        counted = {
            key: self._excesses.get(key, 0) + (1 if key in self._held_back else -1) - quiet
            for key in self._excesses.keys() | self._held_back
        }
        self._excesses = {key: int(number) for key, number in counted.items() if number > 0}
        self._taken = {}
        self._held_back = set()
        self._ends_at = now + TURN_SECONDS


class WorkQueue(Generic[Key]):
    """A queue with delays, retries, and limits per key."""

    def __init__(
        self,
        clock: Timekeeper,
        on_held_back: Callable[[Key], object] | None = None,
        *,
        ready: ReadyKeys[Key] | None = None,
        retry_seconds_max: float = RETRY_SECONDS_MAX,
    ) -> None:
        """
        Build an empty queue.

        `on_held_back` is called with each key that begins to be added too often. `ready` replaces
        the order of arrival. No failed key waits longer than `retry_seconds_max`.
        """
        self._clock = clock
        self._on_held_back = on_held_back
        self._retry_seconds_max = retry_seconds_max
        self._meter: QueueMeter | None = None
        self._turns: _Turns[Key] = _Turns()
        self._ready: ReadyKeys[Key] = deque() if ready is None else ready
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

    def keys(self) -> AbstractSet[Key]:
        """Return the keys that wait for a worker."""
        return self._waiting.keys()

    def delayed_keys(self) -> AbstractSet[Key]:
        """Return the keys that are added later."""
        return self._due.keys()

    @property
    def is_idle(self) -> bool:
        """True if no key waits for a worker or is being handled."""
        return not self._waiting and not self._taken

    def measure(self, meter: QueueMeter) -> None:
        """Count in the meter from now on."""
        self._meter = meter

    def add(self, key: Key) -> None:
        """Add a key for the next free worker."""
        if key in self._waiting:
            return
        added_at = 0.0
        if self._meter is not None:
            self._meter.count_add()
            added_at = self._clock.now()
        self._waiting[key] = added_at
        if key not in self._taken:
            self._make_ready(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Add a key after a delay; of several times the earliest counts."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.now() + seconds
        if self._due.get(key, due) < due:
            return
        self._due[key] = due
        entry = (due, next(self._order), key)
        heapq.heappush(self._later, entry)
        if self._later[0] is entry:
            self._set_timer()

    def retry(self, key: Key) -> None:
        """Add a key again after a failure, with an increasing delay."""
        if self._meter is not None:
            self._meter.count_retry()
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        seconds = RETRY_SECONDS_MIN * 2 ** min(failures, 40)
        self.add_after(key, min(seconds, self._retry_seconds_max))

    def forget(self, key: Key) -> None:
        """Reset the delay after a success."""
        self._failures.pop(key, None)

    async def take(self) -> Key:
        """Return the next key; `done` must follow."""
        while not self._ready:
            self._woken.clear()
            await self._woken.wait()
        key = self._ready.popleft()
        added_at = self._waiting.pop(key)
        self._taken.add(key)
        self._turns.take(key, self._clock.now())
        if self._meter is not None:
            self._meter.count_take(self._clock.now() - added_at)
        return key

    def done(self, key: Key) -> None:
        self._taken.discard(key)
        if key in self._waiting:
            self._make_ready(key)

    async def work(self, handle: Callable[[Key], Awaitable[object]]) -> None:
        """Take and handle keys for ever; the handler decides about retries."""
        while True:
            for _ in range(KEYS_AT_A_STRETCH):
                key = await self.take()
                try:
                    await handle(key)
                finally:
                    self.done(key)
            # Handlers that never wait would block the event loop.
            await asyncio.sleep(0)

    def _make_ready(self, key: Key) -> None:
        wait = self._turns.wait_of(key, self._clock.now())
        if wait > 0:
            del self._waiting[key]
            if self._meter is not None:
                self._meter.count_held_back()
            if self._on_held_back is not None and not self._turns.is_notorious(key):
                self._on_held_back(key)
            self.add_after(key, wait)
            return
        self._ready.append(key)
        self._woken.set()

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
            # An entry with another time was replaced by an earlier one.
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)
        self._set_timer()
