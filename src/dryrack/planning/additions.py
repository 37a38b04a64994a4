"""
Nodes that a plan adds to a cluster while it is made, and removes at its end.

    with Additions(cluster, profile) as additions:
        state = additions.add(new)

Nothing else may change the cluster meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace as changed

from dryrack.allocation import LiveAllocator
from dryrack.placement import (
    SEARCHES_MAX,
    MemberPlaced,
    Placed,
    Simulation,
    Unfinished,
    decide,
    place_on,
)

if TYPE_CHECKING:
    from dryrack.placement import Cluster, Member, NodeState, Profile, Unplaced
    from dryrack.planning.model import NewNode


@dataclass(frozen=True, slots=True)
class _Added:
    node: str
    slices: tuple[str, ...]


class Additions:
    """The nodes that are added, with their devices and the pods of DaemonSets."""

    def __init__(self, cluster: Cluster, profile: Profile) -> None:
        self._cluster = cluster
        self._profile = profile
        assert isinstance(cluster.allocator, LiveAllocator), "plans need slices that can change"
        self._allocator: LiveAllocator = cluster.allocator
        self._added: list[_Added] = []
        self._simulation = Simulation(cluster)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._simulation.rewind()
        while self._added:
            self.drop_last()

    def drop_last(self) -> None:
        """Remove the node that was added last; no pods may have been placed on it since."""
        fleet = self._cluster.fleet
        last = self._added.pop()
        for name in last.slices:
            fleet.reopen(self._allocator.drop_slice(name))
        fleet.drop(last.node)
        self._allocator.forget_node(last.node)

    def add(self, new: NewNode) -> NodeState:
        """Add the node, and place the pods of DaemonSets on it that fit."""
        fleet = self._cluster.fleet
        name = new.node.metadata.name
        fleet.put(new.node)
        names = []
        for number, each in enumerate(new.slices):
            # The names of slices are those of the API server, which these have not seen.
            metadata = changed(each.metadata, name=f"{name}-{number}.planned")
            names.append(metadata.name)
            fleet.reopen(self._allocator.put_slice(changed(each, metadata=metadata)))
        self._added.append(_Added(name, tuple(names)))
        for member in new.daemons:
            self.place(member, name)
        state = fleet.get(name)
        assert state is not None, "the node was added"
        return state

    def place(self, member: Member, node: str) -> MemberPlaced | None:
        """Put the pod on the node, and return its devices; None if the node refuses it."""
        placed = place_on(
            node,
            member.pod,
            member.wanted,
            member.allocated,
            self._cluster,
            extended=member.extended,
            profile=self._profile,
        )
        if not isinstance(placed, Placed):
            return None
        outcome = MemberPlaced(member, placed.node, placed.amounts, placed.given)
        outcome.add_to(self._simulation)
        return outcome

    def mark(self) -> int:
        """Return the number of steps so far, to rewind to it."""
        return self._simulation.mark()

    def rewind(self, steps: int) -> None:
        """Remove the pods that were placed after the mark; the nodes stay."""
        self._simulation.rewind(steps)

    def place_as(self, placed: MemberPlaced) -> None:
        """Put a pod on its node with devices that were allocated already."""
        placed.add_to(self._simulation)


def place_anywhere(member: Member, cluster: Cluster, profile: Profile) -> Placed | Unplaced:
    """Return the node that the scheduler chooses for the pod, however long it takes."""
    searches_left = SEARCHES_MAX
    while True:
        outcome = decide(
            member.pod,
            member.wanted,
            member.allocated,
            cluster,
            extended=member.extended,
            profile=profile,
            searches_left=searches_left,
        )
        if not isinstance(outcome, Unfinished):
            return outcome
        if outcome.search is not None:
            outcome.search.finish()
            searches_left -= 1
