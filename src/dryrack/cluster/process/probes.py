"""
Serve the probes and metrics of a process that works on a cluster.

`/healthz` and `/readyz` answer as the servers of controller-runtime do: 200 with "ok", or 500 with
what is missing, a line for each reason. `/metrics` has the text format of Prometheus.
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
    """The current content of a page."""

    text: str
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"


Page = Callable[[], Answer]


@dataclass(frozen=True, slots=True)
class Site:
    """Pages by path, and the address on which they are served."""

    address: Address
    pages: Mapping[str, Page]
    options: tuple[str, ...] = ()
    """The options of the command line that set the address."""


def health_pages(missing_parts: Callable[[], Sequence[str]]) -> dict[str, Page]:
    """Return the pages of the probes: alive while it answers, ready when nothing is missing."""

    def ready() -> Answer:
        missing = missing_parts()
        return Answer("\n".join(missing), 500) if missing else Answer("ok")

    return {"/healthz": lambda: Answer("ok"), "/readyz": ready}


def metrics_page(text: Callable[[], str]) -> dict[str, Page]:
    return {"/metrics": lambda: Answer(text(), content_type=METRICS_TYPE)}


def merge_sites(sites: Iterable[Site]) -> tuple[Site, ...]:
    """Return one site for each address, so that several can share a port."""
    merged: dict[Address, Site] = {}
    for site in sites:
        other = merged.get(site.address, Site(site.address, {}))
        pages = {**other.pages, **site.pages}
        merged[site.address] = Site(site.address, pages, (*other.options, *site.options))
    return tuple(merged.values())


@asynccontextmanager
async def serve_sites(sites: Iterable[Site]) -> AsyncIterator[tuple[str, ...]]:
    """Serve for the length of a block; yield the addresses, in the order of the sites."""
    async with contextlib.AsyncExitStack() as stack:
        yield tuple([await stack.enter_async_context(_serve(site)) for site in sites])


@asynccontextmanager
async def _serve(site: Site) -> AsyncIterator[str]:
    from aiohttp import web

    app = web.Application()
    for path, page in site.pages.items():
        app.router.add_get(path, _handler(page))
    runner = web.AppRunner(
        app, access_log=None, logger=server_log(), shutdown_timeout=_STOP_SECONDS_MAX
    )
    await runner.setup()
    options = f" with {' and '.join(site.options)}" if site.options else ""
    listening = listen(site.address, f"choose another port{options}, or 0 for none")
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
        content = page()
        return web.Response(
            body=content.text.encode(),
            status=content.status,
            headers={"content-type": content.content_type, "x-content-type-options": "nosniff"},
        )

    return answer
