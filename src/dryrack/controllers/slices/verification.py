"""
Whether a cache still knows what there is.

A watch that lost an event looks like one to which nothing happened. So now and then the names and
revisions of all objects are read, and compared. What differs may only be on its way; what still
differs a moment later was lost, and then the cache is filled anew.

Reading takes its time with the size of the cluster. It is done so seldom that it takes no more
than a small part of all time.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dryrack.client.client import EVERYTHING, Selection
from dryrack.client.endpoints import NODES, SLICES
from dryrack.client.errors import ApiError, TransportError
from dryrack.client.informer import name_of
from dryrack.client.timekeeping import sleep
from dryrack.controllers.slices.desired import is_ours
from dryrack.hardware import MANAGED_BY, MANAGER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.client.client import Listing
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.informer import Name
    from dryrack.controllers.writes import EngineContext
    from dryrack.kinds.raw import Raw

_logger = logging.getLogger(__name__)

# A watch in good health is milliseconds behind; a second is enough for a bad one.
GRACE_SECONDS = 1.0
# Of all time, one part in so many may be spent on reading.
SHARE = 50

OURS = Selection(labels=f"{MANAGED_BY}={MANAGER}")


async def keep_verified(context: EngineContext, every_seconds: float) -> None:
    """Verifies the caches of nodes and slices until it is cancelled."""
    pause = every_seconds
    while True:
        await sleep(context.clock, pause)
        began = context.clock.now()
        try:
            await _verify(context, NODES, EVERYTHING)
            await _verify(context, SLICES, OURS)
        except (ApiError, TransportError) as error:
            _logger.info("caches not verified: %s", error)
        pause = max(every_seconds, SHARE * (context.clock.now() - began - 2 * GRACE_SECONDS))


async def _verify(context: EngineContext, endpoint: Endpoint, selection: Selection) -> None:
    listing = await context.client.list_metadata(endpoint, selection)
    objects = context.informers.of(endpoint).objects
    suspects = list(missed(objects, listing, selection))
    if not suspects:
        return
    await sleep(context.clock, GRACE_SECONDS)
    lost = [name for name, before in suspects if objects.get(name) is before]
    if lost:
        shown = lost[0].name
        _logger.warning("a watch of %s lost events", endpoint.resource, extra={"first": shown})
        context.informers.refresh(endpoint)


def missed(
    objects: Mapping[Name, Raw], listing: Listing, selection: Selection = EVERYTHING
) -> Iterator[tuple[Name, Raw | None]]:
    """Names of which a listing knows more than the cache, and what the cache has of them."""
    listed = {name_of(item): item for item in listing.items}
    for name, item in listed.items():
        cached = objects.get(name)
        if cached is None or _revision(cached) < _revision(item):
            yield name, cached
    for name, cached in objects.items():
        is_meant = selection is EVERYTHING or is_ours(cached)
        if is_meant and name not in listed and _revision(cached) <= int(listing.revision):
            yield name, cached


def _revision(obj: Raw) -> int:
    return int(obj["metadata"]["resourceVersion"])
