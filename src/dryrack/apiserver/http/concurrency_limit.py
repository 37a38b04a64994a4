"""
How many requests are worked on at once.

A flood slows its callers and nobody else: so many requests are in hand, so many wait their turn,
and the rest are told at once to come again later. A request that waits too long is told the same.
Watches hold no place while they stream, or a hundred of them would stop everything.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from dryrack.apiserver.answer.status import too_many_requests
from dryrack.base.limits import (
    REQUEST_WAIT_SECONDS_MAX,
    REQUESTS_IN_HAND_MAX,
    REQUESTS_WAITING_MAX,
)

# What the real server says, and client-go obeys.
_MESSAGE = "too many requests, please try again later"
_RETRY_AFTER_SECONDS = 1


@dataclass(frozen=True, slots=True)
class FlowLimits:
    """See `base.limits` for why they are what they are."""

    in_hand_max: int = REQUESTS_IN_HAND_MAX
    waiting_max: int = REQUESTS_WAITING_MAX
    wait_seconds_max: float = REQUEST_WAIT_SECONDS_MAX


class Flow:
    """Lets requests in, first come, first served."""

    def __init__(self, limits: FlowLimits | None = None) -> None:
        self._limits = limits or FlowLimits()
        self._places = asyncio.Semaphore(self._limits.in_hand_max)
        self.waiting = 0

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place for the length of a block; raises a `StatusError` if there will be none."""
        await self._enter()
        try:
            yield
        finally:
            self._places.release()

    async def _enter(self) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        if self.waiting >= self._limits.waiting_max:
            raise too_many_requests(_MESSAGE, _RETRY_AFTER_SECONDS)
        self.waiting += 1
        try:
            async with asyncio.timeout(self._limits.wait_seconds_max):
                await self._places.acquire()
        except TimeoutError:
            raise too_many_requests(_MESSAGE, _RETRY_AFTER_SECONDS) from None
        finally:
            self.waiting -= 1
