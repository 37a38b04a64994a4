"""
Shared counters: the amounts left in a pool, and those that a device draws.

Counters of a pool start at what its counter sets say, less what every allocated device of the
pool draws, wherever that device is. They can start below zero; then no device that draws any
counter of that pool can be allocated, whichever counter it is that is overdrawn.

Counters are numbered through all pools of an attempt, so the search works on a list of ints.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import msgspec

from dryrack.allocation.model.identity import PoolId
from dryrack.allocation.supply.pools import Pool
from dryrack.kinds.resource import Device


@dataclass(frozen=True, slots=True)
class CounterName:
    pool: PoolId
    counter_set: str
    counter: str


class CounterLedger(msgspec.Struct, eq=False):
    """The counters of all pools met so far; amounts are in billionths."""

    # The names of the devices that any claim has, whole or in part.
    in_use: Callable[[PoolId], AbstractSet[str]]
    left: list[int] = []
    _numbers: dict[PoolId, dict[tuple[str, str], int]] = {}
    _overdrawn: dict[PoolId, bool] = {}
    _names: list[CounterName] = []

    @property
    def names(self) -> list[CounterName]:
        """The names of all counters, by number."""
        if len(self._names) < len(self.left):
            pools = self._numbers.items()
            self._names = [CounterName(pool, *each) for pool, names in pools for each in names]
        return self._names

    def draw(self, pool: Pool, device: Device) -> tuple[tuple[int, int], ...]:
        """Return the counter numbers and amounts that the device draws, each counter once."""
        numbers = self._open(pool)
        amounts: dict[int, int] = {}
        for counter_set, counter, nanos in _drawn(device):
            number = numbers.get((counter_set, counter))
            if number is not None:
                amounts[number] = amounts.get(number, 0) + nanos
        return tuple(amounts.items())

    def overdrawn(self, pool: Pool) -> bool:
        """Return whether some counter of the pool is below zero before anything is added."""
        self._open(pool)
        return self._overdrawn[pool.id]

    def _open(self, pool: Pool) -> dict[tuple[str, str], int]:
        if pool.id not in self._numbers:
            first = len(self.left)
            self.left.extend(pool.counters.values())
            numbers = dict(zip(pool.counters, range(first, len(self.left)), strict=True))
            self._numbers[pool.id] = numbers
            self._charge(pool, numbers)
            self._overdrawn[pool.id] = bool(numbers) and min(self.left[first:]) < 0
        return self._numbers[pool.id]

    def _charge(self, pool: Pool, numbers: dict[tuple[str, str], int]) -> None:
        in_use = self.in_use(pool.id)
        if not in_use:
            return
        for device in all_devices(pool):
            if device.name in in_use:
                for counter_set, counter, nanos in _drawn(device):
                    if (counter_set, counter) in numbers:
                        self.left[numbers[counter_set, counter]] -= nanos


def all_devices(pool: Pool) -> Iterator[Device]:
    """Yield the devices of the pool, also those that are for other nodes."""
    for pooled in pool.devices:
        yield pooled.device
    for each in pool.elsewhere:
        yield from each.spec.devices


def _drawn(device: Device) -> Iterator[tuple[str, str, int]]:
    for consumption in device.consumes_counters:
        for counter, value in consumption.counters.items():
            yield consumption.counter_set, counter, value.value.nanos
