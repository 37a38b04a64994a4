"""
WorkloadAware, TopologySpread and Backfill: kubenexus' scores by the kind of workload.

The kind is `workload.kubenexus.io/type`, a label or an annotation of the pod. Training and batch
pods are packed, so that large parts of the cluster stay free for gangs. Other pods are spread over
nodes (WorkloadAware) and over zones, by the pods with the same labels there (TopologySpread).
Backfill places preemptible pods on the most idle nodes, and others on the least idle ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.placement.framework import SCORE_MAX, ClusterScorer, NodeScorer, Plugin
from dryrack.placement.index.pod_counts import PodCounts

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from dryrack.kinds.meta import ObjectMeta
    from dryrack.placement.demand import Amounts
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.occupant import Occupant
    from dryrack.placement.pod_constraints import PodConstraints

WORKLOAD_TYPE = "workload.kubenexus.io/type"
_PACKED = ("training", "batch")
_BACKFILL = "scheduling.kubenexus.io/backfill"
_PREEMPTIBLE = "workload.kubenexus.io/preemptible"
# Pods with at most this priority may be preempted, as in kubenexus.
BACKFILL_PRIORITY_MAX = 100
_ZONE = "topology.kubernetes.io/zone"
_RESERVED_TIER = "tenant.kubenexus.io/reserved-tier"
_TIERS = ("bronze", "silver", "gold")
_TIER_PENALTY = 15
_WEIGHTS: Mapping[str, float] = {"cpu": 0.35, "memory": 0.35}
_GPU_WEIGHT = 0.30
# Labels that a controller sets on pods of one revision, or on one pod of a set.
_OF_ONE_REVISION = (
    "pod-template-hash",
    "controller-revision-hash",
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/job-completion-index",
)


def is_backfill(labels: Mapping[str, str], priority: int | None) -> bool:
    """Return True if a gang may preempt the pod, by its labels or by its priority."""
    if "true" in (labels.get(_BACKFILL), labels.get(_PREEMPTIBLE)):
        return True
    return priority is not None and 0 < priority <= BACKFILL_PRIORITY_MAX


def is_packed(metadata: ObjectMeta) -> bool:
    """Return True for workloads that are packed rather than spread."""
    kind = metadata.labels.get(WORKLOAD_TYPE) or metadata.annotations.get(WORKLOAD_TYPE, "")
    return kind.lower() in _PACKED


def _weight(name: str) -> float:
    return _GPU_WEIGHT if name.endswith("/gpu") else _WEIGHTS.get(name, 0.0)


def utilization(node: NodeState, more: Amounts) -> float:
    """Return the used share of CPU, memory and GPUs with these additional amounts, 0 to 1."""
    counted = [
        (_weight(name), min(1.0, (node.used.get(name, 0) + more.get(name, 0)) / total))
        for name, total in node.allocatable.items()
        if total and _weight(name)
    ]
    whole = sum(weight for weight, _ in counted)
    return sum(weight * used for weight, used in counted) / whole if whole else 0.0


def _workload_aware(pod: PodConstraints, _fleet: Fleet, _args: Args) -> NodeScorer:
    packs = is_packed(pod.pod.metadata)
    amounts = pod.amounts

    def score(node: NodeState) -> int:
        used = round(SCORE_MAX * utilization(node, amounts))
        return used if packs else SCORE_MAX - used

    return NodeScorer(score)


def _backfill(pod: PodConstraints, _fleet: Fleet, _args: Args) -> NodeScorer:
    amounts = pod.amounts
    may_go = is_backfill(pod.pod.metadata.labels, pod.pod.spec.priority)

    def score(node: NodeState) -> int:
        used = round(SCORE_MAX * utilization(node, amounts))
        if not may_go:
            return used
        # Nodes that are reserved for a tenant are avoided, those of a higher tier more.
        tier = node.node.metadata.labels.get(_RESERVED_TIER, "")
        rank = _TIERS.index(tier) + 1 if tier in _TIERS else 0
        return max(0, SCORE_MAX - used - _TIER_PENALTY * rank)

    return NodeScorer(score)


def _zone_spread(pod: PodConstraints, fleet: Fleet, _args: Args) -> ClusterScorer | None:
    metadata = pod.pod.metadata
    labels = {key: each for key, each in metadata.labels.items() if key not in _OF_ONE_REVISION}
    if is_packed(metadata) or not labels:
        return None

    def is_like(other: Occupant) -> bool:
        return all(other.labels.get(key) == value for key, value in labels.items())

    def count() -> PodCounts:
        return PodCounts(_ZONE, is_like, namespaces=frozenset((metadata.namespace,)))

    key = ("TopologySpread", metadata.namespace, tuple(sorted(labels.items())))
    counts = fleet.pods.counts(key, count)

    def scores(nodes: Sequence[NodeState]) -> Sequence[int]:
        here = [counts.domains.get(node.node.metadata.labels.get(_ZONE, ""), 0) for node in nodes]
        total = sum(counts.domains.values())
        return [SCORE_MAX - SCORE_MAX * each // total if total else SCORE_MAX for each in here]

    return ClusterScorer(scores)


def _sign(pod: PodConstraints) -> Hashable:
    metadata = pod.pod.metadata
    may_go = is_backfill(metadata.labels, pod.pod.spec.priority)
    return frozenset(pod.amounts.items()), is_packed(metadata), may_go


def _sign_spread(pod: PodConstraints) -> Hashable:
    metadata = pod.pod.metadata
    return metadata.namespace, tuple(sorted(metadata.labels.items())), is_packed(metadata)


WORKLOAD_AWARE = Plugin("WorkloadAware", score=_workload_aware, sign=_sign)
TOPOLOGY_SPREAD = Plugin("TopologySpread", score=_zone_spread, sign=_sign_spread)
BACKFILL = Plugin("Backfill", score=_backfill, sign=_sign)
