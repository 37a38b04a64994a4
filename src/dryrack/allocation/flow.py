"""How much can flow through a network of pipes, each of which holds so much and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable


class Flow:
    """A network; joints are whatever can be told apart."""

    def __init__(self) -> None:
        # What each pipe still takes. Against the flow that is what could be turned back.
        self._open: dict[Hashable, dict[Hashable, int]] = {}

    def pipe(self, start: Hashable, end: Hashable, width: int) -> None:
        """Lay a pipe; two between the same joints are as wide as both."""
        forth = self._open.setdefault(start, {})
        forth[end] = forth.get(end, 0) + width
        self._open.setdefault(end, {}).setdefault(start, 0)

    def carries(self, source: Hashable, sink: Hashable, amount: int) -> bool:
        """Whether so much gets from the source to the sink; asks once."""
        while amount > 0:
            path = self._path(source, sink)
            if path is None:
                return False
            amount -= self._fill(path)
        return True

    def _path(self, source: Hashable, sink: Hashable) -> list[tuple[Hashable, Hashable]] | None:
        came_from: dict[Hashable, Hashable] = {source: source}
        queue = [source]
        for joint in queue:
            for neighbour, width in self._open.get(joint, {}).items():
                if width > 0 and neighbour not in came_from:
                    came_from[neighbour] = joint
                    if neighbour == sink:
                        return _pipes(came_from, source, sink)
                    queue.append(neighbour)
        return None

    def _fill(self, path: list[tuple[Hashable, Hashable]]) -> int:
        amount = min(self._open[start][end] for start, end in path)
        for start, end in path:
            self._open[start][end] -= amount
            self._open[end][start] += amount
        return amount


def _pipes(
    came_from: dict[Hashable, Hashable], source: Hashable, sink: Hashable
) -> list[tuple[Hashable, Hashable]]:
    pipes: list[tuple[Hashable, Hashable]] = []
    joint = sink
    while joint != source:
        pipes.append((came_from[joint], joint))
        joint = came_from[joint]
    return pipes
