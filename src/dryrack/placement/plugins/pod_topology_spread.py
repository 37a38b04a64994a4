"""
PodTopologySpread: spread pods evenly over the domains of a label of nodes.

A domain may have at most `maxSkew` pods more than the domain with the fewest; with fewer domains
than `minDomains`, the fewest count as 0. The pod's node affinity decides which nodes count, and so
do its tolerations if the constraint says so. With `ScheduleAnyway` the constraint only scores.

A pod without constraints has the profile's default ones, for the pods that its Services and its
controller select (see `owner_selectors`). kube-scheduler's own defaults spread over nodes and
zones, and only score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from dryrack.kinds.core import TopologySpreadConstraint
from dryrack.kinds.decode import decode
from dryrack.kinds.paths import get
from dryrack.kinds.selectors import SelectorError, parse_label_selector, untolerated_taint
from dryrack.placement.framework import SCORE_MAX, GroupedCheck, NodeGroups, Plugin
from dryrack.placement.index.pod_counts import EVERY_NODE, PodCounts
from dryrack.placement.node_state import NodeRefusal
from dryrack.placement.plugins.node_affinity import filter_by_selection, selection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.kinds.selectors import LabelMatcher
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args, Check, ClusterScorer
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.occupant import Occupant
    from dryrack.placement.pod_constraints import PodConstraints

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
_BLOCKING = ("NoSchedule", "NoExecute")
_UNEVEN = "node(s) didn't match pod topology spread constraints"
_REMEDY = "raise maxSkew, or add capacity where fewer of the pods run"

# For each constraint the domain of a node, or the number of pods on it; None without the label.
_Domains: TypeAlias = tuple[str | int | None, ...]

_SYSTEM_ACTION = "ScheduleAnyway"
SYSTEM_CONSTRAINTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=_SYSTEM_ACTION),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=_SYSTEM_ACTION),
)


@dataclass(frozen=True, slots=True)
class _Spread:
    """A parsed constraint."""

    topology_key: str
    max_skew: int
    selector: LabelMatcher
    min_domains: int
    honors_affinity: bool
    honors_taints: bool

    @staticmethod
    def of(given: TopologySpreadConstraint, labels: Mapping[str, str]) -> _Spread:
        """Parse a constraint of a pod with these labels; raises `SelectorError`."""
        own = {key: labels[key] for key in given.match_label_keys if key in labels}
        return _Spread(
            given.topology_key,
            given.max_skew,
            parse_label_selector(given.label_selector).narrowed(own),
            1 if given.min_domains is None else given.min_domains,
            given.node_affinity_policy in (None, "Honor"),
            given.node_taints_policy == "Honor",
        )


def _filter(pod: PodConstraints, fleet: Fleet, args: Args) -> Check | None:
    """Check constraints with `DoNotSchedule`."""
    try:
        spreads = _spreads(pod, fleet, args, "DoNotSchedule")
    except SelectorError as error:
        fact = f"a topology spread constraint is invalid: {error}"
        refusal = NodeRefusal(_UNEVEN, fact, "correct it", is_unresolvable=True)
        return lambda _node: refusal
    if not spreads:
        return None
    keys = tuple(each.topology_key for each in spreads)
    limits = []
    for each in spreads:
        domains = _in_domains(each, pod, fleet, keys).domains
        fewest = min(domains.values(), default=0) if len(domains) >= each.min_domains else 0
        most = fewest + each.max_skew - each.selector.matches(pod.pod.metadata.labels)
        limits.append((each.topology_key, domains, most))
    counted = [(e.topology_key, e.selector, e.honors_affinity, e.honors_taints) for e in spreads]
    nodes = (selection(pod), pod.pod.spec.tolerations)
    key = (pod.pod.metadata.namespace, tuple(counted), nodes)

    def group(node: NodeState) -> _Domains:
        """Return the domains of the node, or its number of pods if it is its own domain."""
        labels = node.node.metadata.labels
        return tuple(
            _in_domains(each, pod, fleet, keys).domains.get(node.name, 0)
            if each.topology_key == HOSTNAME and labels.get(HOSTNAME) == node.name
            else labels.get(each.topology_key)
            for each in spreads
        )

    return GroupedCheck(partial(_refusal, limits), key, group)


def required_spreads(
    pod: PodConstraints, fleet: Fleet, args: Args
) -> Sequence[tuple[str, PodCounts]]:
    """Return the constraints of the filter: for each its topology key and the pods by domain."""
    try:
        spreads = _spreads(pod, fleet, args, "DoNotSchedule")
    except SelectorError:
        return ()
    keys = tuple(each.topology_key for each in spreads)
    return [(each.topology_key, _in_domains(each, pod, fleet, keys)) for each in spreads]


def _refusal(
    limits: Sequence[tuple[str, Mapping[str, int], int]], node: NodeState
) -> NodeRefusal | None:
    """Check the constraints, given as the key, the pods by domain, and the allowed number."""
    labels = node.node.metadata.labels
    for key, domains, most in limits:
        if key not in labels:
            words = f"{_UNEVEN} (missing required label)"
            fact = f"the node has no label {key}"
            return NodeRefusal(words, fact, "label the node", is_unresolvable=True)
        pods = domains.get(labels[key], 0)
        if pods > most:
            fact = f"{key}={labels[key]} has {pods} of the pods of the constraint already"
            return NodeRefusal(_UNEVEN, fact, _REMEDY)
    return None


def _score(pod: PodConstraints, fleet: Fleet, args: Args) -> ClusterScorer | None:
    """Score nodes by constraints with `ScheduleAnyway`."""
    try:
        spreads = _spreads(pod, fleet, args, "ScheduleAnyway")
    except SelectorError:
        return None
    if not spreads:
        return None
    # The system defaults spread over nodes without a zone, too.
    needs_keys = bool(pod.pod.spec.topology_spread_constraints) or not _is_system(args)
    keys = tuple(each.topology_key for each in spreads) if needs_keys else ()
    domains = [
        {} if each.topology_key == HOSTNAME else _in_domains(each, pod, fleet, keys).domains
        for each in spreads
    ]
    key = (pod.pod.metadata.namespace, keys, tuple((e.topology_key, e.selector) for e in spreads))

    def group(node: NodeState) -> _Domains | None:
        """Return the domains of the node, or its number of pods; None if it lacks a key."""
        labels = node.node.metadata.labels
        if any(each not in labels for each in keys):
            return None
        return tuple(
            _on_nodes(each, pod, fleet).on(node.name)
            if each.topology_key == HOSTNAME and HOSTNAME in labels
            else labels.get(each.topology_key)
            for each in spreads
        )

    return NodeGroups(key, group, partial(_scores, spreads, domains)).scorer()


def _scores(
    spreads: Sequence[_Spread],
    domains: Sequence[Mapping[str, int]],
    groups: Mapping[_Domains | None, int],
) -> Mapping[_Domains | None, int]:
    """Return higher scores for domains with fewer pods; nodes that lack a key get 0."""
    spread_over = {group: number for group, number in groups.items() if group is not None}
    weights = [
        math.log(
            2
            + (
                sum(spread_over.values())
                if each.topology_key == HOSTNAME
                else len({group[place] for group in spread_over})
            )
        )
        for place, each in enumerate(spreads)
    ]

    def cost(group: _Domains) -> int:
        total = 0.0
        for place, pods, weight, each in zip(group, domains, weights, spreads, strict=True):
            if place is not None:
                here = place if isinstance(place, int) else pods.get(place, 0)
                total += here * weight + (each.max_skew - 1)
        return math.floor(total) + (total % 1 >= 0.5)

    costs = {group: cost(group) for group in spread_over}
    least = min(costs.values(), default=0)
    most = max(costs.values(), default=0)
    scores: dict[_Domains | None, int] = dict.fromkeys(groups, 0)
    for group, each in costs.items():
        scores[group] = SCORE_MAX * (most + least - each) // most if most else SCORE_MAX
    return scores


def _spreads(pod: PodConstraints, fleet: Fleet, args: Args, action: str) -> list[_Spread]:
    """Return the pod's constraints with this action, or the default ones if it has none."""
    own = pod.pod.spec.topology_spread_constraints
    labels = pod.pod.metadata.labels
    if not own and _is_system(args) and action != _SYSTEM_ACTION:
        return []
    given = [each for each in own or _defaults(args) if each.when_unsatisfiable == action]
    if own or not given:
        return [_Spread.of(each, labels) for each in given]
    selector = fleet.owners.of(pod.pod)
    if selector.is_empty:
        return []
    return [replace(_Spread.of(each, labels), selector=selector) for each in given]


