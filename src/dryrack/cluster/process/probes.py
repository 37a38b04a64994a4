"""
What the outside may ask a process that works on a cluster: is it alive, is it ready, its numbers.

`/healthz` and `/readyz` answer as the servers of controller-runtime do: 200 with "ok", or 500 with
what is lacking, a line for each. `/metrics` is Prometheus' text.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.cluster.process.logs import server_log
from dryrack.cluster.process.serving import Address, listen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence

    from aiohttp import web

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# A probe that has not been answered in this time is cut off when the process ends.
_STOP_SECONDS_MAX = 1.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a page says now."""

    text: str
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"


Page = Callable[[], Answer]


@dataclass(frozen=True, slots=True)
class Site:
    """Pages by path, and where they are served."""

    address: Address
    pages: Mapping[str, Page]


def health_pages(lacking: Callable[[], Sequence[str]]) -> dict[str, Page]:
    """Alive as long as it answers; ready when nothing is lacking."""

    def ready() -> Answer:
        missing = lacking()
        return Answer("\n".join(missing), 500) if missing else Answer("ok")

    return {"/healthz": lambda: Answer("ok"), "/readyz": ready}


def metrics_page(text: Callable[[], str]) -> dict[str, Page]:
    return {"/metrics": lambda: Answer(text(), content_type=METRICS_TYPE)}


def merged(sites: Iterable[Site]) -> tuple[Site, ...]:
    """One site for each address, so that all pages can share a port."""
    pages: dict[Address, dict[str, Page]] = {}
    for site in sites:
        pages.setdefault(site.address, {}).update(site.pages)
    return tuple(Site(address, found) for address, found in pages.items())


@asynccontextmanager
async def serving(sites: Iterable[Site]) -> AsyncIterator[tuple[str, ...]]:
    """Serves for the length of a block; the addresses, in the order of the sites."""
    async with contextlib.AsyncExitStack() as stack:
        yield tuple([await stack.enter_async_context(_served(site)) for site in sites])


@asynccontextmanager
async def _served(site: Site) -> AsyncIterator[str]:
    from aiohttp import web

    app = web.Application()
    for path, page in site.pages.items():
        app.router.add_get(path, _handler(page))
    runner = web.AppRunner(
        app, access_log=None, logger=server_log(), shutdown_timeout=_STOP_SECONDS_MAX
    )
    await runner.setup()
    listening = listen(site.address, "choose another port, or 0 for none")
    try:
        await web.SockSite(runner, listening).start()
        host, port = listening.getsockname()[:2]
        yield f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    finally:
        await runner.cleanup()
        listening.close()


def _handler(page: Page) -> Callable[[web.Request], Awaitable[web.Response]]:
    from aiohttp import web

    async def answer(_: web.Request) -> web.Response:
        said = page()
        return web.Response(
            body=said.text.encode(),
            status=said.status,
            headers={"content-type": said.content_type, "x-content-type-options": "nosniff"},
        )

    return answer
