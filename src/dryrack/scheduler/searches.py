"""
Long searches for devices, one at a time, in turns between other work.

A pod whose claims take long to search waits until its search has ended, and is then decided anew,
on the cluster as it is by that time: what the search came to is remembered, and answers where
nothing happened that matters. Meanwhile other pods are decided. Pods that need the same search
wait for one.
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
    """Which pods and gangs wait for which search, and how many each has waited for."""

    def __init__(self, ended: Callable[[Unit], None]) -> None:
        """`ended` is told of each that waited."""
        self._ended = ended
        self._searches: dict[Hashable, Search] = {}
        self._waiting: dict[Hashable, dict[Unit, None]] = {}
        self._made: dict[Unit, int] = {}
        self._some = asyncio.Event()

    def left(self, unit: Unit) -> int:
        """How many more the pod may wait for before it has to be decided."""
        return SEARCHES_MAX - self._made.get(unit, 0)

    def wait(self, unit: Unit, search: Search) -> None:
        self._made[unit] = self._made.get(unit, 0) + 1
        self._searches.setdefault(search.facts, search)
        self._waiting.setdefault(search.facts, {})[unit] = None
        self._some.set()

    def forget(self, unit: Unit) -> None:
        """The pod is decided, or gone."""
        self._made.pop(unit, None)

    async def run(self) -> None:
        """Makes the searches, those that were wanted first in front."""
        while True:
            await self._some.wait()
            facts, search = next(iter(self._searches.items()))
            for _ in search.turns:
                await asyncio.sleep(0)
            del self._searches[facts]
            for unit in self._waiting.pop(facts):
                self._ended(unit)
            if not self._searches:
                self._some.clear()
