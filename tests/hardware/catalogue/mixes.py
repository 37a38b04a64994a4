"""
Mixes of partitions on one card, and who is right about them.

`fits` tries all places by force. It knows nothing of counters, and has the places written down a
second time, so that it can judge both.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from tests.allocation.builders import claim
from tests.hardware.catalogue.packaged import catalogue, slices_on

from dryrack.hardware.catalogue import Cards
from dryrack.hardware.catalogue.values import Fitting, InstanceType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.resource import Device, ResourceClaim, ResourceSlice

# The placements that `nvidia-smi mig -lgipp` lists, alike on all these cards: the first slices
# that an instance may start at, and how many it covers. Written down a second time on purpose.
KINDS = ("1g", "1g+me", "1g wide", "2g", "3g", "4g", "7g")
STARTS = {
    "1g": (0, 1, 2, 3, 4, 5, 6),
    "1g+me": (0, 1, 2, 3, 4, 5, 6),
    "1g wide": (0, 2, 4, 6),
    "2g": (0, 2, 4),
    "3g": (0, 4),
    "4g": (0,),
    "7g": (0,),
}
SIZE = dict(zip(KINDS, (1, 1, 2, 2, 4, 4, 8), strict=True))
COMPUTE = dict(zip(KINDS, (1, 1, 1, 2, 3, 4, 7), strict=True))
INSTANCES_MAX = dict(zip(KINDS, (7, 1, 4, 3, 2, 1, 1), strict=True))
COMPUTE_SLICES = 7

PROFILES = {
    "a100-sxm4-40gb": (
        "1g.5gb",
        "1g.5gb+me",
        "1g.10gb",
        "2g.10gb",
        "3g.20gb",
        "4g.20gb",
        "7g.40gb",
    ),
    "a100-sxm4-80gb": (
        *("1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"),
    ),
    "h100-sxm5-80gb": (
        *("1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"),
    ),
    "h100-nvl-94gb": (
        *("1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"),
    ),
    "h200-141gb": (
        *("1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"),
    ),
}

Mix = tuple[int, ...]


@cache
def fits(mix: Mix, taken: frozenset[int] = frozenset()) -> bool:
    """Return whether these numbers of instances fit onto one GPU, by trying all starts."""
    if any(count > INSTANCES_MAX[kind] for kind, count in zip(KINDS, mix, strict=True)):
        return False
    if sum(COMPUTE[kind] * count for kind, count in zip(KINDS, mix, strict=True)) > COMPUTE_SLICES:
        return False
    return _places(mix, taken)


@cache
def _places(mix: Mix, taken: frozenset[int]) -> bool:
    index = next((index for index, count in enumerate(mix) if count), None)
    if index is None:
        return True
    kind = KINDS[index]
    rest = (*mix[:index], mix[index] - 1, *mix[index + 1 :])
    covered = (frozenset(range(start, start + SIZE[kind])) for start in STARTS[kind])
    return any(_places(rest, taken | place) for place in covered if not place & taken)


def _changed(mix: Mix, by: int) -> Iterator[Mix]:
    for index, count in enumerate(mix):
        if count + by >= 0:
            yield (*mix[:index], count + by, *mix[index + 1 :])


@cache
def frontier() -> tuple[Mix, ...]:
    """
    The mixes that decide about all others.

    What fits, fits with less, too: so it is enough to try what fits and with any one more does
    not, and what does not fit and with any one less does.
    """
    every = product(*(range(INSTANCES_MAX[kind] + 2) for kind in KINDS))
    return tuple(
        mix
        for mix in every
        if all(fits(other) != fits(mix) for other in _changed(mix, 1 if fits(mix) else -1))
    )


@cache
def one_card(model: str) -> list[ResourceSlice]:
    """A node with one such card, partitioned."""
    slot = {"index": 0, "type": "any", "pci": "0000:01:00.0"}
    machine = InstanceType("any", "any", (Fitting(catalogue().models[model], (slot,)),))
    return slices_on(machine, Cards.PARTITIONED)


def devices(model: str) -> dict[str, Device]:
    return {each.name: each for slice_ in one_card(model) for each in slice_.spec.devices}


def wanting(model: str, mix: Mix, name: str = "claim") -> ResourceClaim:
    """A claim for so many instances of each kind."""
    return claim(
        *(
            _request(index, profile, count)
            for index, (profile, count) in enumerate(zip(PROFILES[model], mix, strict=True))
            if count
        ),
        name=name,
    )


def _request(index: int, profile: str, count: int) -> dict[str, object]:
    select = f"device.attributes['gpu.nvidia.com'].profile == '{profile}'"
    return {
        "name": f"request-{index}",
        "exactly": {
            "deviceClassName": "mig.nvidia.com",
            "allocationMode": "ExactCount",
            "count": count,
            "selectors": [{"cel": {"expression": select}}],
        },
    }


def mix_of(**counts: int) -> Mix:
    """Counts by kind: `g1` is 1g, `me` is 1g+me, `wide` is 1g with twice the memory."""
    names = dict(zip(("g1", "me", "wide", "g2", "g3", "g4", "g7"), KINDS, strict=True))
    assert set(counts) <= set(names)
    return tuple(counts.get(name, 0) for name in names)
