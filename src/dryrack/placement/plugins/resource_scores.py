"""
Scores of NodeResourcesFit and NodeResourcesBalancedAllocation, as kube-scheduler computes them.

All is in its whole numbers: CPU in thousandths, everything else in ones, divisions cut off. The
strategy of NodeResourcesFit counts containers that request no CPU or memory as if they did; the
balance does not.

A score follows from what a node has and what of it is used, and many nodes have the same: those of
a fleet that nothing was placed on, or one pod of a kind. So it is remembered by these amounts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from math import floor, sqrt
from typing import TYPE_CHECKING, TypeAlias

from dryrack.kinds.paths import get
from dryrack.placement.framework import SCORE_MAX, NodeScorer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.placement.demand import Amounts
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import PodConstraints

_CPU = "cpu"
_MEMORY = "memory"
_NATIVE = (_CPU, _MEMORY, "ephemeral-storage")
_DEFAULT_RESOURCES: Sequence[Args] = ({"name": _CPU, "weight": 1}, {"name": _MEMORY, "weight": 1})
# Points of a shape have scores up to 10.
_SHAPE_SCORE_MAX = 10

# Nodes come in few shapes, and with few amounts of one kind of pods on them.
_AMOUNTS_MAX = 128

# What a node has of a resource, and what of it is used with the pod.
_Curve: TypeAlias = "Callable[[int, int], int]"
# Amounts of each resource in billionths: what a node has, or what of it is used.
_Amounts: TypeAlias = "tuple[int | None, ...]"
_Score: TypeAlias = "Callable[[_Amounts, _Amounts], int]"


@dataclass(frozen=True, slots=True)
class _Resource:
    """A resource that counts for a pod, in its unit."""

    name: str
    weight: int
    unit: int
    wanted: int

    @staticmethod
    def all_of(given: Sequence[Args], wanted: Amounts) -> tuple[_Resource, ...]:
        """Those that count: an extended one only for pods that ask for it."""
        found = []
        for each in given or _DEFAULT_RESOURCES:
            name = str(each["name"])
            weight = int(each.get("weight") or 1)
            unit = 10**6 if name == _CPU else 10**9
            amount = _whole(wanted.get(name, 0), unit)
            if amount or name in _NATIVE:
                found.append(_Resource(name, weight, unit, amount))
        return tuple(found)


def _remembered(
    resources: Sequence[_Resource], score: _Score, *, non_zero: int = 0
) -> Callable[[NodeState], int]:
    """
    The score of a node by its amounts of the resources.

    Of so many of them, the first, it counts what scores count for containers that request none.
    """
    names = tuple(each.name for each in resources)
    first = names[:non_zero]
    others = names[non_zero:]
    known = lru_cache(maxsize=_AMOUNTS_MAX)(score)

    def of(node: NodeState) -> int:
        used = (*map(node.non_zero.get, first), *map(node.used.get, others))
        return known(tuple(map(node.allocatable.get, names)), used)

    return of


def score_fit(pod: PodConstraints, _fleet: Fleet, args: Args) -> NodeScorer:
    """By the strategy that the arguments name: LeastAllocated, if they name none."""
    strategy = get(args, "scoringStrategy", {})
    given = _Resource.all_of(get(strategy, "resources", ()), {**pod.amounts, **pod.non_zero})
    computed = [each for each in given if each.name in (_CPU, _MEMORY)]
    resources = (*computed, *(each for each in given if each not in computed))
    return NodeScorer(
        _remembered(resources, _strategy(resources, strategy), non_zero=len(computed))
    )


def _strategy(resources: Sequence[_Resource], strategy: Args) -> _Score:
    kind = strategy.get("type") or "LeastAllocated"
    if kind == "RequestedToCapacityRatio":
        shape = get(strategy, "requestedToCapacityRatio.shape", ())
        return _by_ratio(resources, _broken_line(shape))
    return _average(resources, _most if kind == "MostAllocated" else _least)


def _average(resources: Sequence[_Resource], curve: _Curve) -> _Score:
    def score(allocatable: _Amounts, taken: _Amounts) -> int:
        total = weights = 0
        for each, has, uses in zip(resources, allocatable, taken, strict=True):
            there = (has or 0) // each.unit
            if there:
                total += curve(there, _whole(uses or 0, each.unit) + each.wanted) * each.weight
                weights += each.weight
        return total // weights if weights else 0

    return score


def _by_ratio(resources: Sequence[_Resource], line: Callable[[int], int]) -> _Score:
    """A resource whose score is 0 does not count at all, and the average is rounded."""

    def score(allocatable: _Amounts, taken: _Amounts) -> int:
        total = weights = 0
        for each, has, uses in zip(resources, allocatable, taken, strict=True):
            there = (has or 0) // each.unit
            if not there:
                continue
            used = min(_whole(uses or 0, each.unit) + each.wanted, there)
            points = line(used * SCORE_MAX // there)
            if points > 0:
                total += points * each.weight
                weights += each.weight
        return floor(total / weights + 0.5) if weights else 0

    return score


def _least(there: int, used: int) -> int:
    return 0 if used > there else (there - used) * SCORE_MAX // there


def _most(there: int, used: int) -> int:
    return min(used, there) * SCORE_MAX // there


def _broken_line(shape: Sequence[Args]) -> Callable[[int], int]:
    """The score at each utilization, straight between the points of the shape."""
    scale = SCORE_MAX // _SHAPE_SCORE_MAX
    points = [
        (int(each.get("utilization", 0)), int(each.get("score", 0)) * scale) for each in shape
    ]

    @cache
    def line(utilization: int) -> int:
        before: tuple[int, int] | None = None
        for x, y in points:
            if utilization <= x:
                if before is None:
                    return y
                rise = (y - before[1]) * (utilization - before[0])
                # Towards zero, as Go divides.
                return before[1] + int(rise / (x - before[0]))
            before = (x, y)
        return points[-1][1] if points else 0

    return line


def score_balance(pod: PodConstraints, _fleet: Fleet, args: Args) -> NodeScorer | None:
    """How much the pod evens out which shares of its resources a node has given away."""
    given = args.get("resources") or _DEFAULT_RESOURCES
    if not any(pod.amounts.get(str(each["name"])) for each in given):
        # Else all pods that ask for nothing would go to one node.
        return None
    resources = _Resource.all_of(given, pod.amounts)
    return NodeScorer(_remembered(resources, _evenness(resources)))


def _evenness(resources: Sequence[_Resource]) -> _Score:
    def score(allocatable: _Amounts, taken: _Amounts) -> int:
        with_pod = []
        without = []
        for each, has, uses in zip(resources, allocatable, taken, strict=True):
            there = (has or 0) // each.unit
            if there:
                used = _whole(uses or 0, each.unit)
                with_pod.append(min((used + each.wanted) / there, 1.0))
                without.append(min(used / there, 1.0))
        half = SCORE_MAX // 2
        return half + (half + _balance(with_pod) - _balance(without)) // 2

    return score


def _balance(fractions: Sequence[float]) -> int:
    """100 if all are the same, less the more they differ."""
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = sum(fractions) / len(fractions)
        squares = 0.0
        for each in fractions:
            squares += (each - mean) * (each - mean)
        deviation = sqrt(squares / len(fractions))
    return int((1 - deviation) * SCORE_MAX)


def _whole(nanos: int, unit: int) -> int:
    """In units, rounded up."""
    return -(-nanos // unit)
