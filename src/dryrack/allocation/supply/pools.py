"""
Pools as one node sees them: newest generation, complete or not, valid or not, in order.

A pool belongs to a driver and spans slices, some of which may be for other nodes. Devices of
a pool are offered to a node only when every slice of the newest generation exists and the pool
is valid; a slice for another node still counts towards completeness, and its
allocated devices still draw on the pool's counters. Pools come by driver and name, those with
binding conditions last; slices by name; devices as listed. Order is priority: the search
takes the first device that fits.

The view of a node reads its own slices and those that name no node, once until one of its pools
changes; a pool is assembled once for each distinct set of slices that nodes see of it. Under 1.36
every node sees every slice with counters. A pool of which it sees nothing else matters only if it
is invalid or incomplete, which is computed once for all nodes.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, count
from operator import attrgetter
from typing import TypeAlias, TypeVar

import msgspec

from dryrack import cel
from dryrack.allocation.model.errors import AllocationError, print_selector
from dryrack.allocation.model.features import Features
from dryrack.allocation.model.identity import DeviceId, PoolId
from dryrack.kinds.core import Node, NodeSelector
from dryrack.kinds.pool_generation import Generation, newest_generation
from dryrack.kinds.releases import ALLOCATION, Release
from dryrack.kinds.resource import (
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    ResourceSlice,
    ResourceSliceSpec,
)
from dryrack.kinds.selectors import NodeMatcher, SelectorError, strict_node_selector

_K = TypeVar("_K")
# The name and the form of a capacity, and the capacity.
_Amount: TypeAlias = tuple[str, int, int, bool, DeviceCapacity]
# The rank of a slice among others, and its unique number.
Entry = tuple[str, int]


class PooledDevice(msgspec.Struct, eq=False, gc=False):
    """
    A device in its slice. It is made once per slice, and keeps derived facts.

    A fleet has many, and none is part of a cycle: the collector need not go through them.
    """

    slice: ResourceSlice
    device: Device
    _shape: cel.Device | None = None
    _id: DeviceId | None = None

    @property
    def shape(self) -> cel.Device:
        """The device as selectors see it: the same object for devices that look the same."""
        if self._shape is None:
            device = self.device
            capacity: tuple[_Amount, ...] = ()
            if device.capacity:
                # Two quantities of one value can be held in different forms, and CEL shows which.
                amounts = device.capacity.items()
                capacity = tuple(
                    [(n, c.value.unscaled, c.value.scale, c.value.big, c) for n, c in amounts]
                )
            self._shape = _new_shape(
                self.slice.spec.driver,
                tuple(device.attributes.items()),
                capacity,
                device.allow_multiple_allocations,
            )
        return self._shape

    @property
    def id(self) -> DeviceId:
        if self._id is None:
            spec = self.slice.spec
            self._id = DeviceId(spec.driver, spec.pool.name, self.device.name)
        return self._id

    @property
    def where(self) -> Device | ResourceSliceSpec:
        """The device or its slice, depending on which of them names the nodes."""
        spec = self.slice.spec
        return self.device if spec.per_device_node_selection else spec

    @property
    def is_tied(self) -> bool:
        """Return whether an allocation of it can be used on one node only."""
        return self.where.node_name is not None or bool(self.device.binds_to_node)

    def is_for(self, node: Node) -> bool:
        """Return whether it is offered to the node."""
        where = self.where
        return node_matches(
            node,
            node_name=where.node_name,
            all_nodes=where.all_nodes,
            selector=where.node_selector,
        )


# Schedulers are made for each question, and see the same devices every time.
@lru_cache(maxsize=65536)
def _new_shape(
    driver: str,
    attributes: tuple[tuple[str, DeviceAttribute], ...],
    capacity: tuple[_Amount, ...],
    multiple: bool | None,
) -> cel.Device:
    return cel.Device(driver, dict(attributes), {each[0]: each[4] for each in capacity}, multiple)


class Pool(msgspec.Struct, frozen=True, gc=False):
    """A pool as a node sees it; it has no devices unless it is complete and valid."""

    id: PoolId
    devices: tuple[PooledDevice, ...] = ()
    # Slices of the pool that offer this node nothing, for the counters their devices hold.
    elsewhere: tuple[ResourceSlice, ...] = ()
    counter_sets: Mapping[str, CounterSet] | None = None
    # The counters of these by set and name, and what there is of each, in billionths.
    counters: Mapping[tuple[str, str], int] = msgspec.field(default_factory=dict)
    # How many slices there are and how many there should be, if that differs.
    incomplete: tuple[int, int] | None = None
    invalid: str = ""
    # Whether some device has binding conditions.
    binding: bool = False


class _View(msgspec.Struct, frozen=True, gc=False):
    """The pools that a node with these labels sees."""

    labels: Mapping[str, str]
    pools: tuple[Pool, ...]
    # Pools of which it sees more than counters, and of which a newer generation is on its way.
    outdated: frozenset[PoolId]


def node_matches(
    node: Node, *, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None
) -> bool:
    """Return whether a slice or device with these fields is for the node."""
    if node_name:
        return node.metadata.name == node_name
    if all_nodes:
        return True
    if selector is None:
        return False
    return _matcher(selector).matches(node)


# Slices of one driver mostly say the same; a fleet has few distinct selectors.
@lru_cache(maxsize=4096)
def _matcher(selector: NodeSelector) -> NodeMatcher:
    try:
        return strict_node_selector(selector)
    except SelectorError as error:
        text = f"failed to parse node selector {print_selector(selector)}: {error}"
        raise AllocationError(text) from error


class Inventory:
    """
    All slices, indexed so that a node's pools are found without looking at every slice.

    Slices come and go by the entry that `add` gives; what was worked out about others stays.
    Where slices contradict each other the first decides: by rank, then by when it came.
    """

    def __init__(
        self, slices: Iterable[ResourceSlice], features: Features, release: Release
    ) -> None:
        self._features = features
        self._behaviour = ALLOCATION[release]
        self._ignores_groups = (
            self._behaviour.has_alpha_fields_of_1_37 and not features.compatibility_groups
        )
        self._numbers = count()
        # Changes with each slice that comes or goes.
        self.version = 0
        self._slices: dict[int, ResourceSlice] = {}
        # By the node that they are for, None if that is for others to say, or the pool if they are
        # counters that every node sees.
        self._where: dict[str | PoolId | None, list[Entry]] = {}
        self._of_pool: dict[PoolId, list[Entry]] = {}
        # The number of slices of a pool with devices that draw counters.
        self._drawing: Counter[PoolId] = Counter()
        self._seen: dict[PoolId, dict[tuple[int, ...], Pool | None]] = {}
        self._devices: dict[int, tuple[PooledDevice, ...]] = {}
        # What a node saw the last time, for the labels that it had then.
        self._views: dict[str, _View] = {}
        # Pools that make no sense to nodes that see no more of them than counters, and those of
        # which that has to be found out.
        self._unusable: dict[PoolId, Pool] = {}
        self._changed: set[PoolId] = set()
        for each in slices:
            self.add(each)

    def add(self, each: ResourceSlice, rank: str = "") -> Entry:
        """Add a slice, and return its entry."""
        self.version += 1
        entry = (rank, next(self._numbers))
        self._slices[entry[1]] = each
        if self._is_ignored(each.spec):
            return entry
        insort(self._of_pool.setdefault(_pool_id(each), []), entry)
        self._drawing[_pool_id(each)] += any(map(_CONSUMES_COUNTERS, each.spec.devices))
        if self._is_seen(each.spec):
            insort(self._where.setdefault(self._place(each), []), entry)
        self._invalidate(each)
        return entry

    def remove(self, entry: Entry) -> None:
        """Remove a slice."""
        self.version += 1
        each = self._slices[entry[1]]
        if self._is_ignored(each.spec):
            del self._slices[entry[1]]
            return
        self._invalidate(each)
        del self._slices[entry[1]]
        self._devices.pop(entry[1], None)
        _delete(self._of_pool, _pool_id(each), entry)
        self._drawing[_pool_id(each)] -= any(map(_CONSUMES_COUNTERS, each.spec.devices))
        if _pool_id(each) not in self._of_pool:
            del self._drawing[_pool_id(each)]
        if self._is_seen(each.spec):
            _delete(self._where, self._place(each), entry)

    def _is_ignored(self, spec: ResourceSliceSpec) -> bool:
        """
        Return whether the slice does not exist for this allocator.

        An allocator that knows no compatibility groups cannot tell which devices of such a slice
        go together. Its pool is incomplete then, so nothing of it is allocated.
        """
        return self._ignores_groups and has_groups(spec.devices)

    def _is_seen(self, spec: ResourceSliceSpec) -> bool:
        return self._features.partitionable_devices or not (
            spec.per_device_node_selection is not None or spec.shared_counters
        )

    def _place(self, each: ResourceSlice) -> str | PoolId | None:
        """Return the key under which nodes find the slice."""
        return _pool_id(each) if self._is_everywhere(each.spec) else each.spec.node_name or None

    def _is_everywhere(self, spec: ResourceSliceSpec) -> bool:
        return self._behaviour.counters_are_everywhere and bool(spec.shared_counters)

    def _invalidate(self, each: ResourceSlice) -> None:
        """Drop the views of the slice's pool; a pool can span nodes."""
        pool = _pool_id(each)
        self._seen.pop(pool, None)
        self._changed.add(pool)
        if not self._views:
            return
        specs = self._specs_of((pool,))
        nodes = _node_names(spec for spec in specs if not self._is_everywhere(spec))
        if nodes is None:
            self._views.clear()
            return
        for node in nodes:
            self._views.pop(node, None)

    def nodes_of(self, pools: Iterable[PoolId]) -> tuple[str, ...] | None:
        """Return the nodes that can see something of these pools; None if any node can."""
        specs = list(self._specs_of(pools))
        return None if any(map(self._is_everywhere, specs)) else _node_names(specs)

    def nodes_offered(self, pools: Iterable[PoolId]) -> tuple[str, ...] | None:
        """Return the nodes that may have devices of these pools; None if any node may."""
        return _node_names(spec for spec in self._specs_of(pools) if not spec.shared_counters)

    def draws_counters(self, pool: PoolId) -> bool:
        """Return whether devices of the pool draw counters."""
        return self._drawing[pool] > 0

    def _specs_of(self, pools: Iterable[PoolId]) -> Iterator[ResourceSliceSpec]:
        for pool in pools:
            for _, number in self._of_pool.get(pool, ()):
                yield self._slices[number].spec

    def forget(self, node: str) -> None:
        """Drop the view of a deleted node."""
        self._views.pop(node, None)

    def pools(self, node: Node) -> tuple[Pool, ...]:
        """Return the pools that matter to the node, in the order of the search."""
        name = node.metadata.name
        labels = node.metadata.labels
        known = self._views.get(name)
        if known is None or known.labels != labels:
            of_pool = self._slices_by_pool((node,))
            views = [self._view(pool, numbers) for pool, numbers in of_pool.items()]
            pools = _in_order([pool for pool in views if pool is not None])
            outdated = [pool for pool, view in zip(of_pool, views, strict=True) if view is None]
            known = self._views[name] = _View(labels, pools, frozenset(outdated))
        if self._changed:
            self._find_unusable()
        if not self._unusable:
            return known.pools
        seen = known.outdated.union(pool.id for pool in known.pools)
        others = [pool for pool in self._unusable.values() if pool.id not in seen]
        return _in_order([*known.pools, *others]) if others else known.pools

    def pools_of(self, nodes: Sequence[Node]) -> tuple[Pool, ...]:
        """Return the pools that matter to any of the nodes, with all devices for these nodes."""
        offered = self._slices_by_pool(nodes).items()
        views = (self._build(pool, self._newest(numbers).slices) for pool, numbers in offered)
        return _in_order([pool for pool in views if pool is not None])

    def is_local(self, node: Node) -> bool:
        """Return whether no other node may have devices of the pools that the node sees."""
        pools = self._slices_by_pool((node,))
        return self.nodes_offered(pools) in ((), (node.metadata.name,))

    def _slices_by_pool(self, nodes: Sequence[Node]) -> dict[PoolId, list[int]]:
        """Return the slices that are for some of the nodes, by pool."""
        slices = self._slices
        where = self._where
        of_pool: dict[PoolId, list[int]] = {}
        for node in nodes:
            for _, number in where.get(node.metadata.name, ()):
                of_pool.setdefault(_pool_id(slices[number]), []).append(number)
        others = [
            each
            for each in where.get(None, ())
            if any(self._relevant(each[1], node) for node in nodes)
        ]
        shared = [_pool_id(slices[number]) for _, number in others]
        for pool in dict.fromkeys((*of_pool, *shared)):
            others += where.get(pool, ())
        for _, number in sorted(others):
            of_pool.setdefault(_pool_id(slices[number]), []).append(number)
        return of_pool

    def _find_unusable(self) -> None:
        for pool in self._changed:
            numbers = [number for _, number in self._where.get(pool, ())]
            view = self._view(pool, numbers) if numbers else None
            if view is not None and (view.incomplete or view.invalid):
                self._unusable[pool] = view
            else:
                self._unusable.pop(pool, None)
        self._changed.clear()

    def devices_of(self, number: int) -> tuple[PooledDevice, ...]:
        known = self._devices.get(number)
        if known is None:
            source = self._slices[number]
            known = tuple([PooledDevice(source, device) for device in source.spec.devices])
            self._devices[number] = known
        return known

    def _relevant(self, number: int, node: Node) -> bool:
        each = self._slices[number]
        spec = each.spec
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return _matches(spec, node, each)
        return bool(spec.per_device_node_selection) and any(
            _matches(device, node, each) for device in spec.devices
        )

    def _newest(self, numbers: Iterable[int]) -> Generation[int]:
        return newest_generation(numbers, lambda number: self._slices[number].spec.pool)

    def _view(self, pool: PoolId, numbers: Sequence[int]) -> Pool | None:
        # A single slice is the newest; most pools of a node are one.
        indices = tuple(numbers) if len(numbers) == 1 else self._newest(numbers).slices
        seen = self._seen.setdefault(pool, {})
        if indices not in seen:
            seen[indices] = self._build(pool, indices)
        return seen[indices]

    def _build(self, pool: PoolId, indices: tuple[int, ...]) -> Pool | None:
        """Return the pool, or None if a newer generation exists that has nothing for the node."""
        stated = self._slices[indices[0]].spec.pool
        if len(indices) == stated.resource_slice_count:
            return self._assemble(pool, indices, indices)
        newest = self._newest(number for _, number in self._of_pool[pool])
        if newest.number > stated.generation:
            return None
        if len(newest.slices) != stated.resource_slice_count:
            return Pool(pool, incomplete=(len(newest.slices), stated.resource_slice_count))
        return self._assemble(pool, indices, newest.slices)

    def _assemble(self, pool: PoolId, here: tuple[int, ...], current: tuple[int, ...]) -> Pool:
        ordered = here
        if len(here) > 1:
            ordered = tuple(sorted(here, key=lambda index: self._slices[index].metadata.name))
        partitionable = self._features.partitionable_devices
        parts = [
            self.devices_of(index)
            for index in ordered
            if not (partitionable and self._slices[index].spec.shared_counters)
        ]
        devices = parts[0] if len(parts) == 1 else tuple(chain.from_iterable(parts))
        problem = _duplicate_device(devices)
        if problem:
            return Pool(pool, invalid=problem)
        binding = any(map(_BINDING_CONDITIONS, devices))
        whole = Pool(pool, devices, binding=binding)
        return self._with_counters(whole, ordered, current) if partitionable else whole

    def _with_counters(self, pool: Pool, ordered: Sequence[int], current: Sequence[int]) -> Pool:
        elsewhere = self._elsewhere(ordered, current)
        consumers = [self._slices[i] for i in ordered]
        sources = [each for each in consumers if each.spec.shared_counters]
        if not self._behaviour.counters_are_everywhere:
            sources += [each for each in elsewhere if each.spec.shared_counters]
            elsewhere = tuple(each for each in elsewhere if not each.spec.shared_counters)
            consumers = [each for each in consumers if not each.spec.shared_counters]
        sets, problem = _counter_sets(sources)
        problem = problem or _unknown_counter(sets, (*consumers, *elsewhere))
        if problem:
            return Pool(pool.id, invalid=problem)
        counters = {
            (name, counter): value.value.nanos
            for name, each in sets.items()
            for counter, value in each.counters.items()
        }
        return Pool(pool.id, pool.devices, elsewhere, sets, counters, binding=pool.binding)

    def _elsewhere(self, here: Sequence[int], current: Sequence[int]) -> tuple[ResourceSlice, ...]:
        if len(here) == len(current):
            return ()
        names = {self._slices[index].metadata.name for index in here}
        return tuple(
            self._slices[index]
            for index in current
            if self._slices[index].metadata.name not in names
        )


