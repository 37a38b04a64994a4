"""
Server-sent events with each change of the page.

`?since=REVISION` or the header Last-Event-ID contains the last revision that the reader has. The
reader gets an event `update` for each later revision, or one event `reset` if it must read
everything again. An event `cluster` reports that the cluster cannot be watched, or can be watched
again, and the failed components of its control plane. Regular comments keep proxies from closing
the connection.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from dryrack.base.limits import CHUNK_SECONDS_MAX
from dryrack.client.timekeeping import deadline
from dryrack.dashboard.live import Trouble, encode

if TYPE_CHECKING:
    from dryrack.dashboard.live import Live, Subscription, Update

_ALIVE_SECONDS = 15.0
_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    # nginx would gather events before it sends them.
    "X-Accel-Buffering": "no",
}


async def stream(request: web.Request, live: Live) -> web.StreamResponse:
    """Send updates until the reader goes, or has to begin anew."""
    response = web.StreamResponse(headers=_HEADERS)
    with live.subscribe() as subscription:
        await response.prepare(request)
        # A reader that disconnects or does not read connects again by itself.
        try:
            await _send(response, live, subscription, _last_revision(request))
        except ConnectionResetError:
            pass
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
    return response


async def _write(response: web.StreamResponse, frame: bytes) -> None:
    """Send a frame; raise a `TimeoutError` if the reader takes nothing for too long."""
    async with asyncio.timeout(CHUNK_SECONDS_MAX):
        await response.write(frame)


async def _send(
    response: web.StreamResponse, live: Live, subscription: Subscription, known: int | None
) -> None:
    missed = live.updates_after(known) if known is not None else None
    # Later updates are in the queue.
    known = live.revision
    if missed is None:
        await _write(response, b'id: %d\nevent: reset\ndata: {"revision":%d}\n\n' % (known, known))
    for each in missed or ():
        await _write(response, _frame(each))
    if live.trouble != Trouble(""):
        await _write(response, _cluster(live.trouble))
    while True:
        try:
            async with deadline(live.clock, live.clock.now() + _ALIVE_SECONDS):
                update = await subscription.next()
        except TimeoutError:
            await _write(response, b": alive\n\n")
            continue
        if update is None:
            return
        if isinstance(update, Trouble):
            await _write(response, _cluster(update))
        elif update.revision > known:
            await _write(response, _frame(update))


def _last_revision(request: web.Request) -> int | None:
    """Return the last revision that the reader has; None for an invalid one."""
    text = request.headers.get("Last-Event-ID") or request.query.get("since", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _frame(update: Update) -> bytes:
    return b"id: %d\nevent: update\ndata: %b\n\n" % (update.revision, update.body)


def _cluster(trouble: Trouble) -> bytes:
    document = {"error": trouble.text, "failures": trouble.failures}
    return b"event: cluster\ndata: %b\n\n" % encode(document)
