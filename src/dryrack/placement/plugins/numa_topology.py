"""
NUMATopology: pods that require or prefer one NUMA node of a machine.

Nodes describe their NUMA nodes by labels of kubenexus:

    numa.kubenexus.io/node-count: "2"
    numa.kubenexus.io/node-0-cpus: "32"        numa.kubenexus.io/node-0-memory: 128Gi

A pod has its policy in the annotation `scheduling.kubenexus.io/numa-policy`: `single-numa-node`
(other nodes refuse it), `best-effort` (such nodes are preferred) or `none`. Training and batch
pods are best-effort by default. The free capacity of each NUMA node is not reported: the plugin
assumes that each pod on the node uses the NUMA node with the most free CPU.

A node without such labels is one NUMA node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.base.numbers import read_int64
from dryrack.kinds.quantity import Quantity, QuantityError
from dryrack.placement.framework import SCORE_MAX, NodeScorer, Plugin
from dryrack.placement.node_state import NodeRefusal
from dryrack.placement.plugins.workloads import is_packed

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dryrack.kinds.core import Node, Pod
    from dryrack.placement.demand import Amounts
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args, Check
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import PodConstraints

POLICY = "scheduling.kubenexus.io/numa-policy"
SINGLE = "single-numa-node"
BEST_EFFORT = "best-effort"
NONE = "none"
_COUNT = "numa.kubenexus.io/node-count"
_PARTS = {"cpu": "cpus", "memory": "memory"}
_WORDS = "node(s) had no NUMA node that the pod fits in"
_CELLS_MAX = 64

# The amounts of a NUMA node, by resource.
Cell = dict[str, int]


def policy_of(pod: Pod) -> str:
    """Return the policy of the pod, or its default."""
    policy = pod.metadata.annotations.get(POLICY) or pod.metadata.labels.get(POLICY, "")
    if policy in (SINGLE, BEST_EFFORT, NONE):
        return policy
    return BEST_EFFORT if is_packed(pod.metadata) else NONE


def cells_of(node: Node) -> list[Cell]:
    """Return the NUMA nodes of a node by its labels; empty without usable labels."""
    labels = node.metadata.labels
    count = read_int64(labels.get(_COUNT, "")) or 0
    cells: list[Cell] = []
    for number in range(count if count <= _CELLS_MAX else 0):
        cell: Cell = {}
        for resource, part in _PARTS.items():
            label = labels.get(f"numa.kubenexus.io/node-{number}-{part}")
            try:
                if label is not None:
                    cell[resource] = Quantity.parse(label).nanos
            except QuantityError:
                continue
        cells.append(cell)
    return cells


def _free(node: NodeState) -> list[Cell]:
    """Return the free amounts of each NUMA node after all pods of the node, the oldest first."""
    cells = cells_of(node.node)
    if not cells:
        return cells
    for occupant in sorted(node.occupants.values(), key=lambda each: (each.started, each.name)):
        roomiest = max(cells, key=lambda cell: cell.get("cpu", 0))
        for resource in _PARTS:
            if resource in roomiest:
                roomiest[resource] -= occupant.amounts.get(resource, 0)
    return cells


def _fits_one(cells: list[Cell], amounts: Amounts) -> bool:
    return any(all(amounts.get(name, 0) <= free for name, free in cell.items()) for cell in cells)


def _filter(pod: PodConstraints, _fleet: Fleet, _args: Args) -> Check | None:
    if policy_of(pod.pod) != SINGLE:
        return None
    amounts = pod.amounts

    def check(node: NodeState) -> NodeRefusal | None:
        cells = _free(node)
        if not cells or _fits_one(cells, amounts):
            return None
        never = not _fits_one(cells_of(node.node), amounts)
        fact = f"none of its {len(cells)} NUMA nodes has capacity for the whole pod"
        remedy = f"request less, or set {POLICY}: {BEST_EFFORT}"
        return NodeRefusal(_WORDS, fact, remedy, is_unresolvable=never)

    return check


def _score(pod: PodConstraints, _fleet: Fleet, _args: Args) -> NodeScorer | None:
    if policy_of(pod.pod) == NONE:
        return None
    amounts = pod.amounts

    def score(node: NodeState) -> int:
        cells = _free(node)
        return SCORE_MAX if not cells or _fits_one(cells, amounts) else 0

    return NodeScorer(score)


def _sign(pod: PodConstraints) -> Hashable:
    return frozenset(pod.amounts.items()), policy_of(pod.pod)


NUMA_TOPOLOGY = Plugin("NUMATopology", filter=_filter, score=_score, sign=_sign)
