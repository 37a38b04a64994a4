"""
NUMATopology: pods that have to be within one NUMA node of a machine, or would rather be.

Nodes tell by labels how they are built, as kubenexus has them:

    numa.kubenexus.io/node-count: "2"
    numa.kubenexus.io/node-0-cpus: "32"        numa.kubenexus.io/node-0-memory: 128Gi

A pod says what it wants by the annotation `scheduling.kubenexus.io/numa-policy`: `single-numa-node`
(no other node takes it), `best-effort` (such nodes are better) or `none`. Training and batch are
best-effort if they say nothing. What is free in each NUMA node nobody tells: the pods on the node
are laid out one after the other, each where most is free.

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

# What is free in a NUMA node, by resource.
Cell = dict[str, int]


def policy_of(pod: Pod) -> str:
    said = pod.metadata.annotations.get(POLICY) or pod.metadata.labels.get(POLICY, "")
    return said if said in (SINGLE, BEST_EFFORT, NONE) else _usual(pod)


def _usual(pod: Pod) -> str:
    return BEST_EFFORT if is_packed(pod.metadata) else NONE


def cells_of(node: Node) -> list[Cell]:
    """The NUMA nodes of a node, as large as its labels say; none if they say nothing of use."""
    labels = node.metadata.labels
    count = read_int64(labels.get(_COUNT, "")) or 0
    return [_cell(node, number) for number in range(count)] if count <= _CELLS_MAX else []


def _cell(node: Node, number: int) -> Cell:
    found: Cell = {}
    for resource, part in _PARTS.items():
        label = node.metadata.labels.get(f"numa.kubenexus.io/node-{number}-{part}")
        try:
            if label is not None:
                found[resource] = Quantity.parse(label).nanos
        except QuantityError:
            continue
    return found


def _free(node: NodeState) -> list[Cell]:
    """What is left of each NUMA node when the pods are laid out one after the other."""
    cells = cells_of(node.node)
    if not cells:
        return cells
    for occupant in sorted(node.occupants.values(), key=lambda each: (each.started, each.name)):
        roomiest = max(cells, key=lambda cell: cell.get("cpu", 0))
        for resource in _PARTS:
            if resource in roomiest:
                roomiest[resource] -= occupant.amounts.get(resource, 0)
    return cells


def _fitting(cells: list[Cell], amounts: Amounts) -> list[Cell]:
    return [
        cell for cell in cells if all(amounts.get(name, 0) <= free for name, free in cell.items())
    ]


def _single(pod: PodConstraints, _fleet: Fleet, _args: Args) -> Check | None:
    if policy_of(pod.pod) != SINGLE:
        return None
    amounts = pod.amounts

    def check(node: NodeState) -> NodeRefusal | None:
        cells = _free(node)
        if not cells or _fitting(cells, amounts):
            return None
        never = not _fitting(cells_of(node.node), amounts)
        fact = f"none of its {len(cells)} NUMA nodes has capacity for the whole pod"
        remedy = f"request less, or set {POLICY}: {BEST_EFFORT}"
        return NodeRefusal(_WORDS, fact, remedy, is_unresolvable=never)

    return check


def _aligned(pod: PodConstraints, _fleet: Fleet, _args: Args) -> NodeScorer | None:
    if policy_of(pod.pod) == NONE:
        return None
    amounts = pod.amounts

    def score(node: NodeState) -> int:
        cells = _free(node)
        return SCORE_MAX if not cells or _fitting(cells, amounts) else 0

    return NodeScorer(score)


def _sign(pod: PodConstraints) -> Hashable:
    return frozenset(pod.amounts.items()), policy_of(pod.pod)


NUMA_TOPOLOGY = Plugin("NUMATopology", filter=_single, score=_aligned, sign=_sign)
