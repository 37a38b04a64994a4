"""The real time and real chance, which everything but a simulation runs on."""

import asyncio
import os
import time
import uuid
from collections.abc import Callable


class SystemClock:
    """The time of the machine."""

    def now(self) -> float:
        return time.time()

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        delay = max(0.0, when - self.now())
        return asyncio.get_running_loop().call_later(delay, callback)


class SystemChance:
    """Identifiers that nobody can guess."""

    def uuid(self) -> str:
        # uuid.uuid4 does the same, four times as slowly.
        return str(uuid.UUID(bytes=os.urandom(16), version=4))
