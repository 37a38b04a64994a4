"""
Random numbers that depend only on a seed, on every platform and in every version of Python.

Pure packages get their randomness as a parameter. A seed is such a parameter: a stream of draws is
a function of it. Each purpose has a stream of its own, so that one more draw for one purpose
changes nothing for another.
"""

from __future__ import annotations

from hashlib import blake2b
from math import log
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import MutableSequence, Sequence

_Item = TypeVar("_Item")
_MASK = 2**64 - 1


class Draws:
    """A stream of random numbers (SplitMix64)."""

    def __init__(self, *seed: object) -> None:
        """Start the stream that belongs to these values, such as a number and a purpose."""
        digest = blake2b("/".join(map(str, seed)).encode(), digest_size=8).digest()
        self._state = int.from_bytes(digest, "big")

    def _next(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return mixed ^ (mixed >> 31)

    def random(self) -> float:
        """Return a number from 0 up to, but not including, 1."""
        return (self._next() >> 11) / 2**53

    def below(self, limit: int) -> int:
        """Return a whole number from 0 up to, but not including, the limit."""
        return int(self.random() * limit)

    def exponential(self, mean: float = 1.0) -> float:
        """Return a waiting time until an event that happens at random, with this mean."""
        return -mean * log(1.0 - self.random())

    def choice(self, items: Sequence[_Item]) -> _Item:
        """Return one of the items."""
        return items[self.below(len(items))]

    def shuffle(self, items: MutableSequence[_Item]) -> None:
        """Put the items in random order."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]
