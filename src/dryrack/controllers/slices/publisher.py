"""
The publisher: the engine that reads sources, the one that writes slices, and their metrics.

Metrics are read from the engines when they are scraped. Labels are the kinds of sources, of which
there are three; never the name of an object.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from dryrack.controllers.slices.current_inventory import CurrentInventory
from dryrack.controllers.slices.events import mismatches
from dryrack.controllers.slices.published_counts import PublishedCounts
from dryrack.controllers.slices.publishing import Publishing
from dryrack.controllers.slices.sources import Sources
from dryrack.hardware import SourceKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dryrack.base.metrics import Registry
    from dryrack.controllers.slices import PublisherSettings
    from dryrack.controllers.slices.current_inventory import Verdict
    from dryrack.controllers.writes import EngineContext
    from dryrack.hardware import Source


class Publisher:
    """An engine: `run` keeps it going."""

    def __init__(self, context: EngineContext, options: PublisherSettings) -> None:
        current = CurrentInventory()
        self.counts = PublishedCounts()
        self.sources = Sources(context, options, current=current, counts=self.counts)
        self.publishing = Publishing(
            context, options, current=current, counts=self.counts, asker=self.sources.asker
        )
        if context.metrics is not None:
            watch_sources(context.metrics, self.sources.verdicts)
            watch_counts(context.metrics, self.counts)
            watch_failures(context.metrics, self.publishing.failing)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.sources.run(), name="sources of devices")
            group.create_task(self.publishing.run(), name="slices of nodes")

    def lacking(self) -> tuple[str, ...]:
        """The kinds that have to be known before anything is published."""
        return self.sources.lacking()


KINDS = (SourceKind.CONFIG_MAP, SourceKind.CONFIG, SourceKind.OVERLAY)

_BY_KIND: tuple[tuple[str, str, Callable[[Iterable[Verdict]], float]], ...] = (
    (
        "dryrack_publish_config_objects",
        "Number of sources.",
        lambda found: sum(1 for _ in found),
    ),
    (
        "dryrack_publish_config_valid",
        "1 if all sources of a kind are valid or the kind has no sources, 0 otherwise.",
        lambda found: float(all(each.is_valid for each in found)),
    ),
    (
        "dryrack_publish_config_problems",
        "Problems in invalid sources.",
        lambda found: sum(len(each.problems) for each in found),
    ),
    (
        "dryrack_publish_config_warnings",
        "Fields in sources that the API does not accept as written.",
        lambda found: sum(len(each.warnings) for each in found),
    ),
    (
        "dryrack_publish_config_unknown",
        "Sources without a valid version since the start.",
        lambda found: sum(each.in_force is None for each in found),
    ),
    (
        "dryrack_publish_config_last_valid_timestamp_seconds",
        "Time at which the newest valid version was read, 0 without a valid version.",
        lambda found: max((each.valid_at for each in found), default=0.0),
    ),
)


def watch_sources(registry: Registry, verdicts: Mapping[Source, Verdict]) -> None:
    """Tells of the configuration, by the kind of source; the verdicts go on changing."""
    for name, text, number in _BY_KIND:
        reading = registry.reading(name, text, ("source",))
        reading.read_from(partial(_by_kind, verdicts, number))
    registry.reading(
        "dryrack_publish_capacity_mismatches",
        "Extended resources of NodeOverlays whose capacity differs from the number of devices.",
    ).read_from(lambda: {(): _mismatches(verdicts)})


def _by_kind(
    verdicts: Mapping[Source, Verdict], number: Callable[[Iterable[Verdict]], float]
) -> Mapping[tuple[str, ...], float]:
    return {
        (kind,): number([each for source, each in verdicts.items() if source.kind is kind])
        for kind in KINDS
    }


def _mismatches(verdicts: Mapping[Source, Verdict]) -> int:
    readings = (each.in_force for each in verdicts.values())
    return sum(len(mismatches(each)) for each in readings if each is not None)


def watch_counts(registry: Registry, counts: PublishedCounts) -> None:
    """Tells how much is published."""
    registry.reading(
        "dryrack_publish_slices",
        "ResourceSlices that are published, by the kind of source.",
        ("source",),
    ).read_from(lambda: {(kind,): counts.slices_of(kind) for kind in SourceKind})
    registry.reading(
        "dryrack_publish_nodes", "Nodes that have devices published for them."
    ).read_from(lambda: {(): counts.nodes})


def watch_failures(registry: Registry, failing: Mapping[str, str]) -> None:
    """Tells of nodes that are not as they should be; the mapping goes on changing."""
    registry.reading(
        "dryrack_publish_failing_nodes", "Nodes whose slices could not be written."
    ).read_from(lambda: {(): sum(1 for name in failing if name)})
    registry.reading(
        "dryrack_publish_failing_shared", "Whether pools of the whole cluster could not be written."
    ).read_from(lambda: {(): float("" in failing)})
