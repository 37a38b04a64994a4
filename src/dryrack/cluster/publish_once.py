"""
Publish slices once, for scripts: bring every pool to its desired state, then return.

The engine is the usual publisher without a lease. Its writes name the revisions that they were
planned from, so a publisher that runs at the same time does no harm. It ends when everything is
published, or when the rest has failed for so long that waiting does not help.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.client.client import Selection
from dryrack.client.endpoints import SLICES
from dryrack.client.errors import NotFoundError
from dryrack.client.informer import Informers
from dryrack.client.timekeeping import sleep
from dryrack.controllers import EngineContext, slices
from dryrack.hardware import MANAGED_BY, MANAGER, SourceKind
from dryrack.kinds.paths import spec_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.controllers.slices import Publisher, PublisherSettings

# A node comes to rest in milliseconds; looking more often than this would only cost.
_LOOK_SECONDS = 0.02
# Going through all nodes takes longer than a look.
_WEIGH_SECONDS = 0.5
# A conflict is over with the next attempt, and there are a dozen attempts in this time.
PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The published pools, and the pools that are not as desired."""

    nodes: int
    slices: int
    failing: Mapping[str, str]
    """The reasons, by node; "" for pools of the whole cluster."""
    unread: tuple[str, ...]
    """Documents that cannot be read, and have no effect."""
    sources: int
    """The documents that assign devices to nodes, without the catalog."""

    @property
    def is_as_desired(self) -> bool:
        return not self.failing and not self.unread


async def publish_once(
    client: Client, options: PublisherSettings, *, clock: Timekeeper, chance: Chance
) -> Outcome:
    """Publish until everything is as desired, or cannot be."""
    informers = Informers(client, clock=clock, chance=chance)
    publisher = slices.engine(EngineContext(client, informers, clock, chance), options)
    async with asyncio.TaskGroup() as group:
        tasks = (
            group.create_task(informers.run(), name="informers"),
            group.create_task(publisher.run(), name="publisher"),
        )
        failing = await _wait_until_settled(publisher, clock)
        for task in tasks:
            task.cancel()
    count = sum(publisher.counts.slices_of(kind) for kind in SourceKind)
    sources = len(publisher.sources.statuses)
    return Outcome(publisher.counts.nodes, count, failing, _unread(publisher), sources)


async def remove_slices(client: Client, driver: str = "") -> int:
    """Delete the slices that a publisher wrote, of one driver or of all; return their number."""
    listing = await client.list(SLICES, Selection(labels=f"{MANAGED_BY}={MANAGER}"))
    count = 0
    for each in listing.items:
        if driver and spec_of(each)["driver"] != driver:
            continue
        with suppress(NotFoundError):
            await client.delete(SLICES, each["metadata"]["name"])
            count += 1
    return count


async def _wait_until_settled(publisher: Publisher, clock: Timekeeper) -> dict[str, str]:
    """Wait until nothing changes any more; return what is not as desired, and why."""
    failing: dict[str, str] | None = None
    since = looked = clock.now()
    while clock.now() - since < PATIENCE_SECONDS:
        await sleep(clock, _LOOK_SECONDS)
        if publisher.publishing.is_idle and not publisher.publishing.unsettled():
            return {}
        if clock.now() - looked >= _WEIGH_SECONDS:
            looked = clock.now()
            found = _find_failures(publisher)
            # Every change is progress, however slow.
            failing, since = found, since if found == failing else looked
    return failing or {"": "the sources are not read yet"}


def _find_failures(publisher: Publisher) -> dict[str, str]:
    lacking = publisher.sources.lacking()
    if lacking:
        return {"": f"not read yet: {', '.join(lacking)}"}
    failing = publisher.publishing.failing
    return {key: failing.get(key, "not finished") for key in publisher.publishing.unsettled()}


def _unread(publisher: Publisher) -> tuple[str, ...]:
    return tuple(
        f"{source.kind} {source.name}: {problem}"
        for source, verdict in sorted(publisher.sources.statuses.items())
        for problem in verdict.problems
    )
