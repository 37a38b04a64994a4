"""
Long searches for devices, one at a time, in turns between other work.

If a search for the claims of a pod takes long, the pod waits until the search has ended, and is
then decided again with the cluster as it is by that time: the result of the search is remembered,
and counts if nothing relevant changed. Meanwhile other pods are decided. Pods that need the same
search share one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dryrack.placement import SEARCHES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from dryrack.allocation import Search
    from dryrack.scheduler.queue import Unit


class LongSearches:
    """The searches for which pods and gangs wait."""

    def __init__(self, on_end: Callable[[Unit], None]) -> None:
        """`on_end` is called for each unit whose search has ended."""
        self._on_end = on_end
        self._searches: dict[Hashable, Search] = {}
        self._waiting: dict[Hashable, dict[Unit, None]] = {}
        self._counts: dict[Unit, int] = {}
        self._has_search = asyncio.Event()

    def searches_left(self, unit: Unit) -> int:
        """Return how many more searches the unit may wait for before it has to be decided."""
        return SEARCHES_MAX - self._counts.get(unit, 0)

    def wait(self, unit: Unit, search: Search) -> None:
        self._counts[unit] = self._counts.get(unit, 0) + 1
        self._searches.setdefault(search.key, search)
        self._waiting.setdefault(search.key, {})[unit] = None
        self._has_search.set()

    def forget(self, unit: Unit) -> None:
        """Reset the number of searches of a unit that is decided or deleted."""
        self._counts.pop(unit, None)

    async def run(self) -> None:
        """Run the searches in the order in which they were requested."""
        while True:
            await self._has_search.wait()
            facts, search = next(iter(self._searches.items()))
            for _ in search.turns:
                await asyncio.sleep(0)
            del self._searches[facts]
            for unit in self._waiting.pop(facts):
                self._on_end(unit)
            if not self._searches:
                self._has_search.clear()
