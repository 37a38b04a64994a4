"""
Views of devices: their node, their claims, and whether they can be allocated now.

As in the allocator, the newest generation of a pool counts, and none of it while slices are
missing. A partition is free if the shared counters have enough left for it, a shared device if some
of its capacity is left. A device is not free on a node that takes no pods. A device that a claim
has and that is no longer published is withdrawn.

A summary counts the devices that can be allocated at the same time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dryrack.allocation import apply_taint_rules, blocking_taints, claim_name
from dryrack.kinds.pool_generation import newest_generation
from dryrack.kinds.quantity import ZERO, Quantity
from dryrack.kinds.selectors import SelectorError, parse_node_selector
from dryrack.placement.views.partitions import AtOnce, allocatable_at_once

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from dryrack.kinds.core import Node
    from dryrack.kinds.resource import (
        Device,
        DeviceAttribute,
        DeviceTaintRule,
        ResourceClaim,
        ResourceSlice,
    )

ALL_NODES = "all nodes"
SOME_NODES = "some nodes"
# Attributes with the model of a device, by the last part of their names; the first counts.
_MODELS = ("productName", "model", "product", "pciDevice", "architecture", "type")
_PROFILES = ("profile", "migProfile")

_Id = tuple[str, str, str]
_Counters = dict[tuple[str, str], Quantity]


class DeviceState(StrEnum):
    """The state of a device: if it can be allocated now, or why not."""

    FREE = "free"
    SHARED = "shared"
    """Claims have some of it, and there is more."""
    ALLOCATED = "allocated"
    CONFLICT = "conflict"
    """More of it is allocated than there is: two claims have it, or its counters are overdrawn."""
    BLOCKED = "blocked"
    """A partition whose counters other devices have used up."""
    TAINTED = "tainted"
    INCOMPLETE = "incomplete"
    """Slices of its pool are missing, so that nothing of the pool is allocated."""
    CORDONED = "cordoned"
    """It would be free, but its node is cordoned."""
    NOT_READY = "not ready"
    """It would be free, but its node is not ready."""
    NO_NODE = "no node"
    """It would be free, but no node that it is for exists."""
    WITHDRAWN = "withdrawn"
    """A claim has it, and no slice publishes it."""


_AVAILABLE = (DeviceState.FREE, DeviceState.SHARED)


@dataclass(frozen=True, slots=True)
class Holder:
    """A claim that has a device, possibly with admin access only."""

    claim: str
    pods: tuple[str, ...]
    admin_access: bool = False
    consumed: Mapping[str, Quantity] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = {"claim": self.claim, "pods": list(self.pods)}
        if self.admin_access:
            found["adminAccess"] = True
        if self.consumed:
            found["consumedCapacity"] = _texts(self.consumed)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceView:
    """A device, as it is now."""

    # Empty for a device that is withdrawn.
    node: str
    driver: str
    pool: str
    device: str
    state: DeviceState
    model: str = ""
    holders: tuple[Holder, ...] = ()
    taints: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, Quantity] = field(default_factory=dict)
    # The remaining capacity, if claims may share it.
    left: Mapping[str, Quantity] = field(default_factory=dict)
    # The counter sets of a partition.
    counter_sets: tuple[str, ...] = ()
    # The amount that it takes of each counter, and the amounts that devices in use leave.
    takes: Mapping[tuple[str, str], Quantity] = field(default_factory=dict, repr=False)
    counters_left: Mapping[tuple[str, str], Quantity] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"

    @property
    def is_tainted(self) -> bool:
        """Return whether taints keep the device from claims without a toleration."""
        return any(each.endswith((":NoSchedule", ":NoExecute")) for each in self.taints)

    @property
    def takers(self) -> tuple[str, ...]:
        """Return the claims that exclude others; claims with admin access do not."""
        return tuple(each.claim for each in self.holders if not each.admin_access)

    def document(self) -> dict[str, Any]:
        """Return the device as programs read it."""
        found: dict[str, Any] = {
            "node": self.node,
            "driver": self.driver,
            "pool": self.pool,
            "device": self.device,
            "model": self.model,
            "state": str(self.state),
            "claims": [each.document() for each in self.holders],
            "attributes": dict(self.attributes),
            "capacity": _texts(self.capacity),
        }
        if self.taints:
            found["taints"] = list(self.taints)
        if self.left:
            found["capacityLeft"] = _texts(self.left)
        if self.counter_sets:
            found["counterSets"] = list(self.counter_sets)
        return found


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """The number of devices of a model that can be allocated at the same time, by node."""

    driver: str
    model: str
    devices: int
    free: int
    # The most that are free on one node.
    largest: int
    # The number of nodes by free devices and all devices, the most free devices first.
    nodes: Mapping[tuple[int, int], int]
    # Whether no more than that can be allocated at the same time.
    is_exact: bool = True

    @classmethod
    def of(
        cls,
        driver: str,
        model: str,
        nodes: Mapping[tuple[int, int], int],
        *,
        is_exact: bool = True,
    ) -> ModelSummary:
        """Return the summary of how many nodes have how many of how many free."""
        return cls(
            driver,
            model,
            sum(of * count for (_, of), count in nodes.items()),
            sum(free * count for (free, _), count in nodes.items()),
            max((free for free, _ in nodes), default=0),
            dict(sorted(nodes.items(), reverse=True)),
            is_exact,
        )

    def document(self) -> dict[str, Any]:
        """Return the summary as programs read it."""
        return {
            "driver": self.driver,
            "model": self.model,
            "devices": self.devices,
            "free": self.free,
            **({} if self.is_exact else {"freeIsAtLeast": True}),
            "largestFreeOnOneNode": self.largest,
            "nodes": [
                {"free": free, "devices": of, "nodes": count}
                for (free, of), count in self.nodes.items()
            ],
        }


def devices_of(
    slices: Sequence[ResourceSlice],
    claims: Iterable[ResourceClaim],
    rules: Sequence[DeviceTaintRule] = (),
    nodes: Sequence[Node] | None = None,
) -> tuple[DeviceView, ...]:
    """
    Return every device by node, driver, pool and in the pool's order; withdrawn ones last.

    Without `nodes` it is not known which of them take pods, and all count as if they did.
    """
    held = _holders(claims)
    reach = None if nodes is None else _NodeReach(nodes)
    pools: dict[tuple[str, str], list[ResourceSlice]] = defaultdict(list)
    for each in apply_taint_rules(slices, rules):
        pools[each.spec.driver, each.spec.pool.name].append(each)
    found = [view for key in sorted(pools) for view in _pool(pools[key], held, reach)]
    there = {(each.driver, each.pool, each.device) for each in found}
    found.sort(key=lambda each: each.node)
    return (*found, *(_withdrawn(each, held[each]) for each in sorted(held) if each not in there))


def skipped_devices(devices: Sequence[DeviceView], claim: str) -> tuple[DeviceView, ...]:
    """Return devices before the last device of a claim in a pool that the claim does not have."""
    pools: dict[tuple[str, str], list[DeviceView]] = defaultdict(list)
    for each in devices:
        pools[each.driver, each.pool].append(each)
    skipped: list[DeviceView] = []
    for pool in pools.values():
        own = [any(h.claim == claim for h in each.holders) for each in pool]
        last = max((place for place, is_own in enumerate(own) if is_own), default=0)
        skipped += [each for each, is_own in zip(pool[:last], own, strict=False) if not is_own]
    return tuple(skipped)


def summary_of(devices: Iterable[DeviceView]) -> tuple[ModelSummary, ...]:
    """Return how many devices can be allocated at the same time, by driver and model."""
    kinds: dict[tuple[str, str], dict[str, list[DeviceView]]] = defaultdict(dict)
    for each in devices:
        if each.state is not DeviceState.WITHDRAWN:
            kinds[each.driver, each.model].setdefault(each.node, []).append(each)
    summaries = []
    for kind, nodes in sorted(kinds.items()):
        free = {node: free_at_once(found) for node, found in nodes.items()}
        counts = Counter((free[node].count, len(found)) for node, found in nodes.items())
        is_exact = all(each.is_exact for each in free.values())
        summaries.append(ModelSummary.of(*kind, counts, is_exact=is_exact))
    return tuple(summaries)


def free_at_once(devices: Iterable[DeviceView]) -> AtOnce:
    """Return how many of the devices can be allocated at the same time."""
    whole = 0
    partitions: list[dict[Hashable, int]] = []
    left: dict[Hashable, int] = {}
    for each in devices:
        if each.state not in _AVAILABLE:
            continue
        if not each.takes or each.takers:
            # A shared device takes its counters once.
            whole += 1
            continue
        pool = (each.driver, each.pool)
        partitions.append({(pool, place): amount.nanos for place, amount in each.takes.items()})
        left |= {(pool, place): each.counters_left.get(place, ZERO).nanos for place in each.takes}
    return AtOnce(whole) + allocatable_at_once(partitions, left)


def _holders(claims: Iterable[ResourceClaim]) -> dict[_Id, list[Holder]]:
    held: dict[_Id, list[Holder]] = defaultdict(list)
    for claim in claims:
        if claim.status.allocation is None:
            continue
        namespace = claim.metadata.namespace
        pods = tuple(f"{namespace}/{user.name}" for user in claim.status.reserved_for)
        for each in claim.status.allocation.devices.results:
            admin = bool(each.admin_access)
            consumed = each.consumed_capacity
            holder = Holder(claim_name(claim), pods, admin, consumed)
            held[each.driver, each.pool, each.device].append(holder)
    return held


class _NodeReach:
    """The nodes that take pods, and so can use their devices."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = {each.metadata.name: each for each in nodes}
        self._states = {name: _node_state(each) for name, each in self._nodes.items()}

    def obstacle(self, each: ResourceSlice, device: Device) -> DeviceState | None:
        """Return why no node can use a device; None if one can."""
        name = each.spec.node_name or device.node_name
        if name:
            return self._states.get(name, DeviceState.NO_NODE)
        selector = each.spec.node_selector or device.node_selector
        names: Iterable[str] = self._states
        if selector is not None:
            matcher = parse_node_selector(selector)
            try:
                names = [name for name, node in self._nodes.items() if matcher.matches(node)]
            except SelectorError:
                # The allocator refuses such a selector, so that no node gets the device.
                names = ()
        states = [self._states[name] for name in names]
        return None if None in states else next(iter(states), DeviceState.NO_NODE)


