"""
The scheduling queue: the next pod or gang to decide, and those that wait for a change.

The order is that of the Coscheduling plugin's QueueSort: starving gangs first, then priority, then
age, then arrival. A gang that has waited longer than `STARVATION_SECONDS` starves: otherwise pods
of a higher priority that are created one by one could delay a large gang for ever. A single pod
never starves: among pods only priority counts, as in kube-scheduler.

A unit that could not be placed is parked until a change could help it (see `Change`), or until the
claim changes that it waits for. A pod that is assigned to a node retries only units that were
parked for such a pod. Each change retries the units that it may help once, so that waiting costs
nothing. A unit that is refused repeatedly is retried with an increasing delay, up to a limit. A
unit that no change has helped is retried after some minutes, so that its condition is up to date.
"""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, Generic, NamedTuple

from dryrack.client.informer import Name
from dryrack.client.workqueue import Key, WorkQueue
from dryrack.placement import Change, GangKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.base.ports import Clock
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.placement import Occupant

# A pod or a gang is decided at a time.
Unit = Name | GangKey

# kube-scheduler's podInitialBackoffSeconds and podMaxBackoffSeconds.
BACKOFF_SECONDS_MIN = 1.0
BACKOFF_SECONDS_MAX = 10.0
# kube-scheduler's podMaxInUnschedulablePodsDuration, and the interval in which it is checked.
UNSCHEDULABLE_SECONDS_MAX = 300.0
_FLUSH_SECONDS = 30.0


_MOST_CHANGES = Change.POD_LEFT | Change.OTHER


class _Parked(NamedTuple):
    earliest: float
    """The end of its back-off."""
    helped_by: Change


class Rank(NamedTuple):
    """The place of a unit in the queue."""

    priority: int
    created: str
    """The creationTimestamp; all have the same form, so that they compare as texts."""
    starves_at: float | None = None
    """The time from which it precedes all others, in seconds since 1970; None: never."""


_Order = tuple[int, str, int]


class PriorityOrder(Generic[Key]):
    """Keys by rank; keys of the same rank in the order of their arrival."""

    def __init__(self, clock: Clock, rank_of: Callable[[Key], Rank]) -> None:
        self._clock = clock
        self._rank_of = rank_of
        self._arrivals = itertools.count()
        self._waiting: dict[Key, _Order] = {}
        # Entries of keys that were taken from the other heap stay until they are popped.
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
        now = self._clock.now()
        while self._aging and self._aging[0][0] <= now:
            _, order, key = heapq.heappop(self._aging)
            if self._waiting.get(key) == order:
                heapq.heappush(self._starving, (order, key))
        for heap in (self._starving, self._usual):
            while heap:
                order, key = heapq.heappop(heap)
                if self._waiting.get(key) == order:
                    del self._waiting[key]
                    return key
        raise IndexError("no key waits")


