"""
Server-sent events: what changes, as it changes.

`?since=REVISION` or the header Last-Event-ID tells what the reader knows. It is sent an event
`update` for each revision since then, or one event `reset` if it has to read everything anew. An
event `cluster` tells that the cluster cannot be followed, or can be again. A comment now and then
keeps proxies from closing what they think is dead.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from aiohttp import web

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
    """Sends updates until the reader goes, or has to begin anew."""
    response = web.StreamResponse(headers=_HEADERS)
    with live.subscribed() as subscription:
        await response.prepare(request)
        # A reader that goes comes again by itself.
        with suppress(ConnectionResetError):
            await _send(response, live, subscription, _known(request))
    return response


async def _send(
    response: web.StreamResponse, live: Live, subscription: Subscription, known: int | None
) -> None:
    missed = live.updates_after(known) if known is not None else None
    # Whatever comes from now on is in the queue.
    known = live.revision
    if missed is None:
        await response.write(_reset(known))
    for each in missed or ():
        await response.write(_frame(each))
    if live.trouble.text:
        await response.write(_cluster(live.trouble))
    while True:
        try:
            async with deadline(live.clock, live.clock.now() + _ALIVE_SECONDS):
                update = await subscription.queue.get()
        except TimeoutError:
            await response.write(b": alive\n\n")
            continue
        if update is None:
            return
        if isinstance(update, Trouble):
            await response.write(_cluster(update))
        elif update.revision > known:
            await response.write(_frame(update))


def _known(request: web.Request) -> int | None:
    """The revision that the reader knows; none that can be meant is as good as none."""
    said = request.headers.get("Last-Event-ID") or request.query.get("since", "")
    return int(said) if said.isascii() and said.isdigit() and len(said) < 19 else None


def _frame(update: Update) -> bytes:
    return b"id: %d\nevent: update\ndata: %b\n\n" % (update.revision, update.body)


def _cluster(trouble: Trouble) -> bytes:
    return b"event: cluster\ndata: %b\n\n" % encoded({"error": trouble.text})


def _reset(revision: int) -> bytes:
    return b'id: %d\nevent: reset\ndata: {"revision":%d}\n\n' % (revision, revision)
