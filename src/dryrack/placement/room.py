"""
A node and what is left on it.

`obstacle` answers with the words that kube-scheduler uses for the same refusal, so that people
find what they know; the first obstacle is enough. What a pod wants of a node is worked out once,
and asked of many.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.kinds.core import Taint
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

_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_BLOCKING = ("NoSchedule", "NoExecute")


@dataclass(slots=True)
class Room:
    """A node with the demands of the pods on it."""

    node: Node
    used: Amounts = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def pods(self) -> int:
        return self.used.get(PODS, 0)

    def take(self, amounts: Amounts) -> None:
        for name, amount in amounts.items():
            self.used[name] = self.used.get(name, 0) + amount

    def give_back(self, amounts: Amounts) -> None:
        for name, amount in amounts.items():
            left = self.used.get(name, 0) - amount
            if left:
                self.used[name] = left
            else:
                self.used.pop(name, None)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a pod wants of a node, leaving devices aside."""

    amounts: Amounts
    node_name: str
    labels: Mapping[str, str]
    affinity: NodeMatcher | None
    tolerations: Sequence[Toleration]
    bears_cordons: bool
    kind: Hashable
    """The same for all pods that want the same."""

    @staticmethod
    def of(pod: Pod) -> Wishes:
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
        required = (
            affinity.required_during_scheduling_ignored_during_execution if affinity else None
        )
        amounts, tolerations, labels = demand(pod), pod.spec.tolerations, pod.spec.node_selector
        kind = (
            frozenset(amounts.items()),
            tuple(sorted(labels.items())),
            (pod.spec.node_name, required, tolerations),
        )
        return Wishes(
            amounts,
            pod.spec.node_name,
            labels,
            None if required is None else parse_node_selector(required),
            tolerations,
            any(tolerates_taint(each, _CORDONED) for each in tolerations),
            kind,
        )


def obstacle(wishes: Wishes, room: Room) -> str:
    """Why the pod cannot run there, leaving devices aside; empty if nothing is in the way."""
    if wishes.node_name not in ("", room.name):
        return "node(s) didn't match the requested node name"
    spec = room.node.spec
    if spec.unschedulable and not wishes.bears_cordons:
        return "node(s) were unschedulable"
    if spec.taints and untolerated_taint(spec.taints, wishes.tolerations, _BLOCKING) is not None:
        return "node(s) had untolerated taint(s)"
    if not _allows(wishes, room.node):
        return "node(s) didn't match Pod's node affinity/selector"
    if not _has_ports(wishes.amounts, room):
        return "node(s) didn't have free ports for the requested pod ports"
    return _full(wishes.amounts, room)


def _allows(wishes: Wishes, node: Node) -> bool:
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in wishes.labels.items()):
        return False
    try:
        return wishes.affinity is None or wishes.affinity.matches(node)
    except SelectorError:
        return False


def _has_ports(amounts: Amounts, room: Room) -> bool:
    wanted = [each for each in amounts if isinstance(each, HostPort)]
    if not wanted:
        return True
    taken = [each for each in room.used if isinstance(each, HostPort)]
    return not any(each.conflicts(other) for each in wanted for other in taken)


def _full(amounts: Amounts, room: Room) -> str:
    allocatable = room.node.status.allocatable
    missing = [
        name
        for name, amount in amounts.items()
        if amount
        and not isinstance(name, HostPort)
        and room.used.get(name, 0) + amount
        > (allocatable[name].nanos if name in allocatable else 0)
    ]
    if not missing:
        return ""
    first = min(missing)
    return "Too many pods" if first == PODS else f"Insufficient {first}"
