"""
All nodes of a cluster, with what is left on each.

Each pod stands on at most one node, once. Demands of pods on a node that nobody knows (any longer)
are remembered, because the two are told by different watches. For every kind of pod that was placed
lately the fleet remembers where such pods may still find room (see `prospects`), and is told what
happened that could help.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.core import Node
from dryrack.placement.node_queue import Prospects
from dryrack.placement.node_state import Room

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from dryrack.placement.demand import Amounts

# Pods come from few templates at a time. A kind that is met again costs one look at every node.
KINDS_MAX = 64
_NOWHERE = Node()


class Fleet:
    """Rooms by the name of their node."""

    def __init__(self) -> None:
        self._rooms: dict[str, Room] = {}
        # What pods on nodes demand that are not there.
        self._elsewhere: dict[str, Amounts] = {}
        self._places: dict[Hashable, tuple[str, Amounts]] = {}
        self._prospects: dict[Hashable, Prospects] = {}

    def __len__(self) -> int:
        return len(self._rooms)

    def get(self, name: str) -> Room | None:
        """The room of a node that is there."""
        return self._rooms.get(name)

    def rooms(self) -> Sequence[Room]:
        """All that are there, by name."""
        return [self._rooms[name] for name in sorted(self._rooms)]

    def put(self, node: Node) -> None:
        """The node is there, as it is now."""
        name = node.metadata.name
        room = self._rooms.get(name)
        if room is None:
            self._rooms[name] = Room(node, self._elsewhere.pop(name, {}))
        else:
            room.node = node
        self.reopen((name,))

    def drop(self, name: str) -> None:
        """The node is gone; what pods on it demand is remembered."""
        room = self._rooms.pop(name, None)
        if room is not None and room.used:
            self._elsewhere[name] = room.used
        # So that nobody counts it among those that refuse.
        self.reopen((name,))

    def stand(self, pod: Hashable, node: str, amounts: Amounts) -> None:
        """The pod is on the node from now on, and nowhere else."""
        if self._places.get(pod) == (node, amounts):
            return
        self.leave(pod)
        self.take(node, amounts)
        self._places[pod] = (node, amounts)

    def leave(self, pod: Hashable) -> bool:
        """The pod is on no node; whether it was on one."""
        node, amounts = self._places.pop(pod, ("", {}))
        if node:
            self.give_back(node, amounts)
        return bool(node)

    def take(self, name: str, amounts: Amounts) -> None:
        """A pod with these demands is on the node from now on."""
        self._books(name).take(amounts)

    def give_back(self, name: str, amounts: Amounts) -> None:
        """It is no longer."""
        books = self._books(name)
        books.give_back(amounts)
        if name in self._elsewhere and not books.used:
            del self._elsewhere[name]
        self.reopen((name,))

    def _books(self, name: str) -> Room:
        room = self._rooms.get(name)
        return room if room is not None else Room(_NOWHERE, self._elsewhere.setdefault(name, {}))

    def prospects(self, kind: Hashable) -> Prospects:
        """Where pods of a kind may find room; of the kinds that were asked about last."""
        found = self._prospects.pop(kind, None)
        if found is None:
            found = Prospects(self._rooms)
        self._prospects[kind] = found
        if len(self._prospects) > KINDS_MAX:
            del self._prospects[next(iter(self._prospects))]
        return found

    def reopen(self, names: Iterable[str] | None) -> None:
        """Something happened that could help those whom these nodes refused; None is all nodes."""
        if names is None:
            self.reopen_all()
            return
        there = tuple(names)
        for each in self._prospects.values():
            each.reopen(there)

    def reopen_all(self) -> None:
        """Something happened that could help anybody anywhere."""
        self._prospects.clear()
