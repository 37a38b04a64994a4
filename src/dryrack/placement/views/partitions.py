"""
The number of partitions of devices that can be allocated at the same time.

Partitions that take from the same counters exclude one another, so that the number of free ones is
too large. The search finds the largest set that the counters allow, one group of related partitions
after the other. It searches equal groups once, as a fleet has one for each card.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

# The counters of a partition by number, with amounts.
_Takes = tuple[tuple[int, int], ...]

# Groups of any known card need fewer steps; a search that stops at the limit is a lower bound.
_STEPS_MAX = 20_000
_GROUPS_REMEMBERED_MAX = 4096


@dataclass(frozen=True, slots=True)
class AtOnce:
    """The number of devices that can be allocated at the same time; a lower bound if not exact."""

    count: int
    is_exact: bool = True

    def __add__(self, other: AtOnce) -> AtOnce:
        return AtOnce(self.count + other.count, self.is_exact and other.is_exact)


def allocatable_at_once(
    partitions: Iterable[Mapping[Hashable, int]], left: Mapping[Hashable, int]
) -> AtOnce:
    """Return how many partitions fit at once; each is what it takes of the counters."""
    total = AtOnce(0)
    for group in _group_by_counters(list(partitions)):
        numbers: dict[Hashable, int] = {}
        takes = [
            tuple((numbers.setdefault(key, len(numbers)), amount) for key, amount in each.items())
            for each in group
        ]
        total += _most(tuple(left.get(key, 0) for key in numbers), tuple(takes))
    return total


def _group_by_counters(
    partitions: Sequence[Mapping[Hashable, int]],
) -> list[list[Mapping[Hashable, int]]]:
    """Return the groups of partitions that take from common counters, also by way of others."""
    parents = list(range(len(partitions)))

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = parents[parents[index]]
            index = parents[index]
        return index

    first_takers: dict[Hashable, int] = {}
    for index, each in enumerate(partitions):
        for key in each:
            parents[root(index)] = root(first_takers.setdefault(key, index))
    groups: dict[int, list[Mapping[Hashable, int]]] = defaultdict(list)
    for index, each in enumerate(partitions):
        groups[root(index)].append(each)
    return list(groups.values())


@lru_cache(maxsize=_GROUPS_REMEMBERED_MAX)
def _most(left: tuple[int, ...], partitions: tuple[_Takes, ...]) -> AtOnce:
    """Return the size of the largest set of partitions that the counters allow."""
    # Those that take little come first, so that the first set that is found is a large one.
    shares = [sum(amount / (left[number] or 1) for number, amount in each) for each in partitions]
    order = [each for _, each in sorted(zip(shares, partitions, strict=True), key=lambda it: it[0])]
    # For each place, the least that one of the partitions from there on takes of each counter.
    least = _least_from(order, len(left))
    best = 0
    steps = 0
    stack = [(0, 0, left)]
    while stack and steps < _STEPS_MAX:
        place, count, free = stack.pop()
        steps += 1
        best = max(best, count)
        if place == len(order) or count + _bound_of(least[place], free, len(order) - place) <= best:
            continue
        stack.append((place + 1, count, free))
        after = _after(order[place], free)
        if after is not None:
            stack.append((place + 1, count + 1, after))
    return AtOnce(best, is_exact=not stack)


def _least_from(order: Sequence[_Takes], counters: int) -> list[list[int]]:
    least: list[list[int]] = [[0] * counters]
    for at, takes in enumerate(reversed(order)):
        amounts = dict(takes)
        before = least[-1]
        least.append(
            [
                amounts.get(number, 0) if at == 0 else min(before[number], amounts.get(number, 0))
                for number in range(counters)
            ]
        )
    return least[::-1]


def _bound_of(least: Sequence[int], free: Sequence[int], rest: int) -> int:
    """Return how many of the rest fit at most, if each takes only the least of every counter."""
    bounds = [amount // each for each, amount in zip(least, free, strict=True) if each > 0]
    return min([rest, *bounds])


def _after(takes: _Takes, free: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return what a partition leaves of the counters, or None if it does not fit."""
    changed = list(free)
    for number, amount in takes:
        changed[number] -= amount
        if changed[number] < 0:
            return None
    return tuple(changed)
