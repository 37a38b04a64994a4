"""How far each key has come: in somebody's hands, as it should be, or failing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Seen = tuple[object, ...]
"""All that a decision was made from; the same things make the same decision."""


class Progress:
    """A key that is as it should be is remembered by what that was judged from."""

    def __init__(self) -> None:
        self._settled: dict[str, Seen] = {}
        self._busy: set[str] = set()
        self._open: set[str] = set()
        self._failing: dict[str, str] = {}

    @property
    def failing(self) -> Mapping[str, str]:
        """The keys whose last attempt failed, and why."""
        return self._failing

    @property
    def is_idle(self) -> bool:
        """Whether nobody has anything in hand, and nothing that was begun is left."""
        return not self._busy and not self._open

    def is_settled(self, key: str, seen: Seen) -> bool:
        return self._settled.get(key) == seen

    def begin(self, key: str) -> None:
        self._busy.add(key)

    def leave_open(self, key: str) -> None:
        """There is something to be written."""
        self._settled.pop(key, None)
        self._open.add(key)

    def settle(self, key: str, seen: Seen) -> None:
        """All is as it should be."""
        self._open.discard(key)
        self._failing.pop(key, None)
        self._settled[key] = seen

    def forget(self, key: str) -> None:
        """There is no such thing any more."""
        self._open.discard(key)
        self._failing.pop(key, None)
        self._settled.pop(key, None)

    def end(self, key: str) -> None:
        self._busy.discard(key)
        self._failing.pop(key, None)

    def fail(self, key: str, text: str) -> bool:
        """Whether that is new."""
        self._busy.discard(key)
        is_new = self._failing.get(key) != text
        self._failing[key] = text
        return is_new
