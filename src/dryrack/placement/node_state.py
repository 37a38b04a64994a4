"""
A node and what is left on it.

`obstacle` answers with the words that kube-scheduler uses for the same refusal, so that people
find what they know, and with what is so on this very node; the first obstacle is enough. What a pod
wants of a node is worked out once, and asked of many.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from dryrack.kinds.core import Taint
from dryrack.kinds.quantity import ZERO, Quantity
from dryrack.kinds.selectors import (
    SelectorError,
    parse_node_selector,
    tolerates_taint,
    untolerated_taint,
)
from dryrack.placement.demand import PODS, Amounts, HostPort, demand

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from dryrack.kinds.core import Node, Pod, Toleration
    from dryrack.kinds.selectors import NodeMatcher
    from dryrack.placement.occupant import Occupant

_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_BLOCKING = ("NoSchedule", "NoExecute")


@dataclass(slots=True)
class NodeState:
    """A node with the pods on it, and all that they take together."""

    node: Node
    used: Amounts = field(default_factory=dict)
    occupants: dict[Hashable, Occupant] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def pods(self) -> int:
        return self.used.get(PODS, 0)

    def put(self, key: Hashable, occupant: Occupant) -> None:
        """The pod, which was not here, is."""
        self.occupants[key] = occupant
        self.take(occupant.amounts)

    def remove(self, key: Hashable) -> None:
        """The pod, which was here, is not."""
        self.give_back(self.occupants.pop(key).amounts)

    def take(self, amounts: Amounts) -> None:
        for name, amount in amounts.items():
            if amount:
                self.used[name] = self.used.get(name, 0) + amount

    def give_back(self, amounts: Amounts) -> None:
        for name, amount in amounts.items():
            left = self.used.get(name, 0) - amount
            if left:
                self.used[name] = left
            else:
                self.used.pop(name, None)


@dataclass(frozen=True, slots=True)
class PodConstraints:
    """What a pod wants of a node, leaving devices aside."""

    amounts: Amounts
    node_name: str
    labels: Mapping[str, str]
    affinity: NodeMatcher | None
    tolerations: Sequence[Toleration]
    bears_cordons: bool
    # Extended resources that devices are given for, on nodes that have none of their own.
    by_devices: Sequence[str]
    kind: Hashable
    """The same for all pods that want the same."""

    @staticmethod
    def of(pod: Pod, by_devices: Sequence[str] = ()) -> PodConstraints:
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
        required = (
            affinity.required_during_scheduling_ignored_during_execution if affinity else None
        )
        amounts, tolerations, labels = demand(pod), pod.spec.tolerations, pod.spec.node_selector
        kind = (
            frozenset(amounts.items()),
            tuple(sorted(labels.items())),
            (pod.spec.node_name, required, tolerations, tuple(by_devices)),
        )
        return PodConstraints(
            amounts,
            pod.spec.node_name,
            labels,
            None if required is None else parse_node_selector(required),
            tolerations,
            any(tolerates_taint(each, _CORDONED) for each in tolerations),
            by_devices,
            kind,
        )


class NodeRefusal(NamedTuple):
    """Why a node does not take a pod, leaving devices aside."""

    # What kube-scheduler says of all nodes that refuse for this.
    words: str
    # What is so on this one, and what would have to change.
    fact: str
    remedy: str


_CORDON = NodeRefusal("node(s) were unschedulable", "the node is cordoned", "uncordon the node")
_NOT_SELECTED = NodeRefusal(
    "node(s) didn't match Pod's node affinity/selector",
    "the pod's node selector or affinity excludes the node",
    "label the node",
)


def obstacle(wishes: PodConstraints, state: NodeState) -> NodeRefusal | None:
    """Why the pod cannot run there, leaving devices aside; None if nothing is in the way."""
    if wishes.node_name not in ("", state.name):
        words = "node(s) didn't match the requested node name"
        return NodeRefusal(words, f"the pod is bound to node {wishes.node_name}", "remove nodeName")
    return (
        _closed(wishes, state.node)
        or _unselected(wishes, state.node)
        or _port_taken(wishes.amounts, state)
        or _full(wishes, state)
    )


def _closed(wishes: PodConstraints, node: Node) -> NodeRefusal | None:
    spec = node.spec
    if spec.unschedulable and not wishes.bears_cordons:
        return _CORDON
    if not spec.taints:
        return None
    taint = untolerated_taint(spec.taints, wishes.tolerations, _BLOCKING)
    if taint is None:
        return None
    fact = f"the node is tainted {taint.key}:{taint.effect}"
    return NodeRefusal("node(s) had untolerated taint(s)", fact, "tolerate the taint")


def _unselected(wishes: PodConstraints, node: Node) -> NodeRefusal | None:
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in wishes.labels.items()):
        return _NOT_SELECTED
    try:
        allowed = wishes.affinity is None or wishes.affinity.matches(node)
    except SelectorError as error:
        fact = f"the pod's node affinity makes no sense: {error}"
        return NodeRefusal(_NOT_SELECTED.words, fact, "correct the affinity")
    return None if allowed else _NOT_SELECTED


def _port_taken(amounts: Amounts, state: NodeState) -> NodeRefusal | None:
    wanted = [each for each in amounts if isinstance(each, HostPort)]
    if not wanted:
        return None
    taken = [each for each in state.used if isinstance(each, HostPort)]
    for each in wanted:
        if any(each.conflicts(other) for other in taken):
            words = "node(s) didn't have free ports for the requested pod ports"
            fact = f"another pod has port {each.number}/{each.protocol} of the node"
            return NodeRefusal(words, fact, "use another port")
    return None


def _full(wishes: PodConstraints, state: NodeState) -> NodeRefusal | None:
    allocatable, amounts = state.node.status.allocatable, wishes.amounts
    missing = [
        name
        for name, amount in amounts.items()
        if amount
        and not isinstance(name, HostPort)
        and not (name in wishes.by_devices and not allocatable.get(name, ZERO).nanos)
        and state.used.get(name, 0) + amount
        > (allocatable[name].nanos if name in allocatable else 0)
    ]
    if not missing:
        return None
    name = min(missing)
    total = allocatable.get(name, ZERO)
    left = Quantity.of(max(total.nanos - state.used.get(name, 0), 0), total.format)
    if name == PODS:
        fact = f"the node takes {total} pods, and has as many"
        return NodeRefusal("Too many pods", fact, "use a node that takes more")
    wanted = Quantity.of(amounts[name], total.format)
    fact = f"the pod requests {wanted} of {name}, and {left} of {total} is left on the node"
    return NodeRefusal(f"Insufficient {name}", fact, f"request less {name}, or free some")
