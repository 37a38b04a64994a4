"""
VolumeBinding and VolumeZone: nodes that the volumes of a pod can be used on.

A claim that is bound to no volume chooses no nodes, unless it is bound when its pod has one: then
its class says where a volume can be made, and the claim whether a node was chosen before. Whether
the pod has to wait is not a question to nodes (see `placement.index.volumes`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.selectors import parse_node_selector
from dryrack.placement.framework import Plugin
from dryrack.placement.index.volumes import SELECTED_NODE
from dryrack.placement.node_state import NodeRefusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.core import PersistentVolume, PersistentVolumeClaim
    from dryrack.kinds.selectors import NodeMatcher
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args, Check
    from dryrack.placement.index.volumes import WaitingClass
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import PodConstraints

_ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
_ZONE = "node(s) had no available volume zone"
_UNBINDABLE = "node(s) didn't find available persistent volumes to bind"

# Old names of labels, which volumes still have, and the new ones of nodes.
_ZONES = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
_BETWEEN_ZONES = "__"


def _bound(pod: PodConstraints, fleet: Fleet, _args: Args) -> Check | None:
    if not pod.pod.spec.volumes:
        return None
    reaches = {
        volume.metadata.name: parse_node_selector(volume.spec.node_affinity.required)
        for volume in fleet.volumes.of(pod.pod)
        if volume.spec.node_affinity is not None and volume.spec.node_affinity.required
    }
    waiting = tuple(fleet.volumes.waiting(pod.pod))
    if not reaches and not waiting:
        return None

    def check(node: NodeState) -> NodeRefusal | None:
        first = next(filter(None, (_beyond(*each, node) for each in reaches.items())), None)
        second = next(filter(None, (_unbindable(*each, node) for each in waiting)), None)
        return first._replace(further=(_UNBINDABLE,)) if first and second else first or second

    return check


def _unbindable(
    claim: PersistentVolumeClaim, waits: WaitingClass, node: NodeState
) -> NodeRefusal | None:
    """Why no volume can be made for the claim on a node."""
    chosen, name = claim.metadata.annotations.get(SELECTED_NODE), claim.metadata.name
    if chosen is not None and chosen != node.node.metadata.name:
        fact, remedy = f"is being made on node {chosen}", f"wait for it, or delete claim {name}"
    elif not waits.reaches(node.node.metadata.labels):
        fact, remedy = "can be made on other nodes alone", "see allowedTopologies of its class"
    else:
        return None
    about = f"the volume of PersistentVolumeClaim {name}"
    return NodeRefusal(_UNBINDABLE, f"{about} {fact}", remedy, is_unresolvable=True)


def _beyond(volume: str, matcher: NodeMatcher, node: NodeState) -> NodeRefusal | None:
    labels = node.node.metadata.labels
    if any(term.matches(labels, "") for term in matcher.terms):
        return None
    fact = f"PersistentVolume {volume} is for other nodes"
    return NodeRefusal(_ELSEWHERE, fact, "use a node that has the volume", is_unresolvable=True)


def _in_zone(pod: PodConstraints, fleet: Fleet, _args: Args) -> Check | None:
    if not pod.pod.spec.volumes:
        return None
    zones = [
        (volume.metadata.name, key, values)
        for volume in fleet.volumes.of(pod.pod)
        for key, values in _zones(volume)
    ]
    if not zones:
        return None

    def check(node: NodeState) -> NodeRefusal | None:
        labels = node.node.metadata.labels
        if not labels.keys() & _ZONES.keys():
            # In a cluster of one zone nodes need not say which.
            return None
        for volume, key, values in zones:
            if labels.get(key, labels.get(_ZONES[key])) not in values:
                fact = f"PersistentVolume {volume} is in {key}={' or '.join(sorted(values))}"
                remedy = "use a node of that zone"
                return NodeRefusal(_ZONE, fact, remedy, is_unresolvable=True)
        return None

    return check


def _zones(volume: PersistentVolume) -> Iterator[tuple[str, frozenset[str]]]:
    for key in _ZONES:
        values = [
            each.strip() for each in volume.metadata.labels.get(key, "").split(_BETWEEN_ZONES)
        ]
        # A list with a hole in it is none.
        if all(values):
            yield key, frozenset(values)


# Claims are bound, and volumes come and go, whatever happens on nodes.
VOLUME_BINDING = Plugin("VolumeBinding", filter=_bound, sees_cluster=True)
VOLUME_ZONE = Plugin("VolumeZone", filter=_in_zone, sees_cluster=True)
