"""Ways to a server on which things get lost, come late, or come to nothing; a seed says which."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from tests.client.planes import refusal

from dryrack.client.errors import TransportError
from dryrack.client.timekeeping import sleep
from dryrack.client.transport import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.client.timekeeping import Timekeeper
    from dryrack.client.transport import Request, Stream, Transport

REFUSALS = (
    (409, "Conflict"),
    (410, "Expired"),
    (429, "TooManyRequests"),
    (500, "InternalError"),
    (503, "ServiceUnavailable"),
    (504, "Timeout"),
)


@dataclass(slots=True)
class Weather:
    """The shares of requests that fail, are lost, or are late."""

    refused: float = 0.0
    lost_before: float = 0.0
    """The request never arrives."""
    lost_after: float = 0.0
    """It has its effect, and the answer never arrives."""
    cut: float = 0.0
    """A watch breaks."""
    expired: float = 0.0
    """A watch ends because its revision is too old."""
    dropped: float = 0.0
    """A watch does not tell of something."""
    late_steps: int = 0
    """How long an event may take, in steps of the loop."""
    late_seconds: float = 0.0
    """The same in time."""


FAIR = Weather()


class Storm:
    """
    A transport through the weather.

    `lose` decides about single lines of watches; nothing is heard of slices unless `slices_pass`.
    """

    def __init__(
        self,
        to: Transport,
        weather: Weather,
        seed: int = 0,
        *,
        clock: Timekeeper | None = None,
    ) -> None:
        self.to = to
        self.clock = clock
        self.weather = weather
        self.slices_pass = asyncio.Event()
        self.slices_pass.set()
        self.lose: Callable[[bytes], bool] = lambda _: False
        self._random = random.Random(seed)

    def strikes(self, share: float) -> bool:
        return self._random.random() < share

    async def delay(self, chunk: bytes) -> None:
        if b'"kind":"ResourceSlice"' in chunk:
            await self.slices_pass.wait()
        for _ in range(self._random.randint(0, self.weather.late_steps)):
            await asyncio.sleep(0)
        if self.weather.late_seconds:
            assert self.clock is not None, "delays need a clock"
            await sleep(self.clock, self._random.random() * self.weather.late_seconds)

    async def send(self, request: Request) -> Response:
        if self.strikes(self.weather.lost_before):
            raise TransportError("the request is lost")
        if self.strikes(self.weather.refused):
            return refusal(*self._random.choice(REFUSALS))
        # The weather is that of a wire, on which everything is text.
        response = await self.to.send(msgspec.structs.replace(request, takes_objects=False))
        if not isinstance(response.body, bytes):
            return Response(response.status, response.headers, _Rain(response.body, self))
        if self.strikes(self.weather.lost_after):
            raise TransportError("the answer is lost")
        return response


class _Rain:
    """A watch through the weather."""

    def __init__(self, stream: Stream, storm: Storm) -> None:
        self._stream = stream
        self._storm = storm

    def __aiter__(self) -> _Rain:
        return self

    async def __anext__(self) -> bytes:
        chunk = await self._stream.__anext__()
        assert isinstance(chunk, bytes)
        await self._storm.delay(chunk)
        if self._storm.strikes(self._storm.weather.cut):
            raise TransportError("the watch is cut")
        if self._storm.strikes(self._storm.weather.expired):
            status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
            return msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n"
        lines = [line for line in chunk.splitlines(keepends=True) if not self._is_lost(line)]
        return b"".join(lines)

    def _is_lost(self, line: bytes) -> bool:
        # The end of the initial events is a matter of the connection, and what it tells of is not.
        if b'"BOOKMARK"' in line[:30]:
            return False
        return self._storm.lose(line) or self._storm.strikes(self._storm.weather.dropped)

    async def aclose(self) -> None:
        await self._stream.aclose()
