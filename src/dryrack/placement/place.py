"""
One pod, one node: the plain way to place.

Nodes are looked at in the order of how many pods they have, then by name, and the first that can
take the pod with all its claims is taken: the same cluster always gives the same answer. Nodes of
which it is known that they refuse are passed over (see `prospects`). As in Kubernetes, an error of
a claim on any node that is looked at ends the attempt, because trying other nodes cannot put it
right. Where a search is given up, other nodes are tried: theirs may be easier.

`decide` does not take long: it asks a few nodes and stops where a long search would be made. Who
calls it again, after other work, or after the search, goes on with the cluster as it is by then,
because nodes that refused are remembered. `place` is the same without pauses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from dryrack.allocation import Allocated, AllocationError, Search, Undecided, claim_name
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.selectors import NAME_FIELD, SelectorError, parse_node_selector
from dryrack.placement.prospects import Unmet
from dryrack.placement.room import Wishes, obstacle

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from dryrack.allocation import Outcome, Reason, Unsatisfiable
    from dryrack.kinds.core import Node, NodeSelector, Pod
    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.kinds.selectors import NodeMatcher
    from dryrack.placement.demand import Amounts
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.prospects import Prospects
    from dryrack.placement.room import Room

# What kube-scheduler says of a node whose devices do not do.
NO_DEVICES = "cannot allocate all claims"
# Kubernetes counts seconds, the search here counts steps.
NOT_DECIDED = "timed out trying to allocate devices"
ELSEWHERE = "resourceclaim not available on the node"

# Each takes half a second. It is one for all nodes that are alike, and one more for a node that
# changes meanwhile; further nodes count as undecided.
SEARCHES_MAX = 8
# To ask a node for devices takes up to two milliseconds.
_NODES_A_TURN = 8


class Allocates(Protocol):
    """Gives devices out; raises `AllocationError`."""

    def begin(self, node: Node, claims: Sequence[ResourceClaim]) -> Outcome | Search: ...


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


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Not all nodes have been asked; a search has to end before one of them can say."""

    search: Search | None = None


@dataclass(frozen=True, slots=True)
class _Refused:
    """A node that does not take the pod."""

    words: str
    # What was decided about its devices, if they do not do.
    decision: Unsatisfiable | None = None


def place(
    pod: Pod, wanted: Sequence[ResourceClaim], allocated: Sequence[ResourceClaim], cluster: Cluster
) -> Placed | Unplaced:
    """Where the pod goes with the claims that it wants and those that it has already."""
    searches_left = SEARCHES_MAX
    while True:
        outcome = decide(pod, wanted, allocated, cluster, searches_left=searches_left)
        if not isinstance(outcome, Unfinished):
            return outcome
        if outcome.search is not None:
            outcome.search.finish()
            searches_left -= 1


def decide(
    pod: Pod,
    wanted: Sequence[ResourceClaim],
    allocated: Sequence[ResourceClaim],
    cluster: Cluster,
    *,
    searches_left: int = SEARCHES_MAX,
) -> Placed | Unplaced | Unfinished:
    """The same as far as it is known soon."""
    attempt = _Attempt(Wishes.of(pod), wanted, _reaches(allocated), cluster, searches_left)
    try:
        return attempt.run()
    except AllocationError as error:
        return Unplaced(str(error))


