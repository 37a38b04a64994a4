"""
What several origins put into one pool, as one value.

A `PoolTemplate` is a pool without the name of the node: the same for all nodes that match the same
things. A pool in which two devices or counter sets have one name, or a device draws on counters
that are not there, is one that no scheduler allocates from, so none of that leaves here.
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dryrack.hardware import names
from dryrack.hardware.catalogue.identity import devices_on
from dryrack.hardware.inventory import Pool, Section, SourceKind, ThisNode
from dryrack.kinds.resource import CounterSet, Device
from dryrack.kinds.validation.names import POOL_NAME_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.hardware.inventory import Assignment, Batch, Origin, Reach

Named = TypeVar("Named", Device, CounterSet)

_DIGEST_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Note:
    """Something that whoever asked for devices should know."""

    origin: Origin
    message: str


class PoolKey(NamedTuple):
    """Which pool of a node, or of the cluster, something is in."""

    driver: str
    pool: str
    by_driver: bool
    """Whether the node's name comes after the driver's, as it is for a DRAConfig."""


@dataclass(frozen=True, slots=True)
class PoolTemplate:
    """A pool, but for the name of the node."""

    key: PoolKey
    reach: Reach
    parts: tuple[tuple[Origin, tuple[Batch, ...]], ...]
    sections: tuple[Section, ...] | None
    """What all nodes share; None if devices differ from node to node."""

    @property
    def driver(self) -> str:
        return self.key.driver

    def name_on(self, node: str) -> str:
        """What the pool is called; a pool of the whole cluster has no node."""
        parts = (self.key.driver, node) if self.key.by_driver else (node, self.key.pool)
        return bounded("/".join(part for part in parts if part))

    def pool_on(self, node: str) -> Pool:
        sections = self.sections if self.sections is not None else _sections(self.parts, node)
        return Pool(self.driver, self.name_on(node), node, self.reach, sections)


def _sections(parts: Sequence[tuple[Origin, tuple[Batch, ...]]], node: str) -> tuple[Section, ...]:
    return tuple(_section(origin, batches, node) for origin, batches in parts)


def _section(origin: Origin, batches: tuple[Batch, ...], node: str) -> Section:
    return Section(
        origin,
        tuple(device for batch in batches for device in devices_on(batch, node)),
        tuple(each for batch in batches for each in batch.shared_counters),
    )


def bounded(name: str) -> str:
    """The name of a pool, cut if it is too long; different names stay different."""
    if len(name) <= POOL_NAME_BYTES_MAX:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{name[: POOL_NAME_BYTES_MAX - _DIGEST_LENGTH - 1].rstrip('-./')}-{digest}"


class PoolTemplates(NamedTuple):
    """Pools without their nodes, and what came up while they were put together."""

    moulds: tuple[PoolTemplate, ...]
    notes: tuple[Note, ...]


def moulds(assignments: Sequence[Assignment], *, shared: bool) -> PoolTemplates:
    """The pools that these make together: those of a node, or those of the whole cluster."""
    pools: dict[PoolKey, list[tuple[Origin, Batch]]] = {}
    for assignment in assignments:
        for batch in assignment.batches:
            if isinstance(batch.reach, ThisNode) != shared:
                key = _key(assignment.origin, batch)
                pools.setdefault(key, []).append((assignment.origin, batch))
    merges = [_Merge(key, entries) for key, entries in pools.items()]
    found = tuple(mould for merge in merges if (mould := merge.mould()).parts)
    return PoolTemplates(found, tuple(note for merge in merges for note in merge.notes))


def _key(origin: Origin, batch: Batch) -> PoolKey:
    if not isinstance(batch.reach, ThisNode):
        return PoolKey(batch.driver, batch.pool or names.label(origin.part), by_driver=False)
    if origin.kind is SourceKind.CONFIG:
        return PoolKey(batch.driver, "", by_driver=True)
    return PoolKey(batch.driver, batch.pool, by_driver=False)


class _Merge:
    """One pool, put together from what each origin gives, the first first."""

    def __init__(self, key: PoolKey, entries: Sequence[tuple[Origin, Batch]]) -> None:
        self.notes: list[Note] = []
        self._key = key
        self._entries = entries

    def mould(self) -> PoolTemplate:
        reach = self._entries[0][1].reach
        found: dict[Origin, list[Batch]] = {}
        for origin, batch in self._with_counters(self._distinct(self._within(reach))):
            if batch.devices or batch.shared_counters:
                found.setdefault(origin, []).append(batch)
        parts = tuple((origin, tuple(given)) for origin, given in found.items())
        differ = any(batch.marks for _, given in parts for batch in given)
        return PoolTemplate(self._key, reach, parts, None if differ else _sections(parts, ""))

    def _within(self, reach: Reach) -> Iterator[tuple[Origin, Batch]]:
        for origin, batch in self._entries:
            if batch.reach == reach:
                yield origin, batch
            else:
                first = _said(self._entries[0][0])
                self._note(
                    origin,
                    f"{first} publishes the same pool for other nodes; dryrack keeps the first",
                )

    def _distinct(self, entries: Iterator[tuple[Origin, Batch]]) -> Iterator[tuple[Origin, Batch]]:
        devices: dict[str, Origin] = {}
        counters: dict[str, Origin] = {}
        for origin, batch in entries:
            yield (
                origin,
                dataclasses.replace(
                    batch,
                    devices=tuple(self._new("device", batch.devices, devices, origin)),
                    shared_counters=tuple(
                        self._new("counter set", batch.shared_counters, counters, origin)
                    ),
                ),
            )

    def _new(
        self, what: str, given: Sequence[Named], seen: dict[str, Origin], origin: Origin
    ) -> Iterator[Named]:
        for each in given:
            if each.name in seen:
                first = _said(seen[each.name])
                self._note(
                    origin, f"{first} already defines {what} {each.name}; dryrack keeps the first"
                )
            else:
                seen[each.name] = origin
                yield each

    def _with_counters(
        self, entries: Iterator[tuple[Origin, Batch]]
    ) -> Iterator[tuple[Origin, Batch]]:
        distinct = list(entries)
        sets = {each.name: each for _, batch in distinct for each in batch.shared_counters}
        for origin, batch in distinct:
            kept = tuple(self._counted(origin, batch.devices, sets))
            yield origin, dataclasses.replace(batch, devices=kept)

    def _counted(
        self, origin: Origin, devices: Sequence[Device], sets: Mapping[str, CounterSet]
    ) -> Iterator[Device]:
        for device in devices:
            missing = next(missing_counters(device, sets), None)
            if missing is None:
                yield device
            else:
                self._note(origin, f"device {device.name} is not published: {missing}")

    def _note(self, origin: Origin, what: str) -> None:
        pool = self._key.pool or "of the node"
        self.notes.append(Note(origin, f"driver {self._key.driver}, pool {pool}: {what}"))


def missing_counters(device: Device, sets: Mapping[str, CounterSet]) -> Iterator[str]:
    """What the device draws on that its pool does not have."""
    for consumption in device.consumes_counters:
        known = sets.get(consumption.counter_set)
        if known is None:
            yield f"the pool has no counter set {consumption.counter_set!r}"
            continue
        for name in sorted(consumption.counters):
            if name not in known.counters:
                yield f"counter set {known.name!r} has no counter {name!r}"


def _said(origin: Origin) -> str:
    return (
        f"{origin.kind} {origin.name} ({origin.part})"
        if origin.part
        else (f"{origin.kind} {origin.name}")
    )
