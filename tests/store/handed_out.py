"""
Objects of a store that somebody changes in place.

Whoever is in the process is given the object that is stored, and not a copy; who changes it changes
what all others read, at no revision. Such a change makes no noise, so every object is held against
the JSON that it had when it was written.
"""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.store import Store, Stored

if TYPE_CHECKING:
    from collections.abc import Iterator

# The last ones: a test that writes more than this is about something else.
_OBJECTS_MAX = 2048


class HandedOut:
    """The objects that were written lately, and their JSON at that moment."""

    def __init__(self) -> None:
        self._written: deque[tuple[str, bytes, Any]] = deque(maxlen=_OBJECTS_MAX)

    def note(self, written: Any) -> None:
        if isinstance(written, Stored):
            self._written.append((repr(written), written.json, written.object))

    def changed(self) -> list[str]:
        """Those that are not what was written any more, or never were what their JSON says."""
        return [
            f"{name} was changed after it was written; copy what you change"
            for name, json, obj in self._written
            if msgspec.json.decode(json) != obj
        ]


@contextmanager
def watched_for_changes() -> Iterator[HandedOut]:
    """Notes every write to any store until the end of the block."""
    noted = HandedOut()
    put = Store.put
    delete = Store.delete

    def noting_put(self: Store, *args: Any, **options: Any) -> Any:
        written = put(self, *args, **options)
        noted.note(written)
        return written

    def noting_delete(self: Store, *args: Any, **options: Any) -> Any:
        written = delete(self, *args, **options)
        noted.note(written)
        return written

    Store.put, Store.delete = noting_put, noting_delete  # type: ignore[method-assign]  # undone below
    try:
        yield noted
    finally:
        Store.put, Store.delete = put, delete  # type: ignore[method-assign]  # as it was
