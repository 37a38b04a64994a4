"""Clocks and random sources: those of the machine, and one that a seed decides."""

from __future__ import annotations

import os
import random
import time
import uuid
from typing import TYPE_CHECKING, TypeVar

Result = TypeVar("Result")

if TYPE_CHECKING:
    from asyncio import TimerHandle
    from collections.abc import Callable


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        return time.time()

    def call_at(self, when: float, callback: Callable[[], None]) -> TimerHandle:
        # Who decides about files takes chance from here, and has no loop.
        from asyncio import get_running_loop

        from dryrack.client.supervision import current_component

        delay = max(0.0, when - self.now())
        component = current_component()
        guarded = callback if component is None else component.guard(callback)
        return get_running_loop().call_later(delay, guarded)

    async def compute(self, function: Callable[[], Result]) -> Result:
        # A thread takes turns with the loop, so requests are answered meanwhile.
        from asyncio import to_thread

        return await to_thread(function)


class SystemChance:
    """Random identifiers from the system."""

    def uuid(self) -> str:
        # uuid.uuid4 does the same, four times as slowly.
        return str(uuid.UUID(bytes=os.urandom(16), version=4))


class SeededChance:
    """Identifiers that a seed decides: the same input gives the same ones in every run."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))
