"""
VolumeBinding and VolumeZone: nodes that can use the volumes of a pod.

An unbound claim does not restrict the nodes, unless it is bound when its pod has a node: then it
needs a free volume there, or a new one (`placement.index.volume_matching`). Whether the pod has to
wait for a claim does not depend on nodes (see `placement.index.volumes`).

If the scheduler of the release scores storage capacity, a node is better the larger its volumes are
for the claims. Capacity for volumes that have yet to be provisioned has no score.
"""

from __future__ import annotations

from collections import Counter
from math import floor
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.kinds.selectors import parse_node_selector
from dryrack.placement.framework import SCORE_MAX, ClusterScorer, Plugin
from dryrack.placement.index.volume_matching import NO_STORAGE, Unbindable, VolumeOffers
from dryrack.placement.index.volumes import class_of
from dryrack.placement.node_state import NodeRefusal
from dryrack.placement.plugins.resource_scores import broken_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.core import PersistentVolume
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args, Check
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import PodConstraints

_ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
_ZONE = "node(s) had no available volume zone"
_UNBINDABLE = "node(s) didn't find available persistent volumes to bind"

# The labels of volumes, which may have old names, and the labels of nodes.
_ZONES = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
_BETWEEN_ZONES = "__"
# The score by utilization if the arguments have no shape: the emptier, the better.
_SHAPE: Sequence[Args] = ({"utilization": 0, "score": 10}, {"utilization": 100, "score": 0})


def _filter_by_volumes(pod: PodConstraints, fleet: Fleet, _args: Args) -> Check | None:
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
        labels = node.node.metadata.labels
        refusal = None
        for volume, matcher in reaches.items():
            if not any(term.matches(labels, "") for term in matcher.terms):
                fact = f"PersistentVolume {volume} is for other nodes"
                remedy = "use a node that has the volume"
                refusal = NodeRefusal(_ELSEWHERE, fact, remedy, is_unresolvable=True)
                break
        offered = offers.on(node.node.metadata)
        if not isinstance(offered, Unbindable):
            return refusal
        if refusal is not None:
            return changed(refusal, further=(_UNBINDABLE,))
        return NodeRefusal(_UNBINDABLE, offered.fact, offered.remedy, is_unresolvable=True)

    return check


def _score_by_capacity(pod: PodConstraints, fleet: Fleet, args: Args) -> ClusterScorer | None:
    """Score nodes by how much of the volumes that the claims would get there stays unused."""
    if not fleet.behaviour.scores_storage_capacity or not pod.pod.spec.volumes:
        return None
    volumes = fleet.volumes
    offers = VolumeOffers(volumes, volumes.waiting(pod.pod))
    if not offers.has_candidates:
        return None
    line = broken_line(args.get("shape") or _SHAPE)

    def score(node: NodeState) -> int:
        offered = offers.on(node.node.metadata)
        requested: Counter[str] = Counter()
        capacity: Counter[str] = Counter()
        for key, name in () if isinstance(offered, Unbindable) else offered.items():
            if name:
                volume = volumes.volumes[name]
                claim = volumes.claims[key]
                asked = claim.spec.resources.requests.get("storage", NO_STORAGE)
                requested[class_of(volume)] += asked.value()
                size = volume.spec.capacity.get("storage", NO_STORAGE)
                capacity[class_of(volume)] += size.value()
        if not capacity:
            return 0
        used = (
            SCORE_MAX if requested[each] > size or not size else requested[each] * SCORE_MAX // size
            for each, size in capacity.items()
        )
        return floor(sum(map(line, used)) / len(capacity) + 0.5)

    return ClusterScorer(lambda nodes: [score(node) for node in nodes])


def _filter_by_zone(pod: PodConstraints, fleet: Fleet, _args: Args) -> Check | None:
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
            # In a cluster with one zone nodes need no label.
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
        # A list with an empty element is invalid.
        if all(values):
            yield key, frozenset(values)


# Claims and volumes change without events on nodes.
VOLUME_BINDING = Plugin(
    "VolumeBinding", filter=_filter_by_volumes, score=_score_by_capacity, sees_cluster=True
)
VOLUME_ZONE = Plugin("VolumeZone", filter=_filter_by_zone, sees_cluster=True)