def _node_state(node: Node) -> DeviceState | None:
    """Return why a node takes no pods; None if it does. Without conditions it is ready."""
    if node.spec.unschedulable:
        return DeviceState.CORDONED
    ready = [each.status for each in node.status.conditions if each.type == "Ready"]
    return DeviceState.NOT_READY if ready and ready[0] != "True" else None


def _pool(
    slices: Sequence[ResourceSlice], held: Mapping[_Id, Sequence[Holder]], reach: _NodeReach | None
) -> Iterator[DeviceView]:
    newest = newest_generation(slices, lambda each: each.spec.pool)
    left = _counters_left(newest.slices, held)
    for each in newest.slices:
        for device in each.spec.devices:
            key = (each.spec.driver, each.spec.pool.name, device.name)
            view = _view(each, device, held.get(key, ()), left)
            if view.state in _AVAILABLE:
                obstacle = reach.obstacle(each, device) if reach is not None else None
                if not newest.is_complete:
                    obstacle = DeviceState.INCOMPLETE
                view = view if obstacle is None else replace(view, state=obstacle)
            yield view


def _counters_left(
    slices: Sequence[ResourceSlice], held: Mapping[_Id, Sequence[Holder]]
) -> _Counters:
    """Return the amounts that devices in use leave of the counters of a pool."""
    left: _Counters = {}
    for each in slices:
        for counters in each.spec.shared_counters:
            for name, counter in counters.counters.items():
                left[counters.name, name] = counter.value
    for each in slices:
        for device in each.spec.devices:
            key = (each.spec.driver, each.spec.pool.name, device.name)
            if device.consumes_counters and _users(held.get(key, ())):
                for place, amount in _takes(device):
                    left[place] = left.get(place, ZERO) - amount
    return left


