"""
Events about slices, after the slices.

When a fleet comes up, an event for each node would be a third of all writes, and every slice would
wait for the events of those before it. So events wait until there is nothing better to do, but
not for ever; of more than a few hundred the oldest are given up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from dryrack.client.timekeeping import sleep
from dryrack.controllers.writes import Hands

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.controllers.writes import Report, Surroundings

WAITING_MAX = 512
LOOK_SECONDS = 0.1
PATIENCE_SECONDS = 1.0


class Notices:
    """Tells people things when there is time; `run` keeps it going."""

    def __init__(self, around: Surroundings, component: str, is_calm: Callable[[], bool]) -> None:
        self._clock = around.clock
        self._hands = Hands(around, component)
        self._is_calm = is_calm
        self._waiting: deque[Report] = deque(maxlen=WAITING_MAX)
        self._posted = asyncio.Event()

    def post(self, report: Report) -> None:
        self._waiting.append(report)
        self._posted.set()

    async def run(self) -> None:
        while True:
            while not self._waiting:
                self._posted.clear()
                await self._posted.wait()
            await self._calm()
            await self._hands.carry_out((self._waiting.popleft(),))

    async def _calm(self) -> None:
        since = self._clock.now()
        while not self._is_calm() and self._clock.now() - since < PATIENCE_SECONDS:
            await sleep(self._clock, LOOK_SECONDS)
