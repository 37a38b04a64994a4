"""NodeName and NodeAffinity: nodes that a pod names or selects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.kinds.core import NodeAffinity, NodeSelector
from dryrack.kinds.decode import decode
from dryrack.kinds.selectors import (
    NAME_FIELD,
    SelectorError,
    parse_node_selector,
    strict_node_selector,
)
from dryrack.placement.framework import NodeGroups, Plugin, normalize_groups
from dryrack.placement.node_state import NodeRefusal

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args, Check, ClusterScorer
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import PodConstraints

_NOT_SELECTED = NodeRefusal(
    "node(s) didn't match Pod's node affinity/selector",
    "the pod's node selector or affinity excludes the node",
    "label the node",
    is_unresolvable=True,
)

_NOT_ADDED = NodeRefusal(
    "node(s) didn't match scheduler-enforced node affinity",
    "the affinity that the scheduler's profile adds excludes the node",
    "label the node, or use another profile",
    is_unresolvable=True,
)

_NONE_ADDED = NodeAffinity()


def _filter_by_name(pod: PodConstraints, _fleet: Fleet, _args: Args) -> Check | None:
    name = pod.pod.spec.node_name
    if not name:
        return None
    words = "node(s) didn't match the requested node name"
    fact = f"the pod requests node {name}"
    refusal = NodeRefusal(words, fact, "remove nodeName", is_unresolvable=True)
    return lambda node: None if node.name == name else refusal


def filter_by_selection(pod: PodConstraints, _fleet: Fleet, args: Args) -> Check | None:
    """Check the node selector and the required affinity."""
    selector = pod.pod.spec.node_selector
    affinity = pod.affinity
    required = _added_affinity(args).required_during_scheduling_ignored_during_execution
    added = None if required is None else strict_node_selector(required)
    if not selector and affinity is None and added is None:
        return None

    def check(node: NodeState) -> NodeRefusal | None:
        labels = node.node.metadata.labels
        if added is not None and not added.matches(node.node):
            return _NOT_ADDED
        for key, value in selector.items():
            has = labels.get(key)
            if has != value:
                state = "does not have the label" if has is None else f"has {has!r}"
                fact = f"the pod's nodeSelector requires {key}: {value}, and the node {state}"
                return changed(_NOT_SELECTED, _fact=fact)
        try:
            allowed = affinity is None or affinity.matches(node.node)
        except SelectorError as error:
            fact = f"the pod's node affinity is invalid: {error}"
            return changed(_NOT_SELECTED, _fact=fact, remedy="correct the affinity")
        return None if allowed else _NOT_SELECTED

    return check


def _score(pod: PodConstraints, _fleet: Fleet, args: Args) -> ClusterScorer | None:
    """Score nodes by the weights of the preferences that they match."""
    affinity = pod.pod.spec.affinity.node_affinity if pod.pod.spec.affinity else None
    preferences = [
        (term, each.weight)
        for part in (affinity, _added_affinity(args))
        if part is not None
        for each in part.preferred_during_scheduling_ignored_during_execution
        for term in parse_node_selector(NodeSelector(node_selector_terms=(each.preference,))).terms
    ]
    if not preferences:
        return None

    def weight_of(node: NodeState) -> int:
        labels = node.node.metadata.labels
        return sum(weight for term, weight in preferences if term.matches(labels, node.name))

    return NodeGroups(tuple(preferences), weight_of, normalize_groups).scorer()


def _added_affinity(args: Args) -> NodeAffinity:
    """Return the affinity that the profile adds to every pod."""
    added = args.get("addedAffinity")
    return decode(added, NodeAffinity) if added else _NONE_ADDED


def _names(pod: PodConstraints) -> frozenset[str] | None:
    """Return the nodes that the terms of the required affinity name, if each term names nodes."""
    terms = pod.required_affinity.node_selector_terms if pod.required_affinity else ()
    if not terms:
        return None
    names: set[str] = set()
    for term in terms:
        fields = [each for each in term.match_fields if each.key == NAME_FIELD]
        named = [set(each.values) for each in fields if each.operator == "In"]
        if not named:
            return None
        names |= set.intersection(*named)
    return frozenset(names)


def selection(pod: PodConstraints) -> Hashable:
    """Return a key of pods that select the same nodes."""
    return tuple(sorted(pod.pod.spec.node_selector.items())), pod.required_affinity


NODE_NAME = Plugin(
    "NodeName", filter=_filter_by_name, sign=lambda pod: pod.pod.spec.node_name, of_template=True
)
NODE_AFFINITY = Plugin(
    "NodeAffinity",
    filter=filter_by_selection,
    names=_names,
    score=_score,
    sign=selection,
    of_template=True,
)
