"""
The HTTP server of the page and its JSON API; it only reads.

All paths are relative, so that a proxy may add a prefix. `pages` computes the answers.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from dryrack.base.errors import ContentError, DryrackError
from dryrack.base.limits import DASHBOARD_BODY_BYTES_MAX
from dryrack.cluster.process import server_log
from dryrack.dashboard.data.trial import TrialError
from dryrack.dashboard.history import TimeError
from dryrack.dashboard.live import encode
from dryrack.dashboard.pages import ROUTES, Pages

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Awaitable, Callable

    from dryrack.dashboard.access import Access
    from dryrack.dashboard.live import Live

    Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

STATIC = Path(__file__).parent / "static"
API = "/api/v1"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
# A stream that is still open when the server stops is closed after this time.
_STOP_SECONDS_MAX = 1.0


@asynccontextmanager
async def serve(live: Live, listening: socket.socket, access: Access) -> AsyncIterator[None]:
    """Serve for the length of a block."""
    runner = web.AppRunner(
        application(live, access),
        access_log=None,
        logger=server_log(),
        shutdown_timeout=_STOP_SECONDS_MAX,
    )
    async with asyncio.TaskGroup() as group:
        state_task = group.create_task(live.run(), name="state of the dashboard")
        await runner.setup()
        try:
            await web.SockSite(runner, listening).start()
            yield
        finally:
            state_task.cancel()
            await runner.cleanup()


def application(live: Live, access: Access) -> web.Application:
    """Return the application with every page."""
    app = web.Application(
        middlewares=[access.middleware(), _answer_errors],
        client_max_size=DASHBOARD_BODY_BYTES_MAX,
    )
    app.on_response_prepare.append(access.sign)
    pages = Pages(live)
    app.router.add_get("/", _file(STATIC / "index.html"))
    for file in sorted(STATIC.rglob("*")):
        if file.suffix in _TYPES and file.name != "index.html":
            app.router.add_get(f"/static/{file.relative_to(STATIC).as_posix()}", _file(file))
    for pattern, name in ROUTES.items():
        method, _, path = pattern.partition(" ")
        app.router.add_route(method, f"{API}/{path}", getattr(pages, name))
    return app


def _file(path: Path) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        headers = {"Content-Type": _TYPES[path.suffix], "Cache-Control": "no-cache"}
        return web.FileResponse(path, headers=headers)

    return answer


@web.middleware
async def _answer_errors(request: web.Request, handler: Answer) -> web.StreamResponse:
    """Answer an error with JSON that contains the problem and the fix."""
    try:
        return await handler(request)
    except ContentError as error:
        return _refusal(404, str(error))
    except (TrialError, TimeError) as error:
        return _refusal(400, str(error))
    except DryrackError as error:
        return _refusal(503, str(error))
    except web.HTTPException as error:
        return _refusal(error.status, error.reason)


def _refusal(status: int, text: str) -> web.Response:
    return web.Response(
        status=status, body=encode({"error": text}), content_type="application/json"
    )
