"""
VolumeBinding and VolumeZone: nodes that the volumes of a pod can be used on.

A claim that is bound to no volume chooses no nodes, unless it is bound when its pod has one: then
it needs a free volume there, or one that can be made (`placement.index.volume_matching`). Whether
the pod has to wait is not a question to nodes (see `placement.index.volumes`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.selectors import parse_node_selector
from dryrack.placement.framework import Plugin
from dryrack.placement.index.volume_matching import Unbindable, VolumeOffers
from dryrack.placement.node_state import NodeRefusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.core import PersistentVolume
    from dryrack.kinds.selectors import NodeMatcher
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args, Check
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
    offers = VolumeOffers(fleet.volumes, fleet.volumes.waiting(pod.pod))
    if not reaches and not offers:
        return None

    def check(node: NodeState) -> NodeRefusal | None:
        first = next(filter(None, (_beyond(*each, node) for each in reaches.items())), None)
        found = offers.on(node.node.metadata)
        if not isinstance(found, Unbindable):
            return first
        if first is not None:
            return first._replace(further=(_UNBINDABLE,))
        return NodeRefusal(_UNBINDABLE, found.fact, found.remedy, is_unresolvable=True)

    return check


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
