"""
The publisher: the engine that reads sources, the one that writes slices, and their metrics.

Metrics are read from the engines when they are scraped. Labels are the kinds of sources, of which
there are three; never the name of an object.
"""

from __future__ import annotations

import asyncio
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
    from dryrack.controllers.slices.current_inventory import SourceStatus
    from dryrack.controllers.writes import EngineContext
    from dryrack.hardware import Source


class Publisher:
    """Publishes the devices of all sources; `run` runs until it is cancelled."""

    def __init__(self, context: EngineContext, settings: PublisherSettings) -> None:
        current = CurrentInventory()
        self.counts = PublishedCounts()
        self.sources = Sources(context, settings, current=current, counts=self.counts)
        self.publishing = Publishing(
            context,
            settings,
            current=current,
            counts=self.counts,
            source_object=self.sources.object_with_label,
        )
        if context.metrics is not None:
            watch_sources(context.metrics, self.sources.statuses)
            watch_counts(context.metrics, self.counts)
            watch_failures(context.metrics, self.publishing.failing)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.sources.run(), name="sources of devices")
            group.create_task(self.publishing.run(), name="slices of nodes")

    def lacking(self) -> tuple[str, ...]:
        """Return the resources that have to be listed before anything is published."""
        return self.sources.lacking()


KINDS = (SourceKind.CONFIG_MAP, SourceKind.CONFIG, SourceKind.OVERLAY)

_BY_KIND: tuple[tuple[str, str, Callable[[Iterable[SourceStatus]], float]], ...] = (
    (
        "dryrack_publish_config_objects",
        "Number of sources.",
        lambda statuses: sum(1 for _ in statuses),
    ),
    (
        "dryrack_publish_config_valid",
        "1 if all sources of a kind are valid or the kind has no sources, 0 otherwise.",
        lambda statuses: float(all(each.is_valid for each in statuses)),
    ),
    (
        "dryrack_publish_config_problems",
        "Problems in invalid sources.",
        lambda statuses: sum(len(each.problems) for each in statuses),
    ),
    (
        "dryrack_publish_config_warnings",
        "Fields in sources that the API does not accept as written.",
        lambda statuses: sum(len(each.warnings) for each in statuses),
    ),
    (
        "dryrack_publish_config_unknown",
        "Sources without a valid version since the start.",
        lambda statuses: sum(each.in_force is None for each in statuses),
    ),
    (
        "dryrack_publish_config_last_valid_timestamp_seconds",
        "Time at which the newest valid version was read, 0 without a valid version.",
        lambda statuses: max((each.valid_at for each in statuses), default=0.0),
    ),
)


def watch_sources(registry: Registry, statuses: Mapping[Source, SourceStatus]) -> None:
    """Register metrics of the sources by their kind; the mapping goes on changing."""

    def by_kind(
        number: Callable[[Iterable[SourceStatus]], float],
    ) -> Callable[[], Mapping[tuple[str, ...], float]]:
        return lambda: {
            (kind,): number([each for source, each in statuses.items() if source.kind is kind])
            for kind in KINDS
        }

    for name, text, number in _BY_KIND:
        registry.reading(name, text, ("source",)).read_from(by_kind(number))
    registry.reading(
        "dryrack_publish_capacity_mismatches",
        "Extended resources of NodeOverlays whose capacity differs from the number of devices.",
    ).read_from(
        lambda: {
            (): sum(len(mismatches(each.in_force)) for each in statuses.values() if each.in_force)
        }
    )


def watch_counts(registry: Registry, counts: PublishedCounts) -> None:
    """Register metrics of what is published."""
    registry.reading(
        "dryrack_publish_slices",
        "ResourceSlices that are published, by the kind of source.",
        ("source",),
    ).read_from(lambda: {(kind,): counts.slices_of(kind) for kind in SourceKind})
    registry.reading(
        "dryrack_publish_nodes", "Nodes that have devices published for them."
    ).read_from(lambda: {(): counts.nodes})


def watch_failures(registry: Registry, failing: Mapping[str, str]) -> None:
    """Register metrics of keys whose slices could not be written; the mapping goes on changing."""
    registry.reading(
        "dryrack_publish_failing_nodes", "Nodes whose slices could not be written."
    ).read_from(lambda: {(): sum(1 for name in failing if name)})
    registry.reading(
        "dryrack_publish_failing_shared", "Whether pools of the whole cluster could not be written."
    ).read_from(lambda: {(): float("" in failing)})
