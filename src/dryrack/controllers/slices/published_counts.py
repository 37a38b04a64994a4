"""
Counts of what is published, by source: the numbers that a DRAConfig shows, and notes for people.

The publisher sets a row for each key (a node, or the pools of the whole cluster) whenever its
slices are as wanted. The cost of a row does not depend on the number of the others.

A publisher with a shard also counts the slices that other shards have written, because the status
of a DRAConfig is about the whole cluster. The metrics of a process are about its own shard.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.hardware import source_label

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from dryrack.hardware import Source, SourceKind


@dataclass(frozen=True, slots=True)
class Published:
    """The number of slices of one source, and of nodes that have them."""

    slices: int = 0
    nodes: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """The slices and notes of one node, or of the pools of the whole cluster, by source."""

    slices: Mapping[Source, int]
    notes: frozenset[tuple[Source, str]] = frozenset()
    is_node: bool = True


_EMPTY = Row({})


class PublishedCounts:
    """Rows and their sums; listeners get the sources whose sums have changed."""

    def __init__(self) -> None:
        self._rows: dict[Hashable, Row] = {}
        self._slices: Counter[Source] = Counter()
        self._nodes: Counter[Source] = Counter()
        self._notes: dict[Source, Counter[str]] = {}
        self._elsewhere: dict[str, Counter[str]] = {}
        self._slices_elsewhere: Counter[str] = Counter()
        self._nodes_elsewhere: Counter[str] = Counter()
        self._listeners: list[Callable[[Source | None], None]] = []
        self.is_settled: Callable[[], bool] = lambda: True
        """Returns True if the publisher has nothing left to do; the publisher sets it."""

    @property
    def nodes(self) -> int:
        """The number of nodes that have published slices."""
        return sum(1 for row in self._rows.values() if row.is_node and row.slices)

    def slices_of(self, kind: SourceKind) -> int:
        """Return the number of slices from all sources of a kind."""
        return sum(count for source, count in self._slices.items() if source.kind is kind)

    def of(self, source: Source) -> Published:
        """Return the counts of a source, with those of other shards."""
        label = source_label(source)
        return Published(
            self._slices[source] + self._slices_elsewhere[label],
            self._nodes[source] + self._nodes_elsewhere[label],
        )

    def notes_on(self, source: Source) -> tuple[str, ...]:
        """Return the notes on a source, each once."""
        return tuple(sorted(self._notes.get(source, ())))

    def listen(self, listener: Callable[[Source | None], None]) -> None:
        """Call the listener for sources whose counts change; None for those of other shards."""
        self._listeners.append(listener)

    def set_elsewhere(self, node: str, slices: Counter[str]) -> None:
        """Replace the slices that another shard has written for a node, by the label of sources."""
        old = self._elsewhere.pop(node, Counter())
        if slices:
            self._elsewhere[node] = slices
        if old == slices:
            return
        self._slices_elsewhere.subtract(old)
        self._slices_elsewhere.update(slices)
        self._nodes_elsewhere.subtract(old.keys())
        self._nodes_elsewhere.update(slices.keys())
        for listener in self._listeners:
            listener(None)

    def set_row(self, key: Hashable, row: Row) -> None:
        """Replace the row of a key; a row without slices and notes removes it."""
        old = self._rows.get(key, _EMPTY)
        if old == row:
            return
        if row.slices or row.notes:
            self._rows[key] = row
        else:
            self._rows.pop(key, None)
        sources = {*old.slices, *row.slices}
        for each, sign in ((old, -1), (row, 1)):
            for source, slices in each.slices.items():
                self._slices[source] += sign * slices
                self._nodes[source] += sign if each.is_node and slices else 0
            for source, text in each.notes:
                sources.add(source)
                texts = self._notes.setdefault(source, Counter())
                texts[text] += sign
                if not texts[text]:
                    del texts[text]
        for source in sorted(sources):
            for listener in self._listeners:
                listener(source)
