"""Waits for what a scheduler will have done, by what is written and not by the clock."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.cluster.embedded import EmbeddedCluster
    from dryrack.store import Event

# Far more than any of it takes, however busy the machine is.
SECONDS_MAX = 60.0
_WRITTEN = ("pods", "events", "nodes", "resourceclaims.resource.k8s.io")


async def is_so_at_last(cluster: EmbeddedCluster, look: Callable[[], Awaitable[bool]]) -> bool:
    """Looks now, and again after every write; False if it never comes to that."""
    written = asyncio.Event()

    def wake(_: Event) -> None:
        written.set()

    ends = [cluster.plane.store.subscribe(resource, wake) for resource in _WRITTEN]
    try:
        async with asyncio.timeout(SECONDS_MAX):
            while True:
                written.clear()
                if await look():
                    return True
                await written.wait()
    except TimeoutError:
        return False
    finally:
        for end in ends:
            end()