def _takes(device: Device) -> Iterator[tuple[tuple[str, str], Quantity]]:
    for consumption in device.consumes_counters:
        for name, counter in consumption.counters.items():
            yield (consumption.counter_set, name), counter.value


def _view(
    each: ResourceSlice,
    device: Device,
    holders: Sequence[Holder],
    counters: _Counters,
) -> DeviceView:
    capacity = {name: amount.value for name, amount in device.capacity.items()}
    left = _capacity_left(device, holders)
    state = _state(device, holders, left, counters)
    attributes = {name: _text(value) for name, value in device.attributes.items()}
    return DeviceView(
        node=_node(each, device),
        driver=each.spec.driver,
        pool=each.spec.pool.name,
        device=device.name,
        state=state,
        model=_model(attributes),
        holders=tuple(holders),
        taints=tuple(f"{taint.key}:{taint.effect}" for taint in device.taints),
        attributes=attributes,
        capacity=capacity,
        left=left,
        counter_sets=tuple(dict.fromkeys(c.counter_set for c in device.consumes_counters)),
        takes=dict(_takes(device)),
        counters_left=counters,
    )


def _state(
    device: Device,
    holders: Sequence[Holder],
    left: Mapping[str, Quantity],
    counters: _Counters,
) -> DeviceState:
    users = _users(holders)
    overdrawn = any(counters.get(place, ZERO) < ZERO for place, _ in _takes(device))
    if (len(users) > 1 and not device.allow_multiple_allocations) or (users and overdrawn):
        return DeviceState.CONFLICT
    if any(amount < ZERO for amount in left.values()):
        return DeviceState.CONFLICT
    if users and not device.allow_multiple_allocations:
        return DeviceState.ALLOCATED
    if any(amount <= ZERO for amount in left.values()):
        return DeviceState.ALLOCATED
    if blocking_taints(device, ()):
        return DeviceState.TAINTED
    if users:
        return DeviceState.SHARED
    if any(amount > counters.get(place, ZERO) for place, amount in _takes(device)):
        return DeviceState.BLOCKED
    return DeviceState.FREE


