"""
The page and its JSON API, over HTTP on loopback; it reads, and writes nothing.

Answers are computed when somebody asks, from what `Live` knows. What takes long, a decision or the
map of a large fleet, is worked out in a thread, one at a time: in `dryrack up` the loop is that of
the API server. Paths are relative everywhere, so that a proxy may put anything before them.
"""

from __future__ import annotations

import asyncio
import gzip
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from dryrack.base.errors import ContentError, DryrackError
from dryrack.dashboard.data.fleet import fleet_document
from dryrack.dashboard.decisions import Decisions
from dryrack.dashboard.live import Live, encoded
from dryrack.dashboard.stream import stream

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.dashboard.access import Access

    Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

STATIC = Path(__file__).parent / "static"
API = "/api/v1"
# By path below the version, what answers a GET.
ROUTES = {
    "fleet": "fleet",
    "claims": "claims",
    "gangs": "gangs",
    "pods": "pods",
    "explain/{kind:pod|claim|gang}/{namespace}/{name:.+}": "explain",
    "stream": "stream",
}
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
# A stream that is open when the server ends is cut off after this.
_STOP_SECONDS_MAX = 1.0
# Less than this is sent as it is, and more than that is packed in a thread.
_PACKED_BYTES_MIN = 1024
_THREAD_BYTES_MIN = 64 * 1024


@asynccontextmanager
async def serving(
    client: Client,
    listening: socket.socket,
    access: Access,
    *,
    clock: Timekeeper,
    chance: Chance,
) -> AsyncIterator[None]:
    """Serves for the length of a block."""
    live = Live(client, clock=clock, chance=chance)
    runner = web.AppRunner(
        application(live, access), access_log=None, shutdown_timeout=_STOP_SECONDS_MAX
    )
    async with asyncio.TaskGroup() as group:
        following = group.create_task(live.run(), name="the page's view")
        await runner.setup()
        try:
            await web.SockSite(runner, listening).start()
            yield
        finally:
            following.cancel()
            await runner.cleanup()


def application(live: Live, access: Access) -> web.Application:
    """Everything that is served."""
    app = web.Application(middlewares=[access.middleware(), _told_errors])
    app.on_response_prepare.append(access.sign)
    pages = Pages(live)
    app.router.add_get("/", _file(STATIC / "index.html"))
    for path in sorted(STATIC.rglob("*")):
        if path.suffix in _TYPES and path.name != "index.html":
            app.router.add_get(f"/static/{path.relative_to(STATIC).as_posix()}", _file(path))
    for pattern, name in ROUTES.items():
        app.router.add_get(f"{API}/{pattern}", getattr(pages, name))
    return app


class Pages:
    """The answers of the JSON API."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._decisions = Decisions(live)
        self._fleet: tuple[int, bytes] | None = None
        self._working = asyncio.Lock()

    async def fleet(self, request: web.Request) -> web.StreamResponse:
        """The map; packed once for all who ask before something changes."""
        await self._live.look()
        async with self._working:
            if self._fleet is None or self._fleet[0] != self._live.revision:
                revision, packed = await self._packed_fleet()
                self._fleet = (revision, packed)
            return _packed(request, self._fleet[1])

    async def _packed_fleet(self) -> tuple[int, bytes]:
        live, tracked = self._live, self._live.tracked
        # Rows are values; what the thread reads does not change any more.
        pools = sorted(tracked.fleet.pools.current.values(), key=lambda each: each[:2])
        nodes = sorted(tracked.nodes.current.values(), key=lambda each: each["name"])
        revision, notes = live.revision, list(live.notes)
        summary = tracked.fleet.summaries.documents()

        def packed() -> bytes:
            document = {"revision": revision, "notes": notes, "summary": summary}
            return gzip.compress(encoded(document | fleet_document(pools, nodes)), 5)

        return revision, await asyncio.to_thread(packed)

    async def claims(self, request: web.Request) -> web.StreamResponse:
        await self._live.look()
        rows = self._live.tracked.claims.current
        found = [rows[key] for key in sorted(rows)]
        return await _json(request, {"revision": self._live.revision, "claims": found})

    async def gangs(self, request: web.Request) -> web.StreamResponse:
        await self._live.look()
        rows = self._live.tracked.gangs.current
        found = [each for key in sorted(rows) for each in rows[key]]
        found.sort(key=lambda each: (each["namespace"], each["name"]))
        return await _json(request, {"revision": self._live.revision, "gangs": found})

    async def pods(self, request: web.Request) -> web.StreamResponse:
        """All pods, or with `?pending` those that have no node yet."""
        await self._live.look()
        rows = self._live.tracked.pods.current
        found = [rows[key] for key in sorted(rows)]
        if "pending" in request.query:
            found = [each for each in found if each["pending"]]
        return await _json(request, {"revision": self._live.revision, "pods": found})

    async def explain(self, request: web.Request) -> web.StreamResponse:
        """As `dryrack explain -o json`."""
        await self._live.look()
        where = request.match_info
        name = f"{where['namespace']}/{where['name']}"
        async with self._working:
            case = await self._decisions.explain(where["kind"], name)
        return await _json(request, case)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events."""
        await self._live.look()
        return await stream(request, self._live)


def _file(path: Path) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        headers = {"Content-Type": _TYPES[path.suffix], "Cache-Control": "no-cache"}
        return web.FileResponse(path, headers=headers)

    return answer


@web.middleware
async def _told_errors(request: web.Request, handler: Answer) -> web.StreamResponse:
    """A mistake is told as JSON: what, and what would put it right."""
    try:
        return await handler(request)
    except ContentError as error:
        return _refusal(404, str(error))
    except DryrackError as error:
        return _refusal(503, str(error))
    except web.HTTPException as error:
        return _refusal(error.status, error.reason)


def _refusal(status: int, text: str) -> web.Response:
    return web.Response(
        status=status, body=encoded({"error": text}), content_type="application/json"
    )


async def _json(request: web.Request, document: Mapping[str, Any]) -> web.Response:
    body = encoded(document)
    if len(body) < _PACKED_BYTES_MIN:
        return _plain(body)
    if len(body) < _THREAD_BYTES_MIN:
        return _packed(request, gzip.compress(body, 5))
    return _packed(request, await asyncio.to_thread(gzip.compress, body, 5))


def _packed(request: web.Request, packed: bytes) -> web.Response:
    if "gzip" not in request.headers.get("Accept-Encoding", ""):
        return _plain(gzip.decompress(packed))
    response = _plain(packed)
    response.headers["Content-Encoding"] = "gzip"
    return response


def _plain(body: bytes) -> web.Response:
    headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
    return web.Response(body=body, content_type="application/json", headers=headers)
