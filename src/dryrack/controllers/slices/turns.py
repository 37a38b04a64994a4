"""
In which order the pools of a node are written, when one of them cannot be.

Writes of a key end with the first that is refused. A pool that the server refuses again and again
would keep those after it from being written at all, so it moves to the end of the line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.controllers.slices.pools import PoolId

Value = TypeVar("Value")


class Turns:
    """Remembers who was at the head of the line when it did not go on."""

    def __init__(self) -> None:
        self._heads: dict[str, PoolId] = {}
        self._late: dict[str, list[PoolId]] = {}

    def ordered(self, key: str, plans: Mapping[PoolId, Value]) -> dict[PoolId, Value]:
        """The plans, those last that have failed at the head."""
        late = self._late.get(key, [])
        prompt = (pool for pool in plans if pool not in late)
        order = [*prompt, *(pool for pool in late if pool in plans)]
        self._heads[key] = order[0]
        return {pool: plans[pool] for pool in order}

    def failed(self, key: str) -> None:
        """A write was refused; unless it was one of the head's, the next attempt shows it."""
        head = self._heads.pop(key, None)
        if head is not None:
            late = [pool for pool in self._late.get(key, ()) if pool != head]
            self._late[key] = [*late, head]

    def forget(self, key: str) -> None:
        """All is written."""
        self._heads.pop(key, None)
        self._late.pop(key, None)
