"""
Incremental view maintenance: rows by key, of which only the marked ones are computed again.

A change marks the keys that it may concern; `take` computes some of them and returns the rows that
differ or are gone. A row that is equal to its predecessor is not a change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

Key = TypeVar("Key")
Row = TypeVar("Row")


@dataclass(slots=True)
class RowChanges(Generic[Key, Row]):
    """Changed rows and their predecessors; None means that the row does not exist."""

    before: dict[Key, Row | None] = field(default_factory=dict)
    after: dict[Key, Row | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.after)

    @property
    def changed(self) -> tuple[Row, ...]:
        return tuple(row for row in self.after.values() if row is not None)

    @property
    def gone(self) -> tuple[Key, ...]:
        return tuple(key for key, row in self.after.items() if row is None)


class Buckets(Generic[Key, Row]):
    """Values by name within a bucket; an empty bucket is removed."""

    def __init__(self) -> None:
        self._buckets: dict[Key, dict[str, Row]] = {}

    def __iter__(self) -> Iterator[Key]:
        return iter(self._buckets)

    def of(self, key: Key) -> Mapping[str, Row]:
        return self._buckets.get(key, {})

    def put(self, key: Key, name: str, value: Row | None) -> None:
        """Set the value of a name; None removes the name."""
        bucket = self._buckets.setdefault(key, {})
        if value is not None:
            bucket[name] = value
        else:
            bucket.pop(name, None)
            if not bucket:
                del self._buckets[key]


class Rows(Generic[Key, Row]):
    """Rows by key; `compute` returns None for a row that does not exist."""

    def __init__(self, compute: Callable[[Key], Row | None]) -> None:
        self._compute = compute
        self._rows: dict[Key, Row] = {}
        self._marked: dict[Key, None] = {}

    @property
    def current(self) -> Mapping[Key, Row]:
        """The rows as of the last `take`."""
        return self._rows

    @property
    def is_marked(self) -> bool:
        return bool(self._marked)

    def mark(self, *keys: Key) -> None:
        for key in keys:
            self._marked[key] = None

    def mark_all(self, keys: Iterable[Key]) -> None:
        self.mark(*self._rows, *keys)

    def take(self, count_max: int) -> RowChanges[Key, Row]:
        """Compute the first marked rows and return those that changed."""
        changes: RowChanges[Key, Row] = RowChanges()
        for key in list(self._marked)[:count_max]:
            del self._marked[key]
            old = self._rows.get(key)
            new = self._compute(key)
            if new == old:
                continue
            changes.before[key] = old
            changes.after[key] = new
            if new is None:
                del self._rows[key]
            else:
                self._rows[key] = new
        return changes
