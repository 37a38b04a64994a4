"""
One pod, one node: the plain way to place.

Nodes are looked at in the order of how many pods they have, then by name, and the first that can
take the pod with all its claims is taken: the same cluster always gives the same answer. Nodes of
which it is known that they refuse are passed over (see `prospects`). As in Kubernetes, an error of
a claim on any node that is looked at ends the attempt, because trying other nodes cannot put it
right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from dryrack.allocation import Allocated, AllocationError
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.selectors import NAME_FIELD, SelectorError, parse_node_selector
from dryrack.placement.room import Wishes, obstacle

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from dryrack.allocation import Outcome
    from dryrack.kinds.core import Node, NodeSelector, Pod
    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.kinds.selectors import NodeMatcher
    from dryrack.placement.demand import Amounts
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.prospects import Prospects
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
    attempt = _Attempt(Wishes.of(pod), wanted, _reaches(allocated), cluster)
    try:
        return attempt.on_the_only_node() or attempt.anywhere()
    except AllocationError as error:
        return Unplaced(str(error))


@dataclass(frozen=True, slots=True)
class _Attempt:
    wishes: Wishes
    wanted: Sequence[ResourceClaim]
    reaches: Sequence[tuple[NodeSelector, NodeMatcher]]
    cluster: Cluster

    def on_the_only_node(self) -> Placed | None:
        """
        Where the pod or a claim is tied to one node no other can do; whether that one does.

        Pods of daemon sets are: each is a kind of its own, and not worth remembering.
        """
        ties = [*(reach for _, reach in self.reaches), self.wishes.affinity]
        names = [name for tie in ties if tie is not None and (name := _only_node(tie))]
        room = self.cluster.fleet.get(names[0]) if names else None
        tried = "" if room is None else self._tried(room)
        return None if isinstance(tried, str) else tried

    def anywhere(self) -> Placed | Unplaced:
        prospects = self.cluster.fleet.prospects(self._kind())
        for room in prospects.open():
            tried = self._tried(room)
            if isinstance(tried, Placed):
                return tried
            prospects.close(room.name, tried)
        return Unplaced(self._message(prospects))

    def _kind(self) -> Hashable:
        """All of the pod and its claims that decides which nodes do."""
        devices = [
            (claim.spec.devices.requests, claim.spec.devices.constraints) for claim in self.wanted
        ]
        selectors = tuple(selector for selector, _ in self.reaches)
        return self.wishes.kind, _encode(devices), selectors

    def _tried(self, room: Room) -> Placed | str:
        """The pod in the room, or why not."""
        refusal = obstacle(self.wishes, room) or _elsewhere(self.reaches, room)
        if refusal or not self.wanted:
            return refusal or Placed(room.name, self.wishes.amounts, ())
        outcome = self.cluster.allocator.allocate(room.node, self.wanted)
        if isinstance(outcome, Allocated):
            return Placed(room.name, self.wishes.amounts, outcome.results)
        return NO_DEVICES

    def _message(self, prospects: Prospects) -> str:
        nodes = len(self.cluster.fleet)
        if not nodes:
            return "no nodes available to schedule pods"
        refusals = prospects.refusals.items()
        counts = ", ".join(sorted(f"{count} {refusal}" for refusal, count in refusals))
        message = f"0/{nodes} nodes are available: {counts}."
        nearest = prospects.first_refusing(NO_DEVICES)
        return f"{message}{self._why(nearest)}" if nearest is not None else message

    def _why(self, room: Room) -> str:
        outcome = self.cluster.allocator.allocate(room.node, self.wanted)
        assert not isinstance(outcome, Allocated), "what refused would do"
        if not outcome.reasons:
            return ""
        first = outcome.reasons[0]
        return f" Node {room.name}, claim {first.claim}, {first.request}: {first.message}"


def _quantity(value: object) -> str:
    assert isinstance(value, Quantity), "nothing else in a request is no JSON"
    return value.text


_encode = msgspec.json.Encoder(enc_hook=_quantity).encode


def _reaches(allocated: Iterable[ResourceClaim]) -> list[tuple[NodeSelector, NodeMatcher]]:
    """Where claims can be used that are allocated already; some can be used anywhere."""
    found = []
    for claim in allocated:
        allocation = claim.status.allocation
        assert allocation is not None, "a claim that is allocated has its allocation"
        selector = allocation.node_selector
        if selector is not None:
            found.append((selector, parse_node_selector(selector)))
    return found


def _only_node(reach: NodeMatcher) -> str:
    if len(reach.terms) == 1:
        for each in reach.terms[0].fields:
            if each.key == NAME_FIELD and each.operator == "In" and len(each.values) == 1:
                return each.values[0]
    return ""


def _elsewhere(reaches: Iterable[tuple[NodeSelector, NodeMatcher]], room: Room) -> str:
    try:
        there = all(reach.matches(room.node) for _, reach in reaches)
    except SelectorError:
        there = False
    return "" if there else ELSEWHERE
