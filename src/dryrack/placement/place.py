"""
One pod, one node: the plain way to place.

Nodes are looked at in the order of the fleet, and the first that can take the pod with all its
claims is taken: the same cluster always gives the same answer. As in Kubernetes, an error of a
claim on any node that is looked at ends the attempt, because trying other nodes cannot put it
right.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dryrack.allocation import Allocated, AllocationError
from dryrack.kinds.selectors import NAME_FIELD, SelectorError, parse_node_selector
from dryrack.placement.room import Wishes, obstacle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dryrack.allocation import Outcome, Unsatisfiable
    from dryrack.kinds.core import Node, Pod
    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.kinds.selectors import NodeMatcher
    from dryrack.placement.demand import Amounts
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.room import Room

# What kube-scheduler says of a node whose devices do not do.
NO_DEVICES = "cannot allocate all claims"
ELSEWHERE = "resourceclaim not available on the node"


class Allocates(Protocol):
    """Gives devices out; raises `AllocationError`."""

    def allocate(self, node: Node, claims: Sequence[ResourceClaim]) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a pod is placed in."""

    fleet: Fleet
    allocator: Allocates


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
    wishes = Wishes.of(pod)
    reaches = _reaches(allocated)
    refusals: Counter[str] = Counter()
    nearest: Unsatisfiable | None = None
    for room in _candidates(cluster.fleet, reaches):
        refusal = obstacle(wishes, room) or _elsewhere(reaches, room)
        if refusal:
            refusals[refusal] += 1
            continue
        try:
            outcome = cluster.allocator.allocate(room.node, wanted)
        except AllocationError as error:
            return Unplaced(str(error))
        if isinstance(outcome, Allocated):
            return Placed(room.name, wishes.amounts, outcome.results)
        refusals[NO_DEVICES] += 1
        nearest = nearest or outcome
    return Unplaced(_message(len(cluster.fleet), refusals, nearest))


def _reaches(allocated: Iterable[ResourceClaim]) -> list[NodeMatcher]:
    """Where claims can be used that are allocated already; some can be used anywhere."""
    found = []
    for claim in allocated:
        allocation = claim.status.allocation
        assert allocation is not None, "a claim that is allocated has its allocation"
        if allocation.node_selector is not None:
            found.append(parse_node_selector(allocation.node_selector))
    return found


def _candidates(fleet: Fleet, reaches: Sequence[NodeMatcher]) -> Iterator[Room]:
    """All rooms; if a claim is tied to one node, that node first: no other can do."""
    names = [name for reach in reaches if (name := _only_node(reach))]
    first = fleet.get(names[0]) if names else None
    if first is not None:
        yield first
    yield from (room for room in fleet if room is not first)


def _only_node(reach: NodeMatcher) -> str:
    if len(reach.terms) == 1:
        for each in reach.terms[0].fields:
            if each.key == NAME_FIELD and each.operator == "In" and len(each.values) == 1:
                return each.values[0]
    return ""


def _elsewhere(reaches: Iterable[NodeMatcher], room: Room) -> str:
    try:
        there = all(reach.matches(room.node) for reach in reaches)
    except SelectorError:
        there = False
    return "" if there else ELSEWHERE


def _message(nodes: int, refusals: Counter[str], nearest: Unsatisfiable | None) -> str:
    if not nodes:
        return "no nodes available to schedule pods"
    counts = ", ".join(sorted(f"{count} {refusal}" for refusal, count in refusals.items()))
    message = f"0/{nodes} nodes are available: {counts}."
    if nearest is None or not nearest.reasons:
        return message
    first = nearest.reasons[0]
    return f"{message} Node {nearest.node}, claim {first.claim}, {first.request}: {first.message}"
