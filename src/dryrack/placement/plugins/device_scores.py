"""
DeviceFragmentation and DeviceGroups: nodes where a pod's devices leave the most for others.

DeviceFragmentation is best fit: of what the pod breaks into (a device that is partitioned by its
counters, or else the devices of a pool), the less is left over, the better. DeviceGroups looks at
devices that belong together, as by NVLink or a PCIe root: `args: {attribute: NAME}` is the
attribute that they have in common. A node is the better the fewer groups are broken up there that
were whole. Both are off unless a profile enables them.
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


def _best_fit(pod: PodConstraints, fleet: Fleet, _args: Args) -> DeviceScorer | None:
    if not pod.wanted:
        return None

    def score(node: NodeState, allocations: Sequence[AllocationResult]) -> int:
        given = _given(allocations)
        rests = [
            rest
            for pool in fleet.pools_on(node.node)
            if pool.id in given
            for rest in _rests(pool, given[pool.id])
        ]
        return SCORE_MAX - int(SCORE_MAX * sum(rests) / len(rests)) if rests else SCORE_MAX

    return DeviceScorer(score)


def _given(allocations: Iterable[AllocationResult]) -> Mapping[tuple[str, str], set[str]]:
    """The names of the devices, by driver and pool."""
    found: dict[tuple[str, str], set[str]] = {}
    for allocation in allocations:
        for each in allocation.devices.results:
            found.setdefault((each.driver, each.pool), set()).add(each.device)
    return found


def _rests(pool: NodePool, taken: AbstractSet[str]) -> Iterator[float]:
    """Which share is left of each thing that the pod takes a part of."""
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
    """The share that is left of the counters of a set, on average."""
    left = {key: each.value.nanos for key, each in pool.counter_sets[name].counters.items()}
    totals = {key: total for key, total in left.items() if total > 0}
    for device in used:
        for drawn in device.consumes_counters:
            for key, counter in drawn.counters.items() if drawn.counter_set == name else ():
                left[key] = left.get(key, 0) - counter.value.nanos
    shares = [max(left[key], 0) / total for key, total in totals.items()]
    return sum(shares) / len(shares) if shares else 0.0


def _keeps_groups(pod: PodConstraints, fleet: Fleet, args: Args) -> DeviceScorer | None:
    attribute = args.get("attribute")
    if not attribute:
        raise PluginError("args.attribute is missing; set the attribute that groups have in common")
    if not pod.wanted:
        return None

    def score(node: NodeState, allocations: Sequence[AllocationResult]) -> int:
        given = _given(allocations)
        pools = fleet.pools_on(node.node)
        groups: dict[object, list[tuple[bool, bool]]] = {}
        for pool in pools:
            taken: AbstractSet[str] = given.get(pool.id, frozenset())
            for name, value in pool.attributes(str(attribute)).items():
                groups.setdefault(value, []).append((name in pool.in_use, name in taken))
        touched = [group for group in groups.values() if any(taken for _, taken in group)]
        broken = sum(map(_breaks, touched))
        return SCORE_MAX - SCORE_MAX * broken // len(touched) if touched else SCORE_MAX

    return DeviceScorer(score)


def _breaks(group: Sequence[tuple[bool, bool]]) -> bool:
    """Whether a group that was whole is neither that nor all used; what is used, and taken now."""
    return not any(used for used, _ in group) and not all(taken for _, taken in group)


DEVICE_FRAGMENTATION = Plugin("DeviceFragmentation", score=_best_fit, sign=DYNAMIC_RESOURCES.sign)
DEVICE_GROUPS = Plugin("DeviceGroups", score=_keeps_groups, sign=DYNAMIC_RESOURCES.sign)
