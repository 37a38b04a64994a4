"""
The HTTP server of the page and its JSON API; it only reads.

All paths are relative, so that a proxy may add a prefix. `pages` computes the answers.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from aiohttp import web

from dryrack.base.errors import ContentError, DryrackError
from dryrack.base.limits import DASHBOARD_BODY_BYTES_MAX
from dryrack.cluster.process import server_log
from dryrack.dashboard.bundle import assets
from dryrack.dashboard.data.trial import TrialError
from dryrack.dashboard.history import TimeError
from dryrack.dashboard.live import encode
from dryrack.dashboard.pages import ROUTES, Pages

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from dryrack.dashboard.access import Access
    from dryrack.dashboard.bundle import Asset
    from dryrack.dashboard.live import Live

    Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

API = "/api/v1"
# A stream that is still open when the server stops is closed after this time.
_STOP_SECONDS_MAX = 1.0


@asynccontextmanager
async def serve(
    live: Live,
    listening: socket.socket,
    access: Access,
    results: Mapping[str, Any] | None = None,
) -> AsyncIterator[None]:
    """Serve for the length of a block."""
    runner = web.AppRunner(
        application(live, access, results),
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


def application(
    live: Live, access: Access, results: Mapping[str, Any] | None = None
) -> web.Application:
    """Return the application with every page."""
    app = web.Application(
        middlewares=[access.middleware(), _answer_errors],
        client_max_size=DASHBOARD_BODY_BYTES_MAX,
    )
    app.on_response_prepare.append(access.sign)
    pages = Pages(live, results)
    for path, asset in assets().items():
        app.router.add_get(f"/{path}", _file(asset))
    for pattern, name in ROUTES.items():
        method, _, path = pattern.partition(" ")
        app.router.add_route(method, f"{API}/{path}", getattr(pages, name))
    return app


def _file(asset: Asset) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        headers = {
            "Content-Type": asset.content_type,
            "Cache-Control": asset.caching,
            "Vary": "Accept-Encoding",
        }
        if "gzip" not in request.headers.get("Accept-Encoding", ""):
            return web.Response(body=asset.body, headers=headers)
        return web.Response(body=asset.packed, headers=headers | {"Content-Encoding": "gzip"})

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
