"""
Rebuild the history from before the first visit, from the log of the control plane.

The oldest known objects are put on the page, and every later write is repeated with its time. So
the timeline begins with the control plane, not with the first visit. Afterwards the informers list
the present objects: equal objects change nothing, and objects that are not in the list are gone.
"""

from __future__ import annotations

import asyncio
from itertools import accumulate
from typing import TYPE_CHECKING

from dryrack.client.timekeeping import micro_timestamp, seconds_of
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.client.endpoints import Endpoint
    from dryrack.cluster import Past
    from dryrack.dashboard.data.tracked import Tracked
    from dryrack.dashboard.history import History
    from dryrack.kinds.raw import Raw

# Other tasks run after this number of objects, which take some milliseconds.
_OBJECTS_AT_ONCE = 50
_SLICES = "resourceslices.resource.k8s.io"
# Each write computes a pool again. Pools with hundreds of partitions would stop the control plane
# for a minute: then fewer writes are repeated, as if each had this number of devices.
DEVICES_PER_WRITE_MAX = 20.0


class Known:
    """Objects from the past, until an informer lists them."""

    def __init__(self) -> None:
        self._objects: dict[tuple[Endpoint, str, str], Raw] = {}

    def put(self, kind: Endpoint, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            assert old is not None, "a write has an old or a new object"
            self._objects.pop(_key(kind, old), None)
        else:
            self._objects[_key(kind, new)] = new

    def take(self, kind: Endpoint, listed: Raw) -> Raw | None:
        """Remove and return the past version of an object that an informer lists first."""
        return self._objects.pop(_key(kind, listed), None)

    def rest(self) -> list[tuple[Endpoint, Raw]]:
        """Remove and return the objects that no informer listed."""
        objects = [(key[0], raw) for key, raw in self._objects.items()]
        self._objects.clear()
        return objects


async def replay(
    past: Past,
    kinds: Mapping[str, Endpoint],
    tracked: Tracked,
    history: History,
    *,
    revision: int,
    now: float,
    writes_max: int,
) -> Known:
    """Repeat the last writes of the past; its moments have the revisions before `revision`."""
    known = Known()
    for number, stored in enumerate(past.objects):
        kind = kinds[stored.key.resource]
        raw = stored.object
        known.put(kind, None, raw)
        tracked.change(kind, None, raw)
        if number % _OBJECTS_AT_ONCE == 0:
            await asyncio.sleep(0)
    await _take_all(tracked)
    skipped = max(0, len(past.writes) - _count_affordable(past, writes_max))
    for write in past.writes[:skipped]:
        kind = kinds[write.resource]
        known.put(kind, write.old, write.new)
        tracked.change(kind, write.old, write.new)
    await _take_all(tracked)
    writes = past.writes[skipped:]
    revision -= len(writes) + 1
    times = [micro_timestamp(seconds_of(e.time) if e.time else now) for e in writes]
    if times:
        history.begin(revision, times[0], tracked.fleet.summaries.states())
    for number, (write, time) in enumerate(zip(writes, accumulate(times, max), strict=True)):
        kind = kinds[write.resource]
        known.put(kind, write.old, write.new)
        tracked.change(kind, write.old, write.new)
        while tracked.is_marked:
            changes = tracked.take()
            history.add(revision + number + 1, time, changes, tracked.fleet.summaries.states())
        await asyncio.sleep(0)
    return known


def _count_affordable(past: Past, writes_max: int) -> int:
    """Return the number of writes to repeat, which is lower if pools have many devices."""
    sizes: dict[str, int] = {}
    slices = [each.object for each in past.objects if each.key.resource == _SLICES]
    slices += [each.new for each in past.writes if each.resource == _SLICES and each.new]
    for each in slices:
        sizes[each["metadata"]["name"]] = len(get(each, "spec.devices", ()))
    devices = sum(sizes.values())
    if not devices:
        return writes_max
    # The mean over devices, not over slices: most claims are for devices of large slices.
    mean = sum(size * size for size in sizes.values()) / devices
    return min(writes_max, int(writes_max * DEVICES_PER_WRITE_MAX / mean))


async def _take_all(tracked: Tracked) -> None:
    while tracked.is_marked:
        tracked.take()
        await asyncio.sleep(0)


def _key(kind: Endpoint, raw: Raw) -> tuple[Endpoint, str, str]:
    metadata = raw["metadata"]
    return kind, metadata.get("namespace", ""), metadata["name"]
