"""
A transport on which requests fail as the fault board decides.

Without a fault, a request passes unchanged. The failures are those of a real server: a conflict, a
429 with a retry time, no connection, a lost response to a write that took effect, and watches that
end or are late.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dryrack.client.errors import TransportError
from dryrack.client.timekeeping import add_jitter, fraction, sleep
from dryrack.client.transport import Response
from dryrack.cluster.faults.model import RETRY_AFTER_SECONDS, WatchEnd

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from dryrack.client.transport import Chunk, Request, Stream, Transport
    from dryrack.cluster.faults.board import Life
    from dryrack.cluster.faults.model import ApiFault

_HEADERS = (("content-type", "application/json"),)


class FaultyTransport:
    """Sends the requests of an engine, with the faults of its life."""

    def __init__(self, to: Transport, life: Life) -> None:
        self._to = to
        self._life = life

    def send(self, request: Request) -> Coroutine[Any, Any, Response]:
        if self._life.is_quiet and "watch=true" not in request.query:
            return self._to.send(request)
        return self._send(request)

    async def _send(self, request: Request) -> Response:
        self._life.check()
        is_write = request.method != "GET"
        fate = self._life.on_write() if is_write else None
        fault = self._life.api
        if fault is not None:
            refusal = await self._before(fault, request)
            if refusal is not None:
                return refusal
        if fate is not None:
            fate.before()
        response = await self._to.send(request)
        if fate is not None:
            fate.after()
        if fault is not None:
            await self._delay(fault.latency_seconds / 2)
            if is_write and self._strikes(fault.lost_answers):
                raise TransportError("the connection was lost before the answer came")
        if isinstance(response.body, bytes) or response.status != 200:
            return response
        stream = FaultyStream(response.body, self._life)
        self._life.opened(stream)
        return Response(response.status, response.headers, stream)

    async def _before(self, fault: ApiFault, request: Request) -> Response | None:
        await self._delay(fault.latency_seconds / 2)
        if self._strikes(fault.errors):
            raise TransportError("the connection was lost before the request was sent")
        if self._strikes(fault.too_many):
            details = {"retryAfterSeconds": RETRY_AFTER_SECONDS}
            status = _status(429, "TooManyRequests", "too many requests, please try again later")
            headers = (*_HEADERS, ("retry-after", str(RETRY_AFTER_SECONDS)))
            return Response(429, headers, json.dumps(status | {"details": details}).encode())
        if request.method in ("PUT", "PATCH") and self._strikes(fault.conflicts):
            name = request.path.rstrip("/").rpartition("/")[2]
            message = (
                f'Operation cannot be fulfilled on "{name}": the object has been modified; '
                "please apply your changes to the latest version and try again"
            )
            return Response(409, _HEADERS, json.dumps(_status(409, "Conflict", message)).encode())
        return None

    def _strikes(self, share: float) -> bool:
        return share > 0 and fraction(self._life.chance) < share

    async def _delay(self, seconds: float) -> None:
        if seconds > 0:
            await sleep(self._life.clock, add_jitter(self._life.chance, seconds))


class FaultyStream:
    """A watch that can be lost while it is open, and whose events can be late."""

    def __init__(self, inner: Stream, life: Life) -> None:
        self._inner = inner
        self._life = life
        self._end: WatchEnd | None = None

    def __aiter__(self) -> FaultyStream:
        return self

    async def __anext__(self) -> Chunk:
        try:
            chunk: Chunk = await anext(self._inner)
            fault = self._life.api
            if fault is not None and fault.watch_latency_seconds > 0:
                seconds = add_jitter(self._life.chance, fault.watch_latency_seconds)
                await sleep(self._life.clock, seconds)
        except StopAsyncIteration:
            chunk = b""
        if self._end is None and chunk:
            return chunk
        return self._last()

    def _last(self) -> bytes:
        """Return the end of a lost watch."""
        end = self._end
        self._end = None
        match end:
            case WatchEnd.BROKEN:
                raise TransportError("the watch was broken off")
            case WatchEnd.EXPIRED:
                status = _status(410, "Expired", "too old resource version")
                return json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
            case None:
                raise StopAsyncIteration

    async def lose(self, end: WatchEnd) -> None:
        """End the watch for its reader."""
        self._end = end
        await self._inner.aclose()

    async def aclose(self) -> None:
        self._life.closed(self)
        await self._inner.aclose()


def _status(code: int, reason: str, message: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
