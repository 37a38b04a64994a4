"""Embedded API servers without engines, and ways to disturb the road to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from dryrack.client.client import Client
from dryrack.client.errors import TransportError
from dryrack.client.timekeeping import VirtualClock
from dryrack.client.transport import Request, Response
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.client.transport import Chunk, Stream, Transport
    from dryrack.kinds.raw import Raw


class CountedChance:
    """Identifiers in a row."""

    def __init__(self) -> None:
        self._next = 0

    def uuid(self) -> str:
        self._next += 1
        return f"{self._next * 2654435761 % 2**32:08x}-0000-4000-8000-{self._next:012x}"


def refusal(code: int, reason: str) -> Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    body = status | {"code": code, "reason": reason, "message": f"refused: {reason}"}
    return Response(code, (("content-type", "application/json"),), msgspec.json.encode(body))


class _Cut:
    """A stream that breaks on request."""

    def __init__(self, stream: Stream, road: Road) -> None:
        self._stream = stream
        self._road = road

    def __aiter__(self) -> _Cut:
        return self

    async def __anext__(self) -> Chunk:
        chunk = await self._stream.__anext__()
        if self._road.cuts:
            self._road.cuts -= 1
            raise TransportError("the road is cut")
        return chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


@dataclass(slots=True)
class Road:
    """A transport that others can disturb; it keeps what was asked."""

    to: Transport
    refuse: Callable[[Request], Response | None] = lambda _: None
    cuts: int = 0
    """How many watches break at their next chunk."""
    asked: list[Request] = field(default_factory=list)

    async def send(self, request: Request) -> Response:
        self.asked.append(request)
        if (refused := self.refuse(request)) is not None:
            return refused
        response = await self.to.send(request)
        if isinstance(response.body, bytes):
            return response
        return Response(response.status, response.headers, _Cut(response.body, self))


@dataclass(frozen=True, slots=True)
class Site:
    """A server, a road to it, and the time there."""

    road: Road
    client: Client
    clock: VirtualClock
    chance: CountedChance


def site() -> Site:
    clock = VirtualClock()
    chance = CountedChance()
    plane = build_control_plane(ControlPlaneOptions(clock=clock, chance=chance))
    road = Road(plane.transport)
    return Site(road, Client(road), clock, chance)


def config_map(name: str, **data: str) -> Raw:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}
