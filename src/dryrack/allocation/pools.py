"""
Pools as one node sees them: newest generation, complete or not, valid or not, in order.

A pool belongs to a driver and spans slices, some of which may be for other nodes. Devices of
a pool are offered to a node only when every slice of the newest generation is there and the
pool makes sense; a slice for another node still counts towards completeness, and its
allocated devices still draw on the pool's counters. Pools come by driver and name, those with
binding conditions last; slices by name; devices as listed. Order is priority: the search
takes the first device that fits.

Built once for all slices. A node costs its own slices and those that name no node; what a
pool looks like is worked out once for each distinct set of slices that nodes see of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from dryrack.allocation.errors import AllocationError
from dryrack.allocation.features import Features, Release
from dryrack.allocation.identity import DeviceId, PoolId
from dryrack.kinds.core import Node, NodeSelector
from dryrack.kinds.resource import CounterSet, Device, ResourceSlice, ResourceSliceSpec
from dryrack.kinds.selectors import NodeMatcher, SelectorError, strict_node_selector

if TYPE_CHECKING:
    from dryrack import cel


class PooledDevice:
    """A device in its slice. Made once per slice, so it can carry what is known about it."""

    __slots__ = ("_id", "device", "shape", "slice")

    def __init__(self, source: ResourceSlice, device: Device) -> None:
        self.device = device
        self.slice = source
        self._id: DeviceId | None = None
        # As selectors see it, once somebody asked; see `candidates`.
        self.shape: cel.Device | None = None

    @property
    def id(self) -> DeviceId:
        if self._id is None:
            spec = self.slice.spec
            self._id = DeviceId(spec.driver, spec.pool.name, self.device.name)
        return self._id


@dataclass(frozen=True, slots=True)
class Pool:
    """What a node sees of a pool; no devices unless it is complete and valid."""

    id: PoolId
    devices: tuple[PooledDevice, ...] = ()
    # Slices of the pool that offer this node nothing, for the counters their devices hold.
    elsewhere: tuple[ResourceSlice, ...] = ()
    counter_sets: Mapping[str, CounterSet] | None = None
    # How many slices there are and how many there should be, if that differs.
    incomplete: tuple[int, int] | None = None
    invalid: str = ""
    # Whether some device has binding conditions.
    binding: bool = False


def node_matches(
    node: Node, *, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None
) -> bool:
    """Whether a slice or device that says so is for the node; a name goes before the rest."""
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
        raise AllocationError(f"failed to parse node selector {selector}: {error}") from error


class Inventory:
    """All slices, indexed so that a node's pools are found without looking at every slice."""

    def __init__(
        self, slices: Sequence[ResourceSlice], features: Features, release: Release
    ) -> None:
        self._slices = slices
        self._features = features
        self._release = release
        self._on_node: dict[str, list[int]] = {}
        self._shared: list[int] = []
        self._of_pool: dict[PoolId, list[int]] = {}
        self._seen: dict[tuple[int, ...], Pool | None] = {}
        self._devices: dict[int, tuple[PooledDevice, ...]] = {}
        for index, each in enumerate(slices):
            self._index(index, each)

    def _index(self, index: int, each: ResourceSlice) -> None:
        spec = each.spec
        self._of_pool.setdefault(_pool_id(each), []).append(index)
        if not self._features.partitionable_devices and (
            spec.per_device_node_selection is not None or spec.shared_counters
        ):
            return
        everywhere = self._release is Release.V1_36 and spec.shared_counters
        if spec.node_name and not everywhere:
            self._on_node.setdefault(spec.node_name, []).append(index)
        else:
            self._shared.append(index)

    def pools(self, node: Node) -> tuple[Pool, ...]:
        """The pools that offer the node something, in the order the search goes through them."""
        of_pool: dict[PoolId, list[int]] = {}
        for index in self._on_node.get(node.metadata.name, ()):
            self._add(of_pool, index)
        for index in self._shared:
            if self._relevant(self._slices[index], node):
                self._add(of_pool, index)
        # A list of slices names its pool already, so it is the whole key.
        views = (self._view(pool, tuple(of_pool[pool])) for pool in sorted(of_pool))
        pools = [pool for pool in views if pool is not None]
        return tuple(sorted(pools, key=lambda pool: pool.binding))

    def devices_of(self, index: int) -> tuple[PooledDevice, ...]:
        known = self._devices.get(index)
        if known is None:
            source = self._slices[index]
            known = tuple([PooledDevice(source, device) for device in source.spec.devices])
            self._devices[index] = known
        return known

    def _relevant(self, each: ResourceSlice, node: Node) -> bool:
        spec = each.spec
        if spec.shared_counters and self._release is Release.V1_36:
            return True
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return _matches(spec, node, each)
        return bool(spec.per_device_node_selection) and any(
            _matches(device, node, each) for device in spec.devices
        )

    def _add(self, of_pool: dict[PoolId, list[int]], index: int) -> None:
        each = self._slices[index]
        pool = _pool_id(each)
        there = of_pool.get(pool)
        if there is None:
            of_pool[pool] = [index]
            return
        newest = self._slices[there[0]].spec.pool.generation
        if each.spec.pool.generation > newest:
            of_pool[pool] = [index]
        elif each.spec.pool.generation == newest:
            there.append(index)

    def _view(self, pool: PoolId, indices: tuple[int, ...]) -> Pool | None:
        if indices not in self._seen:
            self._seen[indices] = self._build(pool, indices)
        return self._seen[indices]

    def _build(self, pool: PoolId, indices: tuple[int, ...]) -> Pool | None:
        """The pool, or None if a newer generation is on its way that has nothing for the node."""
        stated = self._slices[indices[0]].spec.pool
        if len(indices) == stated.resource_slice_count:
            return self._assemble(pool, indices, indices)
        everywhere = self._of_pool[pool]
        if any(self._slices[i].spec.pool.generation > stated.generation for i in everywhere):
            return None
        current = tuple(
            i for i in everywhere if self._slices[i].spec.pool.generation == stated.generation
        )
        if len(current) != stated.resource_slice_count:
            return Pool(pool, incomplete=(len(current), stated.resource_slice_count))
        return self._assemble(pool, indices, current)

    def _assemble(self, pool: PoolId, here: tuple[int, ...], current: tuple[int, ...]) -> Pool:
        ordered = sorted(here, key=lambda index: self._slices[index].metadata.name)
        partitionable = self._features.partitionable_devices
        with_devices = [
            i for i in ordered if not (partitionable and self._slices[i].spec.shared_counters)
        ]
        devices = tuple(chain.from_iterable(self.devices_of(i) for i in with_devices))
        problem = _duplicate_device(devices)
        if problem:
            return Pool(pool, invalid=problem)
        binding = any(pooled.device.binding_conditions for pooled in devices)
        whole = Pool(pool, devices, binding=binding)
        return self._with_counters(whole, ordered, current) if partitionable else whole

    def _with_counters(self, pool: Pool, ordered: Sequence[int], current: Sequence[int]) -> Pool:
        elsewhere = self._elsewhere(ordered, current)
        sources = [self._slices[i] for i in ordered if self._slices[i].spec.shared_counters]
        consumers: list[ResourceSlice] = [self._slices[i] for i in ordered]
        if self._release is not Release.V1_36:
            sources += [each for each in elsewhere if each.spec.shared_counters]
            elsewhere = tuple(each for each in elsewhere if not each.spec.shared_counters)
            consumers = [each for each in consumers if not each.spec.shared_counters]
        sets, problem = _counter_sets(sources)
        problem = problem or _unknown_counter(sets, (*consumers, *elsewhere))
        if problem:
            return Pool(pool.id, invalid=problem)
        return replace(pool, elsewhere=elsewhere, counter_sets=sets)

    def _elsewhere(self, here: Sequence[int], current: Sequence[int]) -> tuple[ResourceSlice, ...]:
        if len(here) == len(current):
            return ()
        names = {self._slices[index].metadata.name for index in here}
        return tuple(
            self._slices[index]
            for index in current
            if self._slices[index].metadata.name not in names
        )


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
        what = f"device {offered} in slice" if isinstance(offered, Device) else "slice"
        raise AllocationError(
            "gather pool information: failed to perform node selection for "
            f"{what} {each.metadata.name}: {error}"
        ) from error


def _duplicate_device(devices: Iterable[PooledDevice]) -> str:
    names = [pooled.device.name for pooled in devices]
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
        for device in each.spec.devices:
            for consumption in device.consumes_counters:
                counter_set = sets.get(consumption.counter_set)
                if counter_set is None:
                    return f"counter set {consumption.counter_set} not found"
                for name in consumption.counters:
                    if name not in counter_set.counters:
                        return f"counter {name} not found in counter set {counter_set.name}"
    return ""