def _in_order(pools: list[Pool]) -> tuple[Pool, ...]:
    return tuple(sorted(pools, key=lambda pool: (pool.binding, pool.id)))


def _delete(of: dict[_K, list[Entry]], key: _K, entry: Entry) -> None:
    entries = of[key]
    del entries[bisect_left(entries, entry)]
    if not entries:
        del of[key]


def _node_names(specs: Iterable[ResourceSliceSpec]) -> tuple[str, ...] | None:
    """Return the nodes of the slices, each once; None if a slice may be for any node."""
    names: dict[str, None] = {}
    for spec in specs:
        if not spec.node_name:
            return None
        names[spec.node_name] = None
    return tuple(names)


def _pool_id(each: ResourceSlice) -> PoolId:
    return PoolId(each.spec.driver, each.spec.pool.name)


def _matches(offered: Device | ResourceSliceSpec, node: Node, each: ResourceSlice) -> bool:
    try:
        return node_matches(
            node,
            node_name=offered.node_name,
            all_nodes=offered.all_nodes,
            selector=offered.node_selector,
        )
    except AllocationError as error:
        # Go prints all of the device, with the addresses of its parts.
        named = (
            f"device &Device{{Name:{offered.name},…}} in slice"
            if isinstance(offered, Device)
            else ""
        )
        what = named or "slice"
        raise AllocationError(
            "gather pool information: failed to perform node selection for "
            f"{what} {each.metadata.name}: {error}"
        ) from error


