"""
How often the slices of one node are written.

Two who want different things on one node would drive each other as fast as the server answers.
After a burst that no change of mind of a person ever needs, a key has to wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dryrack.base.ports import Clock

# Ten changes at once are a person with a script; more than one a second for long is a fight.
BURST = 10.0
PER_SECOND = 1.0


class Pace:
    """Counts for each key that writes; one that rests costs nothing after a while."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spent: dict[str, tuple[float, float]] = {}

    def wait_seconds(self, key: str) -> float:
        """Takes a turn, or says after how long there will be one."""
        spent = self._now_spent(key)
        if spent > BURST - 1:
            return (spent - (BURST - 1)) / PER_SECOND
        self._spent[key] = (spent + 1, self._clock.now())
        return 0.0

    def tidy(self) -> None:
        """Forgets those that have rested."""
        for key in [key for key in self._spent if not self._now_spent(key)]:
            del self._spent[key]

    def _now_spent(self, key: str) -> float:
        spent, since = self._spent.get(key, (0.0, 0.0))
        return max(0.0, spent - (self._clock.now() - since) * PER_SECOND)
