"""Nodes on which a search is given up, and a count of the searches that are made."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from tests.allocation.builders import claim, counters, drawing, pool, request

from dryrack.allocation import allocator as allocator_module

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from dryrack.kinds.resource import ResourceClaim, ResourceSlice

COUNTERS = ("memory", "cores", "links", "lanes")


class Searches:
    """Counts searches with proof; each is given up after one round."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.made = 0
        self._turns = allocator_module._turns
        patch.setattr(allocator_module, "_ROUNDS_MAX", 1)
        patch.setattr(allocator_module, "_turns", self._counted)

    def _counted(self, *given: Any) -> Iterator[Any]:
        self.made += 1
        return self._turns(*given)


def hard_node(name: str, *, seed: int = 4, spare: int = 0) -> list[ResourceSlice]:
    """A node with sixty devices of which twenty-five may just fit; the seed decides their sizes."""
    chance = Random(seed)
    draws = [{each: chance.randint(100, 999) for each in COUNTERS} for _ in range(60)]
    parts = [drawing(f"{name}-part-{n:02}", "gpu", **each) for n, each in enumerate(draws)]
    for part in parts:
        part["attributes"] = {"uuid": {"string": f"{name}/{part['name']}"}}
    plain = [{"name": f"{name}-nic-{n}", "attributes": {"nic": {"bool": True}}} for n in range(2)]
    least = {each: sum(sorted(draw[each] for draw in draws)[:25]) for each in COUNTERS}
    limits = {each: 145 * amount // 100 + spare for each, amount in least.items()}
    return pool(parts + plain, sets=[counters("gpu", **limits)], name=f"{name}-pool", node=name)


def hard_claim(name: str = "wish", *, count: int = 25) -> ResourceClaim:
    parts = "!('nic' in device.attributes['gpu.example.com'])"
    return claim(request("r", count, select=parts), name=name)
