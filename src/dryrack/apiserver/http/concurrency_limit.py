"""
Limits of concurrent requests, and of the memory of their bodies.

A flood slows only its own callers: a number of requests are answered at once, a number wait for a
place, and the server refuses the rest with 429. It refuses a request that waits too long in the
same way. A request asks for a place when its body has arrived, so that a client that does not send
its body takes none. Watches hold no place while they stream.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from dryrack.apiserver.answer.status import too_many_requests
from dryrack.base.limits import (
    BODIES_BYTES_MAX,
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


class ArrivingBody(Protocol):
    """A body of which more is on the way."""

    def give_up(self, error: Exception) -> None:
        """Make the reader of the body fail with `error`."""
        ...


class HeldBody:
    """The share of one request in the memory for bodies."""

    __slots__ = ("_memory", "body", "size")

    def __init__(self, memory: "BodyMemory", body: ArrivingBody) -> None:
        self._memory = memory
        self.body = body
        self.size = 0

    def grow(self, size: int) -> None:
        """Account for a body of `size` bytes so far; raise a `StatusError` if that is too much."""
        self._memory.grow(self, size)

    def complete(self) -> None:
        """Protect the body from being refused: nothing more of it is on the way."""
        self._memory.complete(self)


class BodyMemory:
    """
    The memory of the bodies of all requests.

    When it is full, the body that began to arrive first is refused in favour of the others. A
    client that sends slowly does not delay others.
    """

    def __init__(self, bytes_max: int = BODIES_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._arriving: dict[HeldBody, None] = {}

    @contextmanager
    def hold(self, body: ArrivingBody) -> Iterator[HeldBody]:
        """Account for a body until the end of the block."""
        held = HeldBody(self, body)
        self._arriving[held] = None
        try:
            yield held
        finally:
            self._release(held)

    def grow(self, held: HeldBody, size: int) -> None:
        self._bytes += size - held.size
        held.size = size
        while self._bytes > self._bytes_max:
            # Bodies that are complete stay: their requests are about to be answered.
            oldest = next(iter(self._arriving))
            self._release(oldest)
            if oldest is held:
                raise too_many_requests(_MESSAGE, _RETRY_AFTER_SECONDS)
            oldest.body.give_up(too_many_requests(_MESSAGE, _RETRY_AFTER_SECONDS))

    def complete(self, held: HeldBody) -> None:
        self._arriving.pop(held, None)

    def _release(self, held: HeldBody) -> None:
        self._arriving.pop(held, None)
        self._bytes -= held.size
        held.size = 0
