"""
Who calls for the pools of the whole cluster.

A pool of all nodes is there while at least one node matches. Counting the callers makes a node
that comes or goes cost the same however many there are.
"""

from __future__ import annotations

from collections import Counter


class Callers:
    """What each node calls for, by the numbers that a matcher gives."""

    def __init__(self) -> None:
        self._by_node: dict[str, tuple[int, ...]] = {}
        self._counts: Counter[int] = Counter()

    @property
    def called(self) -> frozenset[int]:
        """What at least one node calls for."""
        return frozenset(self._counts)

    def replace(self, node: str, called: tuple[int, ...]) -> bool:
        """Says what a node calls for now; whether that changes what is called for at all."""
        before = self._by_node.pop(node, ())
        if called:
            self._by_node[node] = called
        if before == called:
            return False
        size = len(self._counts)
        new = sum(number not in self._counts for number in set(called))
        self._counts.update(called)
        self._counts.subtract(before)
        gone = [number for number in set(before) if not self._counts[number]]
        for number in gone:
            del self._counts[number]
        return bool(new or gone) or len(self._counts) != size
