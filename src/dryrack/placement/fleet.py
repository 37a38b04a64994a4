"""
All nodes of a cluster, in the order in which they are tried.

Nodes with the fewest pods come first, and the name decides a tie. The order is kept, not made for
every pod: a pod that comes or goes moves one node. Demands of pods on a node that nobody knows
(any longer) are remembered, because the two are told by different watches.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from dryrack.kinds.core import Node
from dryrack.placement.room import Room

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.placement.demand import Amounts


class Fleet:
    """
    Rooms by the name of their node.

    Invariant: the order has one entry, of its present number of pods, for each node that is there.
    """

    def __init__(self) -> None:
        self._rooms: dict[str, Room] = {}
        self._there: set[str] = set()
        self._order: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Room]:
        return (self._rooms[name] for _, name in self._order)

    def get(self, name: str) -> Room | None:
        """The room of a node that is there."""
        return self._rooms[name] if name in self._there else None

    def put(self, node: Node) -> None:
        """The node is there, as it is now."""
        name = node.metadata.name
        room = self._room(name)
        room.node = node
        if name not in self._there:
            self._there.add(name)
            insort(self._order, (room.pods, name))

    def drop(self, name: str) -> None:
        """The node is gone; pods that stand in its books stay there."""
        if name in self._there:
            room = self._rooms[name]
            self._remove(room.pods, name)
            self._there.discard(name)
            room.node = Node()
            self._forget(name)

    def take(self, name: str, amounts: Amounts) -> None:
        """A pod with these demands is on the node from now on."""
        room = self._room(name)
        before = room.pods
        room.take(amounts)
        self._move(room, before, name)

    def give_back(self, name: str, amounts: Amounts) -> None:
        """It is no longer."""
        room = self._room(name)
        before = room.pods
        room.give_back(amounts)
        self._move(room, before, name)
        self._forget(name)

    def _room(self, name: str) -> Room:
        return self._rooms.setdefault(name, Room(Node()))

    def _forget(self, name: str) -> None:
        if name not in self._there and not self._rooms[name].used:
            del self._rooms[name]

    def _move(self, room: Room, before: int, name: str) -> None:
        if name in self._there and room.pods != before:
            self._remove(before, name)
            insort(self._order, (room.pods, name))

    def _remove(self, pods: int, name: str) -> None:
        del self._order[bisect_left(self._order, (pods, name))]
