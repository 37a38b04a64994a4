"""
Pool templates: the devices that several origins put into one pool, merged.

A `PoolTemplate` is a pool without the name of the node: it is the same for all nodes that match the
same assignments. No scheduler allocates from a pool in which two devices or counter sets have one
name, or a device draws on counters that do not exist; merging removes such devices.
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
    """A message for the owner of an origin."""

    origin: Origin
    message: str


class PoolKey(NamedTuple):
    """The identity of a pool, without the node."""

    driver: str
    pool: str
    by_driver: bool
    """Whether the name of the pool is driver and node, as for a DRAConfig."""


@dataclass(frozen=True, slots=True)
class PoolTemplate:
    """A pool without the name of its node."""

    key: PoolKey
    reach: Reach
    parts: tuple[tuple[Origin, tuple[Batch, ...]], ...]
    sections: tuple[Section, ...] | None
    """The devices of every node; None if devices differ from node to node."""

    @property
    def driver(self) -> str:
        return self.key.driver

    def name_on(self, node: str) -> str:
        """Return the name of the pool; a pool of the whole cluster has no node."""
        parts = (self.key.driver, node) if self.key.by_driver else (node, self.key.pool)
        return limit_length("/".join(part for part in parts if part))

    def pool_on(self, node: str) -> Pool:
        sections = self.sections if self.sections is not None else _sections(self.parts, node)
        return Pool(self.driver, self.name_on(node), node, self.reach, sections)


def _sections(parts: Sequence[tuple[Origin, tuple[Batch, ...]]], node: str) -> tuple[Section, ...]:
    return tuple(
        Section(
            origin,
            tuple(device for batch in batches for device in devices_on(batch, node)),
            tuple(each for batch in batches for each in batch.shared_counters),
        )
        for origin, batches in parts
    )


def limit_length(name: str) -> str:
    """Return the name of a pool, cut if it is too long; different names stay different."""
    if len(name) <= POOL_NAME_BYTES_MAX:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{name[: POOL_NAME_BYTES_MAX - _DIGEST_LENGTH - 1].rstrip('-./')}-{digest}"


class PoolTemplates(NamedTuple):
    """Pool templates, and notes about devices that were left out."""

    templates: tuple[PoolTemplate, ...]
    notes: tuple[Note, ...]


def make_templates(assignments: Sequence[Assignment], *, shared: bool) -> PoolTemplates:
    """Merge assignments into the pools of a node, or into those of the whole cluster."""
    pools: dict[PoolKey, list[tuple[Origin, Batch]]] = {}
    for assignment in assignments:
        for batch in assignment.batches:
            if isinstance(batch.reach, ThisNode) != shared:
                origin = assignment.origin
                if shared:
                    pool = batch.pool or names.label(origin.part)
                    key = PoolKey(batch.driver, pool, by_driver=False)
                elif origin.kind is SourceKind.CONFIG:
                    key = PoolKey(batch.driver, "", by_driver=True)
                else:
                    key = PoolKey(batch.driver, batch.pool, by_driver=False)
                pools.setdefault(key, []).append((origin, batch))
    merges = [_Merge(key, entries) for key, entries in pools.items()]
    templates = tuple(template for merge in merges if (template := merge.merge()).parts)
    return PoolTemplates(templates, tuple(note for merge in merges for note in merge.notes))


class _Merge:
    """One pool, merged from the batches of each origin; earlier origins win."""

    def __init__(self, key: PoolKey, entries: Sequence[tuple[Origin, Batch]]) -> None:
        self.notes: list[Note] = []
        self._key = key
        self._entries = entries

    def merge(self) -> PoolTemplate:
        first, batch_of_first = self._entries[0]
        reach = batch_of_first.reach
        devices: dict[str, Origin] = {}
        counters: dict[str, Origin] = {}
        distinct: list[tuple[Origin, Batch]] = []
        for origin, batch in self._entries:
            if batch.reach == reach:
                own_devices = self._drop_duplicates("device", batch.devices, devices, origin)
                own_sets = self._drop_duplicates(
                    "counter set", batch.shared_counters, counters, origin
                )
                merged = dataclasses.replace(batch, devices=own_devices, shared_counters=own_sets)
                distinct.append((origin, merged))
            else:
                what = "publishes the same pool for other nodes; dryrack keeps the first"
                self._note(origin, f"{_describe(first)} {what}")
        sets = {each.name: each for _, batch in distinct for each in batch.shared_counters}
        batches: dict[Origin, list[Batch]] = {}
        for origin, batch in distinct:
            published = []
            for device in batch.devices:
                missing = next(find_missing_counters(device, sets), None)
                if missing is None:
                    published.append(device)
                else:
                    self._note(origin, f"device {device.name} is not published: {missing}")
            if published or batch.shared_counters:
                merged = dataclasses.replace(batch, devices=tuple(published))
                batches.setdefault(origin, []).append(merged)
        parts = tuple((origin, tuple(each)) for origin, each in batches.items())
        differ = any(batch.marks for _, each in parts for batch in each)
        return PoolTemplate(self._key, reach, parts, None if differ else _sections(parts, ""))

    def _drop_duplicates(
        self, what: str, values: Sequence[Named], origins: dict[str, Origin], origin: Origin
    ) -> tuple[Named, ...]:
        distinct = []
        for each in values:
            if each.name in origins:
                first = _describe(origins[each.name])
                self._note(
                    origin, f"{first} already defines {what} {each.name}; dryrack keeps the first"
                )
            else:
                origins[each.name] = origin
                distinct.append(each)
        return tuple(distinct)

    def _note(self, origin: Origin, what: str) -> None:
        pool = self._key.pool or "of the node"
        self.notes.append(Note(origin, f"driver {self._key.driver}, pool {pool}: {what}"))


def find_missing_counters(device: Device, sets: Mapping[str, CounterSet]) -> Iterator[str]:
    """Yield the counters that a device draws on and its pool does not have."""
    for consumption in device.consumes_counters:
        counter_set = sets.get(consumption.counter_set)
        if counter_set is None:
            yield f"the pool has no counter set {consumption.counter_set!r}"
            continue
        for name in sorted(consumption.counters):
            if name not in counter_set.counters:
                yield f"counter set {counter_set.name!r} has no counter {name!r}"


def _describe(origin: Origin) -> str:
    part = f" ({origin.part})" if origin.part else ""
    return f"{origin.kind} {origin.name}{part}"