def _capacity_left(device: Device, holders: Sequence[Holder]) -> dict[str, Quantity]:
    if not device.allow_multiple_allocations:
        return {}
    left = {name: amount.value for name, amount in device.capacity.items()}
    for holder in _users(holders):
        for name, amount in holder.consumed.items():
            left[name] = left.get(name, ZERO) - amount
    return left


def _users(holders: Sequence[Holder]) -> Sequence[Holder]:
    """Return the holders that use the device, not those with admin access."""
    return [each for each in holders if not each.admin_access]


def _withdrawn(device: _Id, holders: Sequence[Holder]) -> DeviceView:
    driver, pool, name = device
    return DeviceView(
        node="",
        driver=driver,
        pool=pool,
        device=name,
        state=DeviceState.WITHDRAWN,
        holders=tuple(holders),
    )


def _node(each: ResourceSlice, device: Device) -> str:
    """Return the node of a device, or for which nodes it is."""
    name = each.spec.node_name or device.node_name
    return name or (ALL_NODES if each.spec.all_nodes or device.all_nodes else SOME_NODES)


def _model(attributes: Mapping[str, str]) -> str:
    """Return the model of a device from its attributes; empty if they have none."""
    by_part = {name.rpartition("/")[2]: value for name, value in attributes.items()}
    model = next((by_part[each] for each in _MODELS if by_part.get(each)), "")
    profile = next((by_part[each] for each in _PROFILES if by_part.get(each)), "")
    return f"{model} {profile}".strip()


def _text(value: DeviceAttribute) -> str:
    if value.bool_value is not None:
        return str(value.bool_value).lower()
    for single in (value.string_value, value.version_value, value.int_value):
        if single is not None:
            return str(single)
    many = value.int_values or value.string_values or value.version_values or value.bool_values
    return ",".join(str(each) for each in many or ())


def _texts(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}
