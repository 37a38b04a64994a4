"""
The places of partitions in their physical device, from the counters that they consume.

Counters of one family, such as memory-slice-0 to memory-slice-7, are places: a partition that
consumes some of them has a start and a width. Without such counters, only the share of the physical
device is known.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from dryrack.kinds.pool_generation import newest_generation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.kinds.quantity import Quantity
    from dryrack.kinds.resource import CounterSet, Device, ResourceSlice

_MEMORY = "memory"
# Parts of a physical device without places.
_PERCENT = 100


class Placement(NamedTuple):
    """The part of a physical device that a partition takes."""

    # -1 if the counters have no places.
    start: int
    width: int
    of: int
    # The consumed percentage of the memory; -1 if there is no counter of it.
    memory: int

    def document(self) -> dict[str, Any]:
        return self._asdict()


def placements_of(slices: Sequence[ResourceSlice]) -> dict[str, Placement]:
    """Return the placement of each partition of a pool, by device name."""
    if not any(device.consumes_counters for each in slices for device in each.spec.devices):
        return {}
    newest = newest_generation(slices, lambda each: each.spec.pool).slices
    sets = {each.name: each for slice_ in newest for each in slice_.spec.shared_counters}
    places = {name: _places(each) for name, each in sets.items()}
    found = {}
    for device in (device for each in newest for device in each.spec.devices):
        name = device.consumes_counters[0].counter_set if device.consumes_counters else ""
        if name in sets:
            found[device.name] = _placement(device, sets[name], places[name])
    return found


def _places(counters: CounterSet) -> Mapping[str, int]:
    """Return the places that counters stand for: those of the largest family of numbered ones."""
    families: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for name in counters.counters:
        family = name.rstrip("0123456789")
        if family != name:
            families[family].append((int(name[len(family) :]), name))
    largest = max(families.values(), key=len, default=[])
    return {name: place for place, (_, name) in enumerate(sorted(largest))} if largest[1:] else {}


def _placement(device: Device, counters: CounterSet, places: Mapping[str, int]) -> Placement:
    taken = device.consumes_counters[0].counters
    shares = {
        name: _share(amount.value, counters.counters[name].value)
        for name, amount in taken.items()
        if name in counters.counters
    }
    memory = shares.get(_MEMORY, -1)
    starts = [places[name] for name, share in shares.items() if name in places and share]
    if starts:
        width = max(starts) - min(starts) + 1
        return Placement(min(starts), width, len(places), memory)
    width = memory if memory >= 0 else max(shares.values(), default=_PERCENT)
    return Placement(-1, width, _PERCENT, memory)


def _share(part: Quantity, whole: Quantity) -> int:
    return min(_PERCENT, _PERCENT * part.nanos // whole.nanos) if whole.nanos else 0
