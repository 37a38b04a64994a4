"""
MIG: the partitions of a GPU.

NVIDIA's driver with dynamic MIG publishes every possible instance of a GPU: each profile at each
start. Counters exclude instances that overlap: there is one counter for each kind of engine, and
one with the value 1 for each memory slice. The total of an engine is the largest number that a
profile has. An instance consumes its engines and the memory slices that it covers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ONE = Counter(value=Quantity.parse("1"))
# Attributes that instances do not inherit, or have under another name.
_OF_THE_WHOLE = ("type", "uuid")


@dataclass(frozen=True, slots=True)
class Profile:
    """A size of instances, and the memory slices at which they may start."""

    name: str
    id: int
    starts: tuple[int, ...]
    slices: int
    capacity: Mapping[str, Quantity]


@dataclass(frozen=True, slots=True)
class Mig:
    """The possible partitions of a GPU."""

    keeps_whole: bool
    """Whether the GPU is also published as a whole: from Hopper on."""
    profiles: tuple[Profile, ...]

    def totals(self) -> dict[str, Quantity]:
        """Return the largest amount of each resource that a profile has."""
        names = sorted({name for profile in self.profiles for name in profile.capacity})
        return {
            name: max(p.capacity[name] for p in self.profiles if name in p.capacity)
            for name in names
        }

    def slices(self) -> range:
        return range(max(profile.slices for profile in self.profiles))


def partition(whole: Device, mig: Mig) -> tuple[tuple[Device, ...], CounterSet]:
    """Return all devices that a GPU can be used as, by name, and their shared counters."""
    name = f"{whole.name}-counter-set"
    counters = _counters(mig.totals(), mig.slices())
    devices = list(_instances(whole, mig, name))
    if mig.keeps_whole:
        consumes = DeviceCounterConsumption(counter_set=name, counters=counters)
        capacity = _capacity(mig.totals())
        devices.append(replace(whole, capacity=capacity, consumes_counters=(consumes,)))
    ordered = tuple(sorted(devices, key=lambda device: device.name))
    return ordered, CounterSet(name=name, counters=counters)


def _instances(whole: Device, mig: Mig, counter_set: str) -> Iterator[Device]:
    for profile in mig.profiles:
        attributes = {
            name: value for name, value in whole.attributes.items() if name not in _OF_THE_WHOLE
        }
        attributes["type"] = DeviceAttribute(string_value="mig")
        attributes["profile"] = DeviceAttribute(string_value=profile.name)
        if "uuid" in whole.attributes:
            attributes["parentUUID"] = whole.attributes["uuid"]
        attributes = dict(sorted(attributes.items()))
        capacity = _capacity(profile.capacity)
        label = profile.name.replace(".", "").replace("+", "-")
        for start in profile.starts:
            counters = _counters(profile.capacity, range(start, start + profile.slices))
            consumes = DeviceCounterConsumption(counter_set=counter_set, counters=counters)
            yield Device(
                name=f"{whole.name}-mig-{label}-{profile.id}-{start}",
                attributes=attributes,
                capacity=capacity,
                consumes_counters=(consumes,),
            )


def _capacity(amounts: Mapping[str, Quantity]) -> dict[str, DeviceCapacity]:
    return {name: DeviceCapacity(value=amounts[name]) for name in sorted(amounts)}


def _counters(amounts: Mapping[str, Quantity], slices: range) -> dict[str, Counter]:
    engines = {_kebab(name): Counter(value=amounts[name]) for name in sorted(amounts)}
    return engines | {f"memory-slice-{index}": _ONE for index in slices}


@cache
def _kebab(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"-\1", name).lower()
