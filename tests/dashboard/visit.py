"""The page's server on a cluster of this process, over real HTTP and in virtual time."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import ClientSession, CookieJar
from aiohttp.test_utils import TestServer
from tests.client.planes import CountedChance, Road
from tests.dashboard.small_world import small_world

from dryrack.client.client import Client
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.cluster.snapshots.past import past_of
from dryrack.dashboard.access import Access
from dryrack.dashboard.live import Live
from dryrack.dashboard.server import application

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from aiohttp import ClientResponse

    from dryrack.kinds.raw import Raw

TOKEN = "a" * 48
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@dataclass(frozen=True, slots=True)
class Visit:
    """A client of the dashboard, and the cluster."""

    client: Client
    clock: VirtualClock
    live: Live
    http: ClientSession
    # What the page's server asked of the cluster.
    road: Road

    async def get(self, path: str) -> Raw:
        async with self.http.get(f"/api/v1/{path}", headers=BEARER) as response:
            assert response.status == 200, await response.text()
            found: Raw = await response.json()
            return found

    async def attempt(self, body: object, status: int = 200) -> Raw:
        async with self.http.post("/api/v1/try", headers=BEARER, json=body) as response:
            assert response.status == status, await response.text()
            found: Raw = await response.json()
            return found

    @asynccontextmanager
    async def streaming(self, query: str = "", **headers: str) -> AsyncIterator[Events]:
        path = f"/api/v1/stream{query}"
        async with self.http.get(path, headers=BEARER | headers) as response:
            assert response.status == 200, await response.text()
            yield Events(response)


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event; -1 for one without an id."""

    id: int
    type: str
    data: Raw


@dataclass(frozen=True, slots=True)
class Events:
    """Server-sent events, one by one."""

    response: ClientResponse

    async def next(self) -> Event:
        fields: dict[str, str] = {}
        while True:
            line = (await self.response.content.readline()).decode()
            assert line, "the stream ended"
            if line == "\n" and fields:
                number = int(fields.get("id", -1))
                return Event(number, fields["event"], json.loads(fields["data"]))
            name, _, value = line.rstrip("\n").partition(": ")
            if name:
                fields[name] = value


def visit(
    story: Callable[[Visit], Awaitable[None]], *, empty: bool = False, with_past: bool = False
) -> None:
    """Plays a story on the small world, or on an empty cluster; its log may be read."""
    asyncio.run(_played(story, empty=empty, with_past=with_past))


async def _played(
    story: Callable[[Visit], Awaitable[None]], *, empty: bool, with_past: bool
) -> None:
    clock = VirtualClock()
    chance = CountedChance()
    options = ControlPlaneOptions(clock=clock, chance=chance)
    async with embedded(options, engines=()) as cluster:
        if not empty:
            await small_world(cluster.client)
        road = Road(cluster.transport)
        past = partial(past_of, cluster.plane.store) if with_past else None
        live = Live(Client(road), clock=clock, chance=chance, read_past=past)
        async with asyncio.TaskGroup() as group:
            following = group.create_task(live.run())
            server = TestServer(application(live, Access(TOKEN)))
            await server.start_server(access_log=None, shutdown_timeout=0.1)
            jar = CookieJar(unsafe=True)
            try:
                async with ClientSession(server.make_url("/"), cookie_jar=jar) as http:
                    await story(Visit(cluster.client, clock, live, http, road))
            finally:
                following.cancel()
                await server.close()
