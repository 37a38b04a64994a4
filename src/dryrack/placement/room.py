"""
A node and what is left on it.

`obstacle` answers with the words that kube-scheduler uses for the same refusal, so that people
find what they know; the first obstacle is enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.kinds.core import Taint
from dryrack.kinds.selectors import SelectorError, pod_allows_node, untolerated_taint
from dryrack.placement.demand import PODS, Amounts

if TYPE_CHECKING:
    from dryrack.kinds.core import Node, Pod

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
            self.used[name] = self.used.get(name, 0) - amount


def obstacle(pod: Pod, amounts: Amounts, room: Room) -> str:
    """Why the pod cannot run there, leaving devices aside; empty if nothing is in the way."""
    if pod.spec.node_name not in ("", room.name):
        return "node(s) didn't match the requested node name"
    return (
        _cordon(pod, room.node)
        or _taint(pod, room.node)
        or _choice(pod, room)
        or _full(amounts, room)
    )


def _cordon(pod: Pod, node: Node) -> str:
    if not node.spec.unschedulable:
        return ""
    tolerated = untolerated_taint((_CORDONED,), pod.spec.tolerations, _BLOCKING) is None
    return "" if tolerated else "node(s) were unschedulable"


def _taint(pod: Pod, node: Node) -> str:
    taint = untolerated_taint(node.spec.taints, pod.spec.tolerations, _BLOCKING)
    return "" if taint is None else "node(s) had untolerated taint(s)"


def _choice(pod: Pod, room: Room) -> str:
    try:
        allowed = pod_allows_node(pod, room.node)
    except SelectorError:
        allowed = False
    return "" if allowed else "node(s) didn't match Pod's node affinity/selector"


def _full(amounts: Amounts, room: Room) -> str:
    allocatable = room.node.status.allocatable
    for name in sorted(amounts):
        there = allocatable[name].nanos if name in allocatable else 0
        if amounts[name] and room.used.get(name, 0) + amounts[name] > there:
            return "Too many pods" if name == PODS else f"Insufficient {name}"
    return ""
