"""Ways to a server on which things get lost, come late, or come to nothing; a seed says which."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from tests.client.planes import refusal

from dryrack.client.errors import TransportError
from dryrack.client.transport import Response

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """How bad it is, each as a share of all that passes."""

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


FAIR = Weather()


class Storm:
    """A transport through the weather; `lose` decides about single lines of watches."""

    def __init__(self, to: Transport, weather: Weather, seed: int = 0) -> None:
        self.to = to
        self.weather = weather
        self.lose: Callable[[bytes], bool] = lambda _: False
        self._random = random.Random(seed)

    def strikes(self, share: float) -> bool:
        return self._random.random() < share

    def steps(self) -> int:
        most = self.weather.late_steps
        return self._random.randint(0, most) if most else 0

    async def send(self, request: Request) -> Response:
        if self.strikes(self.weather.lost_before):
            raise TransportError("the request is lost")
        if self.strikes(self.weather.refused):
            return refusal(*self._random.choice(REFUSALS))
        response = await self.to.send(request)
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
        for _ in range(self._storm.steps()):
            await asyncio.sleep(0)
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
