"""
Server-sent events: what changes, as it changes.

`?since=REVISION` or the header Last-Event-ID tells what the reader knows. It is sent an event
`update` for each revision since then, or one event `reset` if it has to read everything anew. An
event `cluster` says that the cluster cannot be followed, or can be followed again, and which
components of its control plane have failed. A comment now and then keeps proxies from closing a
connection that they consider dead.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from dryrack.base.limits import CHUNK_SECONDS_MAX
from dryrack.client.timekeeping import deadline
from dryrack.dashboard.live import Trouble, encoded

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
    with live.subscribed() as subscription:
        await response.prepare(request)
        # A reader that goes, or that does not read, comes again by itself.
        try:
            await _send(response, live, subscription, _known(request))
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
    # Whatever comes from now on is in the queue.
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


def _known(request: web.Request) -> int | None:
    """The revision that the reader knows; none that can be meant is as good as none."""
    said = request.headers.get("Last-Event-ID") or request.query.get("since", "")
    return int(said) if said.isascii() and said.isdigit() and len(said) < 19 else None


def _frame(update: Update) -> bytes:
    return b"id: %d\nevent: update\ndata: %b\n\n" % (update.revision, update.body)


def _cluster(trouble: Trouble) -> bytes:
    document = {"error": trouble.text, "failures": trouble.failures}
    return b"event: cluster\ndata: %b\n\n" % encoded(document)
