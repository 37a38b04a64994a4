"""
The history from before somebody first looked, on a plane that kept its log.

What was there first is put on the page, and every write since is made again, with the time at which
it was made; so the timeline begins with the plane, and not with the first visit. Afterwards the
informers tell what there is now: what they tell that is known already changes nothing, and what
they do not tell is gone.
"""

from __future__ import annotations

import asyncio
from itertools import accumulate
from typing import TYPE_CHECKING

from dryrack.client.timekeeping import micro_timestamp, seconds_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.client.endpoints import Endpoint
    from dryrack.cluster import Past
    from dryrack.dashboard.data.tracked import Tracked
    from dryrack.dashboard.history import History
    from dryrack.kinds.raw import Raw

# Others have their turns after so many objects, which take some milliseconds.
_OBJECTS_AT_ONCE = 50


class Known:
    """Objects that the page knows from the past, until an informer tells of them."""

    def __init__(self) -> None:
        self._objects: dict[tuple[Endpoint, str, str], Raw] = {}

    def put(self, kind: Endpoint, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            assert old is not None, "a write has an old or a new object"
            self._objects.pop(_key(kind, old), None)
        else:
            self._objects[_key(kind, new)] = new

    def take(self, kind: Endpoint, told: Raw) -> Raw | None:
        """What was known of an object that is told of for the first time."""
        return self._objects.pop(_key(kind, told), None)

    def rest(self) -> list[tuple[Endpoint, Raw]]:
        """What nobody told of; to be asked once."""
        found = [(key[0], raw) for key, raw in self._objects.items()]
        self._objects.clear()
        return found


async def replay(
    past: Past,
    kinds: Mapping[str, Endpoint],
    tracked: Tracked,
    history: History,
    *,
    revision: int,
    now: float,
) -> Known:
    """Makes the past again; its moments have the revisions before this one."""
    known = Known()
    for number, stored in enumerate(past.objects):
        kind = kinds[stored.key.resource]
        raw = stored.object
        known.put(kind, None, raw)
        tracked.change(kind, None, raw)
        if number % _OBJECTS_AT_ONCE == 0:
            await asyncio.sleep(0)
    await _settled(tracked)
    revision -= len(past.writes) + 1
    times = [micro_timestamp(seconds_of(e.time) if e.time else now) for e in past.writes]
    if times:
        history.begin(revision, times[0], tracked.fleet.summaries.states())
    for number, (write, time) in enumerate(zip(past.writes, accumulate(times, max), strict=True)):
        kind = kinds[write.resource]
        known.put(kind, write.old, write.new)
        tracked.change(kind, write.old, write.new)
        while tracked.is_marked:
            changes = tracked.take()
            history.add(revision + number + 1, time, changes, tracked.fleet.summaries.states())
        if number % _OBJECTS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return known


async def _settled(tracked: Tracked) -> None:
    while tracked.is_marked:
        tracked.take()
        await asyncio.sleep(0)


def _key(kind: Endpoint, raw: Raw) -> tuple[Endpoint, str, str]:
    metadata = raw["metadata"]
    return kind, metadata.get("namespace", ""), metadata["name"]
