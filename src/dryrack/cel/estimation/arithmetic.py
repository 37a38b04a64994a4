"""
Ranges of unsigned 64-bit numbers that stick at the top instead of overflowing.

Sizes and costs are both such ranges and are turned into one another all the time, so they
share one type under two names. A factor is a float and its product is rounded up, because
that is how the reference does it; the float's own rounding is part of the result.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import msgspec

UINT64_MAX = 2**64 - 1


class Estimate(msgspec.Struct, frozen=True):
    """From `min` to `max`, both included."""

    min: int
    max: int

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(_sum(self.min, other.min), _sum(self.max, other.max))

    def __mul__(self, other: Estimate) -> Estimate:
        return Estimate(_product(self.min, other.min), _product(self.max, other.max))

    def __or__(self, other: Estimate) -> Estimate:
        """The smallest range that covers both."""
        return Estimate(min(self.min, other.min), max(self.max, other.max))

    def scale(self, factor: float) -> Estimate:
        return Estimate(_scale(self.min, factor), _scale(self.max, factor))


CostEstimate: TypeAlias = Estimate
SizeEstimate: TypeAlias = Estimate


def fixed(value: int) -> Estimate:
    return Estimate(value, value)


ZERO = fixed(0)
ONE = fixed(1)
UNKNOWN = Estimate(0, UINT64_MAX)
# The neutral element of `|`: covers nothing.
NOTHING = Estimate(UINT64_MAX, 0)


def wrap(value: int) -> int:
    """Wrap around, where the reference does not guard an operation."""
    return value & UINT64_MAX


def _sum(left: int, right: int) -> int:
    return min(left + right, UINT64_MAX)


def _product(left: int, right: int) -> int:
    return min(left * right, UINT64_MAX)


def _scale(value: int, factor: float) -> int:
    real = float(value)
    if real > 0 and factor > 0 and real > float(UINT64_MAX) / factor:
        return UINT64_MAX
    return min(math.ceil(real * factor), UINT64_MAX)
