"""
The scheduling queue: who is decided next, and who waits for something to change.

The order is that of the Coscheduling plugin's QueueSort: gangs that starve first, then priority,
then age, then who came first. A gang that has waited longer than `STARVATION_SECONDS` starves:
without that, pods of a higher priority that come one by one could keep a large gang out for ever.
A single pod never starves: among pods, priority is all that counts, as in kube-scheduler.

What could not be placed is parked until something changes that could help (see `Change`), or until
a claim changes that it waits for. A pod that comes to a node helps nobody but who hopes for it.
Each change takes out those whom it may help, once, so that waiting costs nothing. What is refused
again and again comes back later and later, up to a limit. What nothing helped is looked at again
after some minutes all the same, so that what it is told is true.
"""

from __future__ import annotations

import heapq
import itertools
from enum import Flag, auto
from typing import TYPE_CHECKING, Generic, NamedTuple

from dryrack.client.informer import Name
from dryrack.client.workqueue import Key, WorkQueue
from dryrack.placement import GangKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.base.ports import Clock
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.placement import Occupant

# What is scheduled at a time: a pod, or a gang.
Unit = Name | GangKey

# The threshold of the plugin in the seed.
STARVATION_SECONDS = 60.0
# kube-scheduler's podInitialBackoffSeconds and podMaxBackoffSeconds.
BACKOFF_SECONDS_MIN = 1.0
BACKOFF_SECONDS_MAX = 10.0
# kube-scheduler's podMaxInUnschedulablePodsDuration, and how often it looks who has waited so long.
UNSCHEDULABLE_SECONDS_MAX = 300.0
_FLUSH_SECONDS = 30.0


class Change(Flag):
    """What has happened, by whom it may help."""

    POD_LEFT = auto()
    """A pod went from its node; who lacks only devices is told when these are free."""
    NODE_LEFT = auto()
    """A node is gone or takes fewer pods: those may be helped that are to be spread evenly."""
    DEVICE_LEFT = auto()
    """A node offers fewer devices: those may be helped whose selectors fail on one of them."""
    OTHER = auto()


_MOST_CHANGES = Change.POD_LEFT | Change.OTHER


class _Parked(NamedTuple):
    earliest: float
    """The time before which it need not be tried."""
    queueing_hint: Change


class Rank(NamedTuple):
    """What decides about the turn of a unit."""

    priority: int
    created: str
    """As metadata has it: of the same form, so that text compares as time does."""
    starves_at: float | None = None
    """When it goes before all others, in seconds since 1970; None: never."""


_Order = tuple[int, str, int]


