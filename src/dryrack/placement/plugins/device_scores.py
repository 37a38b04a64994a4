"""
DeviceFragmentation and DeviceGroups: prefer nodes where a pod's devices leave the most for others.

DeviceFragmentation is best fit: the less is left of the partitioned devices and pools that the pod
uses, the better. DeviceGroups looks at devices that belong together, for example by NVLink or a
PCIe root: `args: {attribute: NAME}` is the attribute that they have in common. The fewer whole
groups the pod breaks up, the better. Both are off unless a profile enables them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.placement.framework import SCORE_MAX, DeviceScorer, Plugin, PluginError
from dryrack.placement.plugins.dynamic_resources import DYNAMIC_RESOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from dryrack.allocation import NodePool
    from dryrack.kinds.resource import AllocationResult, Device
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import PodConstraints


def _score_fragmentation(pod: PodConstraints, fleet: Fleet, _args: Args) -> DeviceScorer | None:
    if not pod.wanted:
        return None

    def score(node: NodeState, allocations: Sequence[AllocationResult]) -> int:
        devices = _devices_by_pool(allocations)
        rests = [
            rest
            for pool in fleet.pools_on(node.node)
            if pool.id in devices
            for rest in _rests(pool, devices[pool.id])
        ]
        return SCORE_MAX - int(SCORE_MAX * sum(rests) / len(rests)) if rests else SCORE_MAX

    return DeviceScorer(score)


def _devices_by_pool(allocations: Iterable[AllocationResult]) -> Mapping[tuple[str, str], set[str]]:
    """Return the names of the devices, by driver and pool."""
    devices: dict[tuple[str, str], set[str]] = {}
    for allocation in allocations:
        for each in allocation.devices.results:
            devices.setdefault((each.driver, each.pool), set()).add(each.device)
    return devices


def _rests(pool: NodePool, taken: AbstractSet[str]) -> Iterator[float]:
    """Yield the remaining share of each counter set, and of the pool, that the pod takes from."""
    used = pool.in_use | taken
    devices = pool.devices
    sets = {
        drawn.counter_set
        for device in devices
        if device.name in taken
        for drawn in device.consumes_counters
    }
    for name in sorted(sets & pool.counter_sets.keys()):
        yield _left_of_counters(pool, name, [each for each in devices if each.name in used])
    plain = [each.name for each in devices if not each.consumes_counters]
    if not taken.isdisjoint(plain):
        yield sum(name not in used for name in plain) / len(plain)


def _left_of_counters(pool: NodePool, name: str, used: Iterable[Device]) -> float:
    """Return the remaining share of the counters of a set, on average."""
    left = {key: each.value.nanos for key, each in pool.counter_sets[name].counters.items()}
    totals = {key: total for key, total in left.items() if total > 0}
    for device in used:
        for drawn in device.consumes_counters:
            for key, counter in drawn.counters.items() if drawn.counter_set == name else ():
                left[key] = left.get(key, 0) - counter.value.nanos
    shares = [max(left[key], 0) / total for key, total in totals.items()]
    return sum(shares) / len(shares) if shares else 0.0


def _score_groups(pod: PodConstraints, fleet: Fleet, args: Args) -> DeviceScorer | None:
    attribute = args.get("attribute")
    if not attribute:
        raise PluginError("args.attribute is missing; set the attribute that groups have in common")
    if not pod.wanted:
        return None

    def score(node: NodeState, allocations: Sequence[AllocationResult]) -> int:
        devices = _devices_by_pool(allocations)
        # For each device of a group, whether it was in use before, and whether the pod takes it.
        groups: dict[object, list[tuple[bool, bool]]] = {}
        for pool in fleet.pools_on(node.node):
            taken: AbstractSet[str] = devices.get(pool.id, frozenset())
            for name, value in pool.attributes(str(attribute)).items():
                groups.setdefault(value, []).append((name in pool.in_use, name in taken))
        touched = [group for group in groups.values() if any(taken for _, taken in group)]
        whole = [group for group in touched if not any(used for used, _ in group)]
        broken = sum(not all(taken for _, taken in group) for group in whole)
        return SCORE_MAX - SCORE_MAX * broken // len(touched) if touched else SCORE_MAX

    return DeviceScorer(score)


DEVICE_FRAGMENTATION = Plugin(
    "DeviceFragmentation", score=_score_fragmentation, sign=DYNAMIC_RESOURCES.sign
)
DEVICE_GROUPS = Plugin("DeviceGroups", score=_score_groups, sign=DYNAMIC_RESOURCES.sign)
