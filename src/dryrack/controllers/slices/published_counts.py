"""
What is published, by source: the counts that a DRAConfig shows, and notes for people.

The publisher enters a row for each key, a node or the pools of the whole cluster, whenever that has
come to be as it should. What a row costs does not depend on how many others there are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from dryrack.hardware import Source, SourceKind


@dataclass(frozen=True, slots=True)
class Published:
    """How much there is."""

    slices: int = 0
    nodes: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """What one node, or one pool of the whole cluster, has from each source."""

    slices: Mapping[Source, int]
    notes: frozenset[tuple[Source, str]] = frozenset()
    is_node: bool = True


_NOTHING = Row({})


class PublishedCounts:
    """Rows, and their sums; listeners are told which source's have changed."""

    def __init__(self) -> None:
        self._rows: dict[Hashable, Row] = {}
        self._slices: Counter[Source] = Counter()
        self._nodes: Counter[Source] = Counter()
        self._notes: dict[Source, Counter[str]] = {}
        self._listeners: list[Callable[[Source], None]] = []
        self._is_idle: Callable[[], bool] = lambda: True

    @property
    def is_settled(self) -> bool:
        """Whether the publisher has nothing left to do."""
        return self._is_idle()

    def settles_when(self, is_idle: Callable[[], bool]) -> None:
        """How to tell that all is published."""
        self._is_idle = is_idle

    def slices_of(self, kind: SourceKind) -> int:
        """How many there are because of all sources of a kind."""
        return sum(count for source, count in self._slices.items() if source.kind is kind)

    @property
    def nodes(self) -> int:
        """How many nodes have any of it."""
        return sum(1 for row in self._rows.values() if row.is_node and row.slices)

    def of(self, source: Source) -> Published:
        return Published(self._slices[source], self._nodes[source])

    def notes_on(self, source: Source) -> tuple[str, ...]:
        """What came up about it, each once."""
        return tuple(sorted(self._notes.get(source, ())))

    def listen(self, listener: Callable[[Source], None]) -> None:
        self._listeners.append(listener)

    def enter(self, key: Hashable, row: Row) -> None:
        """Puts a row in the place of the one that was there; one without slices is none."""
        old = self._rows.get(key, _NOTHING)
        if old == row:
            return
        if row.slices or row.notes:
            self._rows[key] = row
        else:
            self._rows.pop(key, None)
        self._add(old, -1)
        self._add(row, 1)
        for source in sorted({*_sources(old), *_sources(row)}):
            for listener in self._listeners:
                listener(source)

    def _add(self, row: Row, sign: int) -> None:
        for source, slices in row.slices.items():
            self._slices[source] += sign * slices
            self._nodes[source] += sign if row.is_node and slices else 0
        for source, text in row.notes:
            known = self._notes.setdefault(source, Counter())
            known[text] += sign
            if not known[text]:
                del known[text]


def _sources(row: Row) -> set[Source]:
    return {*row.slices, *(source for source, _ in row.notes)}