class PriorityOrder(Generic[Key]):
    """Keys by rank; those of the same rank in the order in which they came."""

    def __init__(self, clock: Clock, rank_of: Callable[[Key], Rank]) -> None:
        self._clock = clock
        self._rank_of = rank_of
        self._arrivals = itertools.count()
        self._waiting: dict[Key, _Order] = {}
        # Entries of keys that were taken from the other heap stay until they are met.
        self._usual: list[tuple[_Order, Key]] = []
        self._starving: list[tuple[_Order, Key]] = []
        self._aging: list[tuple[float, _Order, Key]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def append(self, key: Key, /) -> None:
        rank = self._rank_of(key)
        order = (-rank.priority, rank.created, next(self._arrivals))
        self._waiting[key] = order
        heapq.heappush(self._usual, (order, key))
        if rank.starves_at is not None:
            heapq.heappush(self._aging, (rank.starves_at, order, key))

    def popleft(self) -> Key:
        self._age()
        for heap in (self._starving, self._usual):
            while heap:
                order, key = heapq.heappop(heap)
                if self._waiting.get(key) == order:
                    del self._waiting[key]
                    return key
        raise IndexError("no key waits")

    def _age(self) -> None:
        now = self._clock.now()
        while self._aging and self._aging[0][0] <= now:
            _, order, key = heapq.heappop(self._aging)
            if self._waiting.get(key) == order:
                heapq.heappush(self._starving, (order, key))


class SchedulingQueue(WorkQueue[Key]):
    """Units by rank, and those that are parked."""

    def __init__(
        self,
        clock: Timekeeper,
        rank_of: Callable[[Key], Rank],
        backoff_seconds: tuple[float, float] = (BACKOFF_SECONDS_MIN, BACKOFF_SECONDS_MAX),
    ) -> None:
        # kube-scheduler leaves no pod waiting longer than this after an error.
        most = max(backoff_seconds[1], BACKOFF_SECONDS_MIN)
        super().__init__(clock, ready=PriorityOrder(clock, rank_of), retry_seconds_max=most)
        self._backoff_seconds = backoff_seconds
        self._time = clock
        self.on_flush: Callable[[], None] = lambda: None
        """Called before what nobody helped is looked at again: nothing is to be remembered."""
        self._flushed_at = clock.now()
        self._parked: dict[Key, _Parked] = {}
        # When those come back that are parked or wait for a claim, if nothing helps them.
        self._flush_at: dict[Key, float] = {}
        # Those who wait for a claim, each by that claim.
        self._wanting: dict[str, dict[Key, None]] = {}
        self._wants: dict[Key, str] = {}
        self._refusals: dict[Key, int] = {}
        # Those whom some pods help that come to a node, and which do.
        self._hopes: dict[Key, Callable[[Occupant], bool]] = {}

    async def take(self) -> Key:
        """
        The next key; `done` must follow.

        Whatever else it would have come back for is looked at with it: who handles the key says
        anew what it waits for, and until when.
        """
        key = await super().take()
        now = self._time.now()
        if self._flush_at.get(key, now + 1) <= now and now - self._flushed_at >= _FLUSH_SECONDS:
            self._flushed_at = now
            self.on_flush()
        self._wait_for_nothing(key)
        return key

    def _wait_for_nothing(self, key: Key) -> None:
        self._due.pop(key, None)
        self._flush_at.pop(key, None)
        self._parked.pop(key, None)
        self._hopes.pop(key, None)
        self._want_nothing(key)

    def counts(self, size_of: Callable[[Key], int]) -> dict[str, int]:
        """How many pods wait, in the words of kube-scheduler's queues; a unit may be many."""
        waiting = {
            "active": self.keys(),
            "backoff": self.delayed_keys(),
            "unschedulable": (self._parked.keys() | self._wants.keys()) - self.keys(),
        }
        # One that waits for something may also come back by itself after some time.
        waiting["backoff"] = waiting["backoff"] - waiting["unschedulable"]
        return {name: sum(map(size_of, keys)) for name, keys in waiting.items()}

    def park(self, key: Key, queueing_hint: Change = _MOST_CHANGES) -> None:
        """Until something changes that may help."""
        self._parked[key] = _Parked(0.0, queueing_hint)
        self._come_back(key)

    def park_backed_off(self, key: Key, queueing_hint: Change = _MOST_CHANGES) -> None:
        """Until something changes that may help, but not for a while that grows each time."""
        refusals = self._refusals.get(key, 0)
        self._refusals[key] = refusals + 1
        self._parked[key] = _Parked(self._time.now() + self._backoff(refusals), queueing_hint)
        self._come_back(key)

    def _come_back(self, key: Key) -> None:
        self._flush_at[key] = self._time.now() + UNSCHEDULABLE_SECONDS_MAX
        self.add_after(key, UNSCHEDULABLE_SECONDS_MAX)

    def retry_backed_off(self, key: Key) -> None:
        """After a failure that keeps nobody from a node: later each time, and never at once."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, self._backoff(failures))

    def _backoff(self, times: int) -> float:
        least, most = self._backoff_seconds
        return min(least * (1 << min(times, 10)), most)

    def hope(self, key: Key, helps: Callable[[Occupant], bool]) -> None:
        """What is parked is tried as well when such a pod comes to a node."""
        self._hopes[key] = helps

    def park_for(self, key: Key, claim: str) -> None:
        """Until something changes about the claim, and none that it waited for before."""
        self._want_nothing(key)
        self._wants[key] = claim
        self._wanting.setdefault(claim, {})[key] = None
        self._come_back(key)

    def drop(self, key: Key) -> None:
        """It waits for nothing any more."""
        self._wait_for_nothing(key)
        self._refusals.pop(key, None)

    def wake(self, change: Change = Change.OTHER) -> None:
        """Something changed that could help many."""
        for key in [key for key, parked in self._parked.items() if parked.queueing_hint & change]:
            self._hopes.pop(key, None)
            self._return(key)

    def _return(self, key: Key) -> None:
        self.add_after(key, self._parked.pop(key).earliest - self._time.now())

    def wake_by(self, pod: Occupant) -> None:
        """A pod came to a node."""
        for key in [key for key, helps in self._hopes.items() if helps(pod)]:
            del self._hopes[key]
            if key in self._parked:
                self._return(key)

    def wake_for(self, claim: str) -> None:
        """Something changed about a claim that somebody may wait for."""
        for key in self._wanting.pop(claim, ()):
            self._wants.pop(key, None)
            self.add(key)

    def _want_nothing(self, key: Key) -> None:
        claim = self._wants.pop(key, None)
        if claim is not None:
            self._wanting[claim].pop(key, None)
            if not self._wanting[claim]:
                del self._wanting[claim]
