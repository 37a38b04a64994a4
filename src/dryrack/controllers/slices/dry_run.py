"""
The dry run: what the publisher would write for given objects, computed at once.

It uses the same values as the engine, without its watches.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.client.informer import name_of
from dryrack.controllers.objects import annotations_of
from dryrack.controllers.slices.current_inventory import (
    assess_source,
    inventory_of,
    is_about_devices,
    reader_of,
    source_of,
)
from dryrack.controllers.slices.desired import (
    AS_IT_IS,
    GONE,
    NOTHING,
    SHARED,
    DesiredSlices,
    NodeFilter,
    is_ours,
    key_of,
)
from dryrack.controllers.writes import Create, Delete, Update
from dryrack.hardware import Source, SourceKind, faults_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.controllers.slices import PublisherSettings
    from dryrack.controllers.slices.desired import Desired
    from dryrack.controllers.slices.shard import Shard
    from dryrack.controllers.writes import Write
    from dryrack.hardware.config_formats import Reading
    from dryrack.kinds.documents import Problem
    from dryrack.kinds.raw import Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunInput:
    """The objects that publishing depends on."""

    nodes: Sequence[Raw]
    config_maps: Sequence[Raw] = ()
    overlays: Sequence[Raw] = ()
    configs: Sequence[Raw] = ()
    slices: Sequence[Raw] = ()
    readings: Mapping[Source, Reading] = field(default_factory=dict)
    """Sources that were read from files, where their lines are known."""


@dataclass(frozen=True, slots=True)
class SliceChanges:
    """The future slices of a node or of the whole cluster, and the writes that lead to them."""

    node: str
    """`SHARED` for pools of the whole cluster."""
    slices: tuple[Raw, ...]
    writes: tuple[Write, ...]


@dataclass(frozen=True, slots=True)
class DryRun:
    """All changes, those of the whole cluster first, and the problems of the sources."""

    changes: tuple[SliceChanges, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    notes: tuple[str, ...]


def compute_dry_run(objects: DryRunInput, settings: PublisherSettings, now: float = 0.0) -> DryRun:
    """Return what a publisher with these settings would write; `now` decides which faults last."""
    readings: list[Reading] = []
    statuses = {}
    for kind, sources in (
        (SourceKind.CONFIG_MAP, objects.config_maps),
        (SourceKind.OVERLAY, objects.overlays),
        (SourceKind.CONFIG, objects.configs),
    ):
        read = reader_of(kind, settings)
        for obj in sources:
            if is_about_devices(kind, obj):
                source = source_of(kind, obj)
                reading = objects.readings.get(source) or read(obj)
                readings.append(reading)
                statuses[source] = assess_source(None, reading, obj, kind=kind, now=0.0)
    desired_slices = DesiredSlices(inventory_of(statuses, settings.catalogue))
    node_filter = NodeFilter(settings)
    nodes = [node for node in objects.nodes if node_filter.matches(node)]
    matched = {each for node in nodes for each in desired_slices.matched_by(node)}
    desired = {SHARED: desired_slices.shared(matched)}
    for node in nodes:
        if not settings.shard.owns(node["metadata"]["name"]):
            continue
        faults = faults_of(annotations_of(node), now)
        is_gone = faults.is_driver_gone
        desired[node["metadata"]["name"]] = AS_IT_IS if is_gone else desired_slices.on(node, faults)
    notes = {
        f"{source.kind} {source.name}: {text}"
        for each in desired.values()
        for source, text in each.row.notes
    }
    return DryRun(
        tuple(_changes(desired_slices, desired, objects, settings.shard)),
        tuple(problem for reading in readings for problem in reading.problems),
        tuple(warning for reading in readings for warning in reading.warnings),
        tuple(sorted(notes)),
    )


def _changes(
    desired_slices: DesiredSlices,
    desired: Mapping[str, Desired],
    objects: DryRunInput,
    shard: Shard,
) -> Iterator[SliceChanges]:
    observed: dict[str, list[Raw]] = {}
    for each in filter(is_ours, objects.slices):
        observed.setdefault(key_of(each), []).append(each)
    nodes = {node["metadata"]["name"] for node in objects.nodes}
    for key in sorted(filter(shard.owns, {*desired, *observed})):
        existing = observed.get(key, [])
        wanted = desired.get(key, NOTHING if key in nodes else GONE)
        plans = desired_slices.plans(wanted, existing) if wanted is not AS_IT_IS else {}
        writes = tuple(write for plan in plans.values() for write in plan.writes)
        slices = {name_of(each): each for each in existing}
        for write in writes:
            match write:
                case Create(object=obj) | Update(object=obj):
                    slices[name_of(obj)] = obj
                case Delete(name=name):
                    slices.pop(name, None)
                case _:
                    raise AssertionError(f"no write of slices: {write}")
        yield SliceChanges(key, tuple(slices[name] for name in sorted(slices)), writes)
