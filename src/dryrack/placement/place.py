"""
One pod, one node: the plain way to place.

Nodes are looked at in the order of how many pods they have, then by name, and the first that can
take the pod with all its claims is taken: the same cluster always gives the same answer. As in
Kubernetes, an error of a claim on any node that is looked at ends the attempt, because trying
other nodes cannot put it right.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.allocation import Allocated, AllocationError
from dryrack.kinds.selectors import matches_node
from dryrack.placement.demand import demand
from dryrack.placement.room import obstacle

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dryrack.allocation import Allocator, Unsatisfiable
    from dryrack.kinds.core import Pod
    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.placement.demand import Amounts
    from dryrack.placement.room import Room

# What kube-scheduler says of a node whose devices do not do.
NO_DEVICES = "cannot allocate all claims"
ELSEWHERE = "resourceclaim not available on the node"


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a pod is placed in."""

    rooms: Sequence[Room]
    allocator: Allocator


@dataclass(frozen=True, slots=True)
class Placed:
    """The pod goes to the node, and its claims get these, in the order they were given."""

    node: str
    amounts: Amounts
    allocations: tuple[AllocationResult, ...]


@dataclass(frozen=True, slots=True)
class Unplaced:
    """No node takes the pod; `message` says it as kube-scheduler would, and then why."""

    message: str


def place(
    pod: Pod, wanted: Sequence[ResourceClaim], allocated: Sequence[ResourceClaim], cluster: Cluster
) -> Placed | Unplaced:
    """Where the pod goes with the claims that it wants and those that it has already."""
    amounts = demand(pod)
    refusals: Counter[str] = Counter()
    nearest: Unsatisfiable | None = None
    for room in sorted(cluster.rooms, key=lambda each: (each.pods, each.name)):
        refusal = obstacle(pod, amounts, room) or _elsewhere(allocated, room)
        if refusal:
            refusals[refusal] += 1
            continue
        try:
            outcome = cluster.allocator.allocate(room.node, wanted)
        except AllocationError as error:
            return Unplaced(str(error))
        if isinstance(outcome, Allocated):
            return Placed(room.name, amounts, outcome.results)
        refusals[NO_DEVICES] += 1
        nearest = nearest or outcome
    return Unplaced(_message(len(cluster.rooms), refusals, nearest))


def _elsewhere(allocated: Iterable[ResourceClaim], room: Room) -> str:
    for claim in allocated:
        allocation = claim.status.allocation
        assert allocation is not None, "a claim that is allocated has its allocation"
        if not matches_node(allocation.node_selector, room.node):
            return ELSEWHERE
    return ""


def _message(nodes: int, refusals: Counter[str], nearest: Unsatisfiable | None) -> str:
    if not nodes:
        return "no nodes available to schedule pods"
    counts = ", ".join(sorted(f"{count} {refusal}" for refusal, count in refusals.items()))
    message = f"0/{nodes} nodes are available: {counts}."
    if nearest is None or not nearest.reasons:
        return message
    first = nearest.reasons[0]
    return f"{message} Node {nearest.node}, claim {first.claim}, {first.request}: {first.message}"