@dataclass(frozen=True, slots=True)
class _Attempt:
    wishes: Wishes
    wanted: Sequence[ResourceClaim]
    reaches: Sequence[tuple[NodeSelector, NodeMatcher]]
    cluster: Cluster
    searches_left: int

    def run(self) -> Placed | Unplaced | Unfinished:
        only = self._only_room()
        tried = self._tried(only) if only is not None else None
        if isinstance(tried, Placed | Unfinished):
            return tried
        return self._anywhere({only.name: tried} if only is not None and tried is not None else {})

    def _only_room(self) -> Room | None:
        """
        Where the pod or a claim is tied to one node no other can do.

        Pods of daemon sets are: each is a kind of its own, and not worth remembering.
        """
        ties = [*(reach for _, reach in self.reaches), self.wishes.affinity]
        names = [name for tie in ties if tie is not None and (name := _only_node(tie))]
        return self.cluster.fleet.get(names[0]) if names else None

    def _anywhere(self, refused: Mapping[str, _Refused]) -> Placed | Unplaced | Unfinished:
        """The first of the nodes that takes the pod, if none of those that refused."""
        prospects = self.cluster.fleet.prospects(self._kind())
        first: Unsatisfiable | None = None
        asked = 0
        for room in prospects.open():
            if asked == _NODES_A_TURN:
                return Unfinished()
            tried = refused.get(room.name) or self._tried(room)
            if isinstance(tried, Placed | Unfinished):
                return tried
            prospects.close(room.name, tried.words)
            asked += tried.words in (NO_DEVICES, NOT_DECIDED)
            first = first or tried.decision
        return Unplaced(self._message(prospects, first))

    def _kind(self) -> Hashable:
        """All of the pod and its claims that decides which nodes do."""
        devices = [
            (claim.spec.devices.requests, claim.spec.devices.constraints) for claim in self.wanted
        ]
        selectors = tuple(selector for selector, _ in self.reaches)
        return self.wishes.kind, _encode(devices), selectors

    def _tried(self, room: Room) -> Placed | _Refused | Unfinished:
        """The pod in the room, or why not."""
        refusal = obstacle(self.wishes, room) or _elsewhere(self.reaches, room)
        if refusal:
            return _Refused(refusal)
        if not self.wanted:
            return Placed(room.name, self.wishes.amounts, ())
        outcome = self.cluster.allocator.begin(room.node, self.wanted)
        if isinstance(outcome, Allocated):
            return Placed(room.name, self.wishes.amounts, outcome.results)
        if isinstance(outcome, Search) and self.searches_left > 0:
            return Unfinished(outcome)
        if isinstance(outcome, Search | Undecided):
            return _Refused(NOT_DECIDED)
        return _Refused(NO_DEVICES, outcome)

    def _message(self, prospects: Prospects, first: Unsatisfiable | None) -> str:
        nodes = len(self.cluster.fleet)
        if not nodes:
            return "no nodes available to schedule pods"
        refusals = prospects.refusals.items()
        counts = ", ".join(sorted(f"{count} {refusal}" for refusal, count in refusals))
        unmet, undecided = self._unmet(prospects, first), self._undecided(prospects)
        return f"0/{nodes} nodes are available: {counts}.{unmet}{undecided}"

    def _unmet(self, prospects: Prospects, first: Unsatisfiable | None) -> str:
        """Why devices do not do on a node that refused for that, the first if nobody was told."""
        room = prospects.first_refusing(NO_DEVICES)
        if room is None:
            return ""
        names = tuple(map(claim_name, self.wanted))
        if prospects.told is None or not prospects.told.serves(names):
            decision = first or self._asked(room)
            prospects.told = Unmet.of(decision.node, names, decision.reasons)
        return prospects.told.to(names)

    def _asked(self, room: Room) -> Unsatisfiable | Undecided:
        """What a node has against these claims that refused others like them."""
        outcome = self.cluster.allocator.begin(room.node, self.wanted)
        assert not isinstance(outcome, Allocated), "what refused would do"
        if isinstance(outcome, Search):
            # How it ended is forgotten, and would be the same.
            return Undecided(room.name, "", tuple(map(claim_name, self.wanted)))
        return outcome

    def _undecided(self, prospects: Prospects) -> str:
        """What there is to say about a search that was given up, which is the same for all."""
        room = prospects.first_refusing(NOT_DECIDED)
        if room is None:
            return ""
        reasons = Undecided(room.name, "", tuple(map(claim_name, self.wanted))).reasons
        return _shown(room.name, reasons[0])


def _shown(node: str, reason: Reason) -> str:
    about = f", {reason.request}" if reason.request else ""
    return f" Node {node}, claim {reason.claim}{about}: {reason.message}"


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
