"""NodeName and NodeAffinity: the nodes that a pod names or selects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.selectors import SelectorError
from dryrack.placement.framework import Plugin
from dryrack.placement.node_state import NodeRefusal

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args, Check
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import PodConstraints

_NOT_SELECTED = NodeRefusal(
    "node(s) didn't match Pod's node affinity/selector",
    "the pod's node selector or affinity excludes the node",
    "label the node",
    is_unresolvable=True,
)


def _named(pod: PodConstraints, _fleet: Fleet, _args: Args) -> Check | None:
    name = pod.pod.spec.node_name
    if not name:
        return None
    words = "node(s) didn't match the requested node name"
    fact = f"the pod is bound to node {name}"
    refusal = NodeRefusal(words, fact, "remove nodeName", is_unresolvable=True)
    return lambda node: None if node.name == name else refusal


def _selected(pod: PodConstraints, _fleet: Fleet, _args: Args) -> Check | None:
    selector, affinity = pod.pod.spec.node_selector, pod.affinity
    if not selector and affinity is None:
        return None

    def check(node: NodeState) -> NodeRefusal | None:
        labels = node.node.metadata.labels
        if any(labels.get(key) != value for key, value in selector.items()):
            return _NOT_SELECTED
        try:
            allowed = affinity is None or affinity.matches(node.node)
        except SelectorError as error:
            fact = f"the pod's node affinity makes no sense: {error}"
            return _NOT_SELECTED._replace(fact=fact, remedy="correct the affinity")
        return None if allowed else _NOT_SELECTED

    return check


def _wishes(pod: PodConstraints) -> Hashable:
    return tuple(sorted(pod.pod.spec.node_selector.items())), pod.required_affinity


NODE_NAME = Plugin("NodeName", filter=_named, sign=lambda pod: pod.pod.spec.node_name)
NODE_AFFINITY = Plugin("NodeAffinity", filter=_selected, sign=_wishes)