def _is_system(args: Args) -> bool:
    return (args.get("defaultingType") or "System") == "System"


def _defaults(args: Args) -> Sequence[TopologySpreadConstraint]:
    if _is_system(args):
        return SYSTEM_CONSTRAINTS
    return [decode(each, TopologySpreadConstraint) for each in get(args, "defaultConstraints", ())]


def _on_nodes(spread: _Spread, pod: PodConstraints, fleet: Fleet) -> PodCounts:
    """Return the pods by node, also on nodes that do not count otherwise."""
    namespace = pod.pod.metadata.namespace
    return fleet.pods.counts(
        (__name__, spread.selector, namespace),
        lambda: PodCounts(
            EVERY_NODE, partial(_is_spread, spread.selector), namespaces=frozenset((namespace,))
        ),
    )


def _in_domains(
    spread: _Spread, pod: PodConstraints, fleet: Fleet, keys: tuple[str, ...]
) -> PodCounts:
    """Return the pods by domain, on the nodes that have all keys and count for the pod."""
    namespace = pod.pod.metadata.namespace
    tolerations = pod.pod.spec.tolerations
    selects = filter_by_selection(pod, fleet, {}) if spread.honors_affinity else None

    def includes(node: NodeState) -> bool:
        labels = node.node.metadata.labels
        taints = node.node.spec.taints
        return not (
            any(key not in labels for key in keys)
            or (selects is not None and selects(node) is not None)
            or (spread.honors_taints and untolerated_taint(taints, tolerations, _BLOCKING))
        )

    nodes = (
        selection(pod) if spread.honors_affinity else None,
        tolerations if spread.honors_taints else None,
    )
    return fleet.pods.counts(
        (__name__, spread.selector, namespace, spread.topology_key, keys, nodes),
        lambda: PodCounts(
            spread.topology_key,
            partial(_is_spread, spread.selector),
            namespaces=frozenset((namespace,)),
            includes=includes,
        ),
    )


def _is_spread(selector: LabelMatcher, occupant: Occupant) -> bool:
    """Return True if the pod counts; as in kube-scheduler, an empty selector counts none."""
    if occupant.is_terminating or selector.is_empty:
        return False
    return selector.matches(occupant.labels)


POD_TOPOLOGY_SPREAD = Plugin(
    "PodTopologySpread",
    filter=_filter,
    score=_score,
    sees_cluster=True,
    sign=lambda _pod: None,
)