def has_groups(devices: Iterable[Device]) -> bool:
    """Return whether a device declares compatibility groups."""
    return any(
        consumption.compatibility_groups
        for device in filter(_CONSUMES_COUNTERS, devices)
        for consumption in device.consumes_counters
    )


_DEVICE_NAME = attrgetter("device.name")
_BINDING_CONDITIONS = attrgetter("device.binding_conditions")
_CONSUMES_COUNTERS = attrgetter("consumes_counters")


def _duplicate_device(devices: Iterable[PooledDevice]) -> str:
    names = [*map(_DEVICE_NAME, devices)]
    if len(set(names)) == len(names):
        return ""
    again = next(name for index, name in enumerate(names) if name in names[:index])
    return f"duplicate device name {again}"


def _counter_sets(sources: Iterable[ResourceSlice]) -> tuple[Mapping[str, CounterSet], str]:
    sets: dict[str, CounterSet] = {}
    for each in sources:
        for counter_set in each.spec.shared_counters:
            if counter_set.name in sets:
                return {}, f"duplicate counter set name {counter_set.name}"
            sets[counter_set.name] = counter_set
    return sets, ""


def _unknown_counter(sets: Mapping[str, CounterSet], slices: Iterable[ResourceSlice]) -> str:
    for each in slices:
        for device in filter(_CONSUMES_COUNTERS, each.spec.devices):
            for consumption in device.consumes_counters:
                counter_set = sets.get(consumption.counter_set)
                if counter_set is None:
                    return f"counter set {consumption.counter_set} not found"
                for name in consumption.counters:
                    if name not in counter_set.counters:
                        return f"counter {name} not found in counter set {counter_set.name}"
    return ""