class SchedulingQueue(WorkQueue[Key]):
    """Units by rank, and parked units."""

    def __init__(
        self,
        clock: Timekeeper,
        rank_of: Callable[[Key], Rank],
        backoff_seconds: tuple[float, float] = (BACKOFF_SECONDS_MIN, BACKOFF_SECONDS_MAX),
    ) -> None:
        # No pod waits longer than this after an error, as in kube-scheduler.
        most = max(backoff_seconds[1], BACKOFF_SECONDS_MIN)
        super().__init__(clock, ready=PriorityOrder(clock, rank_of), retry_seconds_max=most)
        self._backoff_seconds = backoff_seconds
        self._time = clock
        self.on_flush: Callable[[], None] = lambda: None
        """Called before units are retried that no change has helped: forget why nodes refused."""
        self._flushed_at = clock.now()
        self._parked: dict[Key, _Parked] = {}
        # The time when a parked unit is retried if no change helps it.
        self._flush_at: dict[Key, float] = {}
        self._keys_by_claim: dict[str, dict[Key, None]] = {}
        self._claim_of: dict[Key, str] = {}
        self._refusals: dict[Key, int] = {}
        # For some parked units, the pods that help when they are assigned to a node.
        self._is_helped_by: dict[Key, Callable[[Occupant], bool]] = {}
        # Parked units that any pod helps that is assigned to a node, because a plugin says so.
        self._until_any_pod: dict[Key, None] = {}
        self.on_change: Callable[[], None] = lambda: None
        """Called after each change: pods that wait for a permission are asked about again."""

    async def take(self) -> Key:
        """
        Return the next key; `done` must follow.

        The key does not wait for anything any more: its handler parks it again if necessary.
        """
        key = await super().take()
        now = self._time.now()
        if self._flush_at.get(key, now + 1) <= now and now - self._flushed_at >= _FLUSH_SECONDS:
            self._flushed_at = now
            self.on_flush()
        self._unpark(key)
        return key

    def _unpark(self, key: Key) -> None:
        self._due.pop(key, None)
        self._flush_at.pop(key, None)
        self._parked.pop(key, None)
        self._is_helped_by.pop(key, None)
        self._until_any_pod.pop(key, None)
        self._unpark_from_claim(key)

    def counts(self, size_of: Callable[[Key], int]) -> dict[str, int]:
        """Return the number of pods in each of kube-scheduler's queues; a gang has several."""
        waiting = {
            "active": self.keys(),
            "backoff": self.delayed_keys(),
            "unschedulable": (self._parked.keys() | self._claim_of.keys()) - self.keys(),
        }
        # A parked unit also has a time at which it is retried.
        waiting["backoff"] = waiting["backoff"] - waiting["unschedulable"]
        return {name: sum(map(size_of, keys)) for name, keys in waiting.items()}

    def park(self, key: Key, helped_by: Change = _MOST_CHANGES) -> None:
        """Retry the key after a change that may help it."""
        self._set_parked(key, _Parked(0.0, helped_by))
        self._schedule_flush(key)

    def park_backed_off(self, key: Key, helped_by: Change = _MOST_CHANGES) -> None:
        """Retry the key after a change that may help it, and after an increasing delay."""
        refusals = self._refusals.get(key, 0)
        self._refusals[key] = refusals + 1
        self._set_parked(key, _Parked(self._time.now() + self._backoff(refusals), helped_by))
        self._schedule_flush(key)

    def _set_parked(self, key: Key, parked: _Parked) -> None:
        self._parked[key] = parked
        self._until_any_pod.pop(key, None)
        if Change.POD_PLACED in parked.helped_by:
            self._until_any_pod[key] = None

    def _schedule_flush(self, key: Key) -> None:
        self._flush_at[key] = self._time.now() + UNSCHEDULABLE_SECONDS_MAX
        self.add_after(key, UNSCHEDULABLE_SECONDS_MAX)

    def retry_backed_off(self, key: Key) -> None:
        """Retry the key after an increasing delay, because a report or a decision failed."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, self._backoff(failures))

    def _backoff(self, times: int) -> float:
        least, most = self._backoff_seconds
        return min(least * (1 << min(times, 10)), most)

    def park_until_pod(self, key: Key, helps: Callable[[Occupant], bool]) -> None:
        """Retry a parked key also when such a pod is assigned to a node."""
        self._is_helped_by[key] = helps

    def park_until_claim(self, key: Key, claim: str) -> None:
        """Retry the key when the claim changes, instead of a claim that it waited for before."""
        self._unpark_from_claim(key)
        self._claim_of[key] = claim
        self._keys_by_claim.setdefault(claim, {})[key] = None
        self._schedule_flush(key)

    def drop(self, key: Key) -> None:
        """Forget a key that need not be scheduled any more."""
        self._unpark(key)
        self._refusals.pop(key, None)

    def wake(self, change: Change = Change.REST) -> None:
        """Retry the parked keys that the change may help."""
        self.on_change()
        for key in [key for key, parked in self._parked.items() if parked.helped_by & change]:
            self._is_helped_by.pop(key, None)
            self._retry_parked(key)

    def _retry_parked(self, key: Key) -> None:
        self._until_any_pod.pop(key, None)
        self.add_after(key, self._parked.pop(key).earliest - self._time.now())

    def wake_for_pod(self, pod: Occupant) -> None:
        """Retry the parked keys that a pod helps that was assigned to a node."""
        self.on_change()
        for key in [*self._until_any_pod]:
            self._is_helped_by.pop(key, None)
            self._retry_parked(key)
        for key in [key for key, helps in self._is_helped_by.items() if helps(pod)]:
            del self._is_helped_by[key]
            if key in self._parked:
                self._retry_parked(key)

    def wake_for_claim(self, claim: str) -> None:
        """Retry the keys that wait for a change of the claim."""
        for key in self._keys_by_claim.pop(claim, ()):
            self._claim_of.pop(key, None)
            self.add(key)

    def _unpark_from_claim(self, key: Key) -> None:
        claim = self._claim_of.pop(key, None)
        if claim is not None:
            self._keys_by_claim[claim].pop(key, None)
            if not self._keys_by_claim[claim]:
                del self._keys_by_claim[claim]
