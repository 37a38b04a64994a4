"""NodeUnschedulable and TaintToleration: nodes that keep off pods which do not tolerate them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.core import Taint
from dryrack.kinds.selectors import tolerates_taint, untolerated_taint
from dryrack.placement.framework import Plugin
from dryrack.placement.node_state import NodeRefusal

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args, Check
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import PodConstraints

_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_CORDON = NodeRefusal(
    "node(s) were unschedulable",
    "the node is cordoned",
    "uncordon the node",
    is_unresolvable=True,
)
_BLOCKING = ("NoSchedule", "NoExecute")


def _cordoned(pod: PodConstraints, _fleet: Fleet, _args: Args) -> Check | None:
    if any(tolerates_taint(each, _CORDONED) for each in pod.pod.spec.tolerations):
        return None
    return lambda node: _CORDON if node.node.spec.unschedulable else None


def _tainted(pod: PodConstraints, _fleet: Fleet, _args: Args) -> Check:
    tolerations = pod.pod.spec.tolerations

    def check(node: NodeState) -> NodeRefusal | None:
        if not node.node.spec.taints:
            return None
        taint = untolerated_taint(node.node.spec.taints, tolerations, _BLOCKING)
        if taint is None:
            return None
        fact = f"the node is tainted {taint.key}:{taint.effect}"
        words = "node(s) had untolerated taint(s)"
        return NodeRefusal(words, fact, "tolerate the taint", is_unresolvable=True)

    return check


def _tolerations(pod: PodConstraints) -> Hashable:
    return pod.pod.spec.tolerations


NODE_UNSCHEDULABLE = Plugin("NodeUnschedulable", filter=_cordoned, sign=_tolerations)
TAINT_TOLERATION = Plugin("TaintToleration", filter=_tainted, sign=_tolerations)
