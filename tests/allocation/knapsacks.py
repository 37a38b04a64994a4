"""Nodes on which a search is given up, and a count of the searches that are made."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tests.allocation.builders import claim, counters, drawing, pool, request

from dryrack.allocation.search import allocator

if TYPE_CHECKING:
    import pytest

    from dryrack.allocation.proof.search_memo import Conclusion
    from dryrack.allocation.search.walk import Ending
    from dryrack.kinds.resource import ResourceClaim, ResourceSlice

COUNTERS = ("memory", "cores", "links", "lanes")


class Searches:
    """The results of searches; each stops after a few turns."""

    def __init__(self, patch: pytest.MonkeyPatch, *, steps: int = 64) -> None:
        self.endings: list[Ending] = []
        self._keep = allocator.Search._keep
        give_up_after(steps, patch)
        patch.setattr(allocator.Search, "_keep", lambda *of: self._counted(*of))

    def _counted(self, search: allocator.Search, conclusion: Conclusion) -> None:
        self.endings.append(conclusion.ending)
        self._keep(search, conclusion)

    @property
    def made(self) -> int:
        """The number of searches that have ended."""
        return len(self.endings)


def give_up_after(steps: int, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(allocator, "_LOOKS_MAX", 0)
    patch.setattr(allocator, "_STEPS_MIN", steps)


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
