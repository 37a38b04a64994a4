"""
The distance of a node from taking a pod, over all causes.

It compares nodes that lack CPU, tainted nodes and nodes that lack devices by the changes that they
would need. A device that another claim has counts 1. A condition such as a taint or a label counts
half as much as a device. A resource counts the missing share of the request. A device that
selectors do not select counts the distance of its values from the required ones.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from dryrack.allocation import (
    AllocationError,
    Code,
    Undecided,
    Unsatisfiable,
    claim_name,
)
from dryrack.allocation import Reason as DeviceReason
from dryrack.placement.active_plugins import ActivePlugins
from dryrack.placement.demand import demand
from dryrack.placement.outcomes import Refusal
from dryrack.placement.pod_constraints import PodConstraints

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from dryrack.allocation import Reason
    from dryrack.placement.demand import Amounts
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.whatif.what_if import Turn

# The cost of a device that the request cannot use for this reason.
_DEVICE_COSTS = {
    Code.IN_USE: 1.0,
    Code.COUNTER_SHORT: 1.0,
    Code.INCOMPATIBLE: 1.0,
    Code.GATE_OFF: 1.0,
    Code.SELECTOR_ERROR: 1.0,
    Code.CONSTRAINT: 0.75,
    Code.CAPACITY_ABSENT: 0.75,
    Code.CAPACITY_SHORT: 0.5,
    Code.CAPACITY_POLICY: 0.5,
    Code.TAINTED: 0.5,
    Code.COMBINATION: 0.5,
    Code.NODE: 2.0,
}
_NODE_CONDITION = 0.5
# A device that does not exist on the node.
_NO_DEVICE = 3.0
# A node that has no device of the kind, and one that has no device at all.
_OTHER_DEVICES = 500.0
_NO_DEVICES = 1000.0
# A cause that is the same on every node.
_NO_NODE = 2000.0
# The number of nodes whose devices are checked although they refuse the pod for other reasons.
_NODES_ASKED_MAX = 200


def distance_of(refusal: Refusal) -> float:
    """Return how far the node is from taking the pod."""
    return refusal.shortage + _device_distance(refusal.reasons)


def _device_distance(reasons: Sequence[Reason]) -> float:
    requests: dict[tuple[str, str], list[Reason]] = defaultdict(list)
    for reason in reasons:
        requests[reason.claim, reason.request].append(reason)
    # One of the subrequests of a request is enough.
    best: dict[tuple[str, str], float] = {}
    for (claim, label), about in requests.items():
        key = claim, label.partition("/")[0]
        distance = _request_distance(about)
        best[key] = min(distance, best.get(key, distance))
    return sum(best.values())


def _request_distance(reasons: Sequence[Reason]) -> float:
    lacking = max((reason.lacking for reason in reasons), default=0)
    codes = {reason.code for reason in reasons}
    if not lacking:
        is_open = codes <= {Code.NODE, Code.UNDECIDED, Code.OTHER_CLAIM}
        return 0.0 if is_open else _NO_NODE
    if Code.NO_DEVICES in codes:
        nearest = [each.distance for each in reasons if each.code is Code.CLASS_SELECTOR]
        return lacking + (_OTHER_DEVICES + min(nearest) if nearest else _NO_DEVICES)
    # A device of the class that the request does not select costs the distance of its values.
    costs = sorted(
        each.distance if each.code is Code.REQUEST_SELECTOR else _DEVICE_COSTS[each.code]
        for each in reasons
        if each.device and (each.code in _DEVICE_COSTS or each.code is Code.REQUEST_SELECTOR)
    )
    return sum(costs[:lacking]) + _NO_DEVICE * max(0, lacking - len(costs))


def with_all_causes(turn: Turn, refusals: Iterable[Refusal]) -> tuple[Refusal, ...]:
    """
    Return the refusals with every cause on each node.

    A filter ends an attempt on a node, so that the devices of a tainted node are not checked. They
    are checked here, because a tainted node with free devices is nearer than one without devices.
    """
    return tuple(_AllCauses(turn).of(refusals))


class _AllCauses:
    def __init__(self, turn: Turn) -> None:
        member = turn.member
        self._cluster = turn.cluster
        self._pod = PodConstraints.of(
            member.pod, member.wanted, member.allocated, extended=member.extended
        )
        self._checks = ActivePlugins.of(self._pod, turn.cluster.fleet, turn.profile).checks
        self._demand: Amounts = demand(member.pod)
        self._claims = [*map(claim_name, self._pod.wanted)] or [""]
        # The distance of devices, for nodes with equal devices.
        self._distances: dict[Hashable, float] = {}
        self._left = _NODES_ASKED_MAX

    def of(self, refusals: Iterable[Refusal]) -> Iterator[Refusal]:
        for refusal in refusals:
            state = self._cluster.fleet.get(refusal.node)
            if state is None or {each.code for each in refusal.reasons} != {Code.NODE}:
                yield refusal
            else:
                yield self._of_node(state)

    def _of_node(self, state: NodeState) -> Refusal:
        refusals = [each for _, check in self._checks if (each := check(state)) is not None]
        reasons = [
            DeviceReason(
                claim=claim,
                request="",
                device="",
                code=Code.NODE,
                fact=each.fact,
                remedy=each.remedy,
            )
            for each in refusals
            for claim in self._claims
        ]
        shares = []
        for name, amount in self._demand.items():
            left = state.allocatable.get(str(name), 0) - state.used.get(name, 0)
            if isinstance(name, str) and amount > left and name not in self._pod.by_devices:
                shares.append(min(1.0, (amount - max(left, 0)) / amount))
        conditions = len(refusals) - any(each.is_shortage for each in refusals)
        devices, distance = self._devices(state)
        shortage = _NODE_CONDITION * conditions + sum(shares) + distance
        return Refusal(state.name, (*reasons, *devices), shortage)

    def _devices(self, state: NodeState) -> tuple[tuple[Reason, ...], float]:
        """Return why devices do not fit, or only their distance if too many nodes were checked."""
        wanted = self._pod.wanted_on(state.node)
        if not wanted:
            return (), 0.0
        allocator = self._cluster.allocator
        symmetry_key = getattr(allocator, "symmetry_key", None)
        key = symmetry_key(state.node, wanted) if symmetry_key is not None else state.name
        if self._distances.get(key) == 0.0:
            return (), 0.0
        if not self._left:
            return (), self._distances.get(key, 0.0)
        self._left -= 1
        try:
            outcome = allocator.begin(state.node, wanted)
        except AllocationError:
            return (), 0.0
        reasons = outcome.reasons if isinstance(outcome, Unsatisfiable | Undecided) else ()
        self._distances[key] = _device_distance(reasons)
        return tuple(reasons), 0.0
