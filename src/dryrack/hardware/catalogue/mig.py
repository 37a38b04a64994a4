"""
MIG: one card as many, or as one.

NVIDIA's driver with dynamic MIG offers every instance that the card could be cut into, each
profile at each place, and lets counters tell which exclude each other: one counter for every
kind of engine, and one for every slice of memory, of which there is one. The totals are the
most that any profile has. A profile takes its engines and the slices that it covers.
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
# What a card has and its instances have not, or under another name.
_OF_THE_WHOLE = ("type", "uuid")


@dataclass(frozen=True, slots=True)
class Profile:
    """A size of instance, and where on the card it may start, in slices of memory."""

    name: str
    id: int
    starts: tuple[int, ...]
    slices: int
    capacity: Mapping[str, Quantity]


@dataclass(frozen=True, slots=True)
class Mig:
    """How a card can be cut."""

    keeps_whole: bool
    """Whether the card is on offer as one, too: from Hopper on."""
    profiles: tuple[Profile, ...]

    def totals(self) -> dict[str, Quantity]:
        """The most that any profile has of each thing."""
        names = sorted({name for profile in self.profiles for name in profile.capacity})
        return {
            name: max(p.capacity[name] for p in self.profiles if name in p.capacity)
            for name in names
        }

    def slices(self) -> range:
        return range(max(profile.slices for profile in self.profiles))


def cut(whole: Device, mig: Mig) -> tuple[tuple[Device, ...], CounterSet]:
    """All that a card may be used as, by name, and the counters that they share."""
    name = f"{whole.name}-counter-set"
    counters = _counters(mig.totals(), mig.slices())
    devices = list(_instances(whole, mig, name))
    if mig.keeps_whole:
        consumes = DeviceCounterConsumption(counter_set=name, counters=counters)
        capacity = _capacity(mig.totals())
        devices.append(replace(whole, capacity=capacity, consumes_counters=(consumes,)))
    return tuple(sorted(devices, key=_name)), CounterSet(name=name, counters=counters)


def _name(device: Device) -> str:
    return device.name


def _instances(whole: Device, mig: Mig, counter_set: str) -> Iterator[Device]:
    for profile in mig.profiles:
        attributes = _attributes(whole, profile)
        capacity = _capacity(profile.capacity)
        for start in profile.starts:
            taken = _counters(profile.capacity, range(start, start + profile.slices))
            consumes = DeviceCounterConsumption(counter_set=counter_set, counters=taken)
            yield Device(
                name=f"{whole.name}-mig-{_label(profile.name)}-{profile.id}-{start}",
                attributes=attributes,
                capacity=capacity,
                consumes_counters=(consumes,),
            )


def _attributes(whole: Device, profile: Profile) -> dict[str, DeviceAttribute]:
    inherited = {
        name: value for name, value in whole.attributes.items() if name not in _OF_THE_WHOLE
    }
    own = {
        "type": DeviceAttribute(string_value="mig"),
        "profile": DeviceAttribute(string_value=profile.name),
    }
    if "uuid" in whole.attributes:
        own["parentUUID"] = whole.attributes["uuid"]
    return dict(sorted({**inherited, **own}.items()))


def _capacity(amounts: Mapping[str, Quantity]) -> dict[str, DeviceCapacity]:
    return {name: DeviceCapacity(value=amounts[name]) for name in sorted(amounts)}


def _counters(amounts: Mapping[str, Quantity], slices: range) -> dict[str, Counter]:
    engines = {_kebab(name): Counter(value=amounts[name]) for name in sorted(amounts)}
    return engines | {f"memory-slice-{index}": _ONE for index in slices}


@cache
def _kebab(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"-\1", name).lower()


def _label(profile: str) -> str:
    return profile.replace(".", "").replace("+", "-")
