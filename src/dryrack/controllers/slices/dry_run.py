"""
The dry run: what there should be, reckoned at once from all that there is.

The same values as the engine's, without its watches: what is read, what that wants on every node,
and what would have to be written for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.client.informer import name_of
from dryrack.controllers.objects import annotations_of
from dryrack.controllers.slices.current_inventory import (
    inventory_of,
    is_about_devices,
    judged,
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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dryrack.controllers.slices import PublisherSettings
    from dryrack.controllers.slices.desired import Desired
    from dryrack.controllers.writes import Write
    from dryrack.hardware.config_formats import Reading
    from dryrack.kinds.documents import Problem
    from dryrack.kinds.raw import Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunInput:
    """All that publishing depends on."""

    nodes: Sequence[Raw]
    config_maps: Sequence[Raw] = ()
    overlays: Sequence[Raw] = ()
    configs: Sequence[Raw] = ()
    slices: Sequence[Raw] = ()
    readings: Mapping[Source, Reading] = field(default_factory=dict)
    """Sources that were read where their lines are known."""


@dataclass(frozen=True, slots=True)
class SliceChanges:
    """The slices of a node, or of the whole cluster: as they will be, and what that takes."""

    node: str
    """`SHARED` for pools of the whole cluster."""
    slices: tuple[Raw, ...]
    writes: tuple[Write, ...]


@dataclass(frozen=True, slots=True)
class DryRun:
    """All changes, those of the whole cluster first, and what people should know."""

    changes: tuple[SliceChanges, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    notes: tuple[str, ...]


def compute_dry_run(world: DryRunInput, options: PublisherSettings, now: float = 0.0) -> DryRun:
    """What a publisher with these options would make of that world; now, faults may be over."""
    readings = dict(_readings(world, options))
    verdicts = {
        source: judged(None, reading, obj, kind=source.kind, now=0.0)
        for source, (reading, obj) in readings.items()
    }
    desired_slices = DesiredSlices(inventory_of(verdicts, options.catalogue))
    node_filter = NodeFilter(options)
    nodes = [node for node in world.nodes if node_filter.matches(node)]
    desired = dict(_desired(desired_slices, nodes, now))
    found = [reading for reading, _ in readings.values()]
    return DryRun(
        tuple(_changes(desired_slices, desired, world)),
        tuple(problem for reading in found for problem in reading.problems),
        tuple(warning for reading in found for warning in reading.warnings),
        tuple(sorted({note for each in desired.values() for note in _notes(each)})),
    )


def _readings(
    world: DryRunInput, options: PublisherSettings
) -> Iterator[tuple[Source, tuple[Reading, Raw]]]:
    found = (
        (SourceKind.CONFIG_MAP, world.config_maps),
        (SourceKind.OVERLAY, world.overlays),
        (SourceKind.CONFIG, world.configs),
    )
    for kind, objects in found:
        read = reader_of(kind, options)
        for obj in objects:
            if is_about_devices(kind, obj):
                source = source_of(kind, obj)
                yield source, (world.readings.get(source) or read(obj), obj)


def _desired(
    desired_slices: DesiredSlices, nodes: Sequence[Raw], now: float
) -> Iterator[tuple[str, Desired]]:
    yield (
        SHARED,
        desired_slices.shared({each for node in nodes for each in desired_slices.matched_by(node)}),
    )
    for node in nodes:
        faults = faults_of(annotations_of(node), now)
        found = AS_IT_IS if faults.is_driver_gone else desired_slices.on(node, faults)
        yield node["metadata"]["name"], found


def _changes(
    desired_slices: DesiredSlices, desired: Mapping[str, Desired], world: DryRunInput
) -> Iterator[SliceChanges]:
    observed: dict[str, list[Raw]] = {}
    for each in filter(is_ours, world.slices):
        observed.setdefault(key_of(each), []).append(each)
    nodes = {node["metadata"]["name"] for node in world.nodes}
    for place in sorted({*desired, *observed}):
        there = observed.get(place, [])
        nothing = NOTHING if place in nodes else GONE
        wanted = desired.get(place, nothing)
        plans = desired_slices.plans(wanted, there) if wanted is not AS_IT_IS else {}
        writes = tuple(write for plan in plans.values() for write in plan.writes)
        yield SliceChanges(place, tuple(_written(there, writes)), writes)


def _written(there: Iterable[Raw], writes: Iterable[Write]) -> Iterator[Raw]:
    """What will be there when all is written."""
    slices = {name_of(each): each for each in there}
    for write in writes:
        match write:
            case Create(object=obj) | Update(object=obj):
                slices[name_of(obj)] = obj
            case Delete(name=name):
                slices.pop(name, None)
            case _:
                raise AssertionError(f"no write of slices: {write}")
    return (slices[name] for name in sorted(slices))


def _notes(desired: Desired) -> Iterator[str]:
    return (f"{source.kind} {source.name}: {text}" for source, text in desired.row.notes)
