"""NodeUnschedulable and TaintToleration: cordoned and tainted nodes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dryrack.kinds.core import Taint
from dryrack.kinds.selectors import tolerates_taint, untolerated_taint
from dryrack.placement.framework import NodeGroups, Plugin, normalize_groups
from dryrack.placement.node_state import NodeRefusal

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args, Check, ClusterScorer
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import PodConstraints

TOLERATE = "tolerate the taint"
_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_CORDON = NodeRefusal(
    "node(s) were unschedulable",
    "the node is cordoned",
    "uncordon the node",
    is_unresolvable=True,
)
_BLOCKING = ("NoSchedule", "NoExecute")
_AVOIDED = "PreferNoSchedule"


def _filter_cordoned(pod: PodConstraints, _fleet: Fleet, _args: Args) -> Check | None:
    if any(tolerates_taint(each, _CORDONED) for each in pod.pod.spec.tolerations):
        return None
    return lambda node: _CORDON if node.node.spec.unschedulable else None


def _filter_tainted(pod: PodConstraints, _fleet: Fleet, _args: Args) -> Check:
    tolerations = pod.pod.spec.tolerations

    def check(node: NodeState) -> NodeRefusal | None:
        if not node.node.spec.taints:
            return None
        taint = untolerated_taint(node.node.spec.taints, tolerations, _BLOCKING)
        if taint is None:
            return None
        fact = f"the node is tainted {taint.key}:{taint.effect}"
        words = "node(s) had untolerated taint(s)"
        return NodeRefusal(words, fact, TOLERATE, is_unresolvable=True)

    return check


def _score(pod: PodConstraints, fleet: Fleet, _args: Args) -> ClusterScorer | None:
    """Prefer nodes with fewer PreferNoSchedule taints that the pod does not tolerate."""
    if not fleet.nodes.avoided:
        return None
    tolerations = pod.pod.spec.tolerations

    def count_taints(node: NodeState) -> int:
        taints = [each for each in node.node.spec.taints if each.effect == _AVOIDED]
        return sum(not any(tolerates_taint(t, each) for t in tolerations) for each in taints)

    return NodeGroups(tolerations, count_taints, partial(normalize_groups, reverse=True)).scorer()


def _tolerations(pod: PodConstraints) -> Hashable:
    return pod.pod.spec.tolerations


NODE_UNSCHEDULABLE = Plugin(
    "NodeUnschedulable", filter=_filter_cordoned, sign=_tolerations, of_template=True
)
TAINT_TOLERATION = Plugin(
    "TaintToleration", filter=_filter_tainted, score=_score, sign=_tolerations
)
