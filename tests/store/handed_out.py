"""
Detects changes in place of objects that a store handed out.

Readers in the process get the stored object, not a copy, so a change in place changes what all
other readers see, without a revision. So every object is compared with the JSON that it had when
it was written.
"""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.store import Store, Stored

if TYPE_CHECKING:
    from collections.abc import Iterator

# The last ones: a test that writes more than this tests something else.
_OBJECTS_MAX = 2048


class HandedOut:
    """The last objects that were written, and their JSON at that moment."""

    def __init__(self) -> None:
        self._written: deque[tuple[str, bytes, Any]] = deque(maxlen=_OBJECTS_MAX)

    def note(self, written: Any) -> None:
        if isinstance(written, Stored):
            self._written.append((repr(written), written.json, written.object))

    def changed(self) -> list[str]:
        """Return the objects that differ from the JSON that was written."""
        return [
            f"{name} was changed after it was written; copy what you change"
            for name, json, obj in self._written
            if msgspec.json.decode(json) != obj
        ]


@contextmanager
def watched_for_changes() -> Iterator[HandedOut]:
    """Record every write to any store until the end of the block."""
    handed_out = HandedOut()
    put = Store.put
    delete = Store.delete

    def noting_put(self: Store, *args: Any, **options: Any) -> Any:
        written = put(self, *args, **options)
        handed_out.note(written)
        return written

    def noting_delete(self: Store, *args: Any, **options: Any) -> Any:
        written = delete(self, *args, **options)
        handed_out.note(written)
        return written

    Store.put, Store.delete = noting_put, noting_delete  # type: ignore[method-assign]  # undone below
    try:
        yield handed_out
    finally:
        Store.put, Store.delete = put, delete  # type: ignore[method-assign]  # as it was
