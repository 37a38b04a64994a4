"""
Scores of NodeResourcesFit and NodeResourcesBalancedAllocation, as kube-scheduler computes them.

It uses kube-scheduler's whole numbers: CPU in thousandths, other resources in units, with integer
division. The strategy of NodeResourcesFit has default requests for containers without CPU or memory
requests; the balance has not.

A score depends on the node's allocatable and used amounts only, and many nodes have equal amounts.
So it is remembered by these amounts.
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

# Nodes have few different sizes, and few different amounts in use.
_AMOUNTS_MAX = 128

# The score from the allocatable amount of a resource, and the amount in use with the pod.
_Curve: TypeAlias = "Callable[[int, int], int]"
# Amounts of each resource in billionths: allocatable, or in use.
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
        """Return the resources that count; extended ones only for pods that request them."""
        resources = []
        for each in given or _DEFAULT_RESOURCES:
            name = str(each["name"])
            weight = int(each.get("weight") or 1)
            unit = 10**6 if name == _CPU else 10**9
            amount = _whole(wanted.get(name, 0), unit)
            if amount or name in _NATIVE:
                resources.append(_Resource(name, weight, unit, amount))
        return tuple(resources)


def _cache_by_amounts(
    resources: Sequence[_Resource], score: _Score, *, non_zero: int = 0
) -> Callable[[NodeState], int]:
    """
    Return the score of a node, cached by its amounts of the resources.

    For the first `non_zero` resources it counts default requests of containers without requests.
    """
    names = tuple(each.name for each in resources)
    first = names[:non_zero]
    others = names[non_zero:]
    cached = lru_cache(maxsize=_AMOUNTS_MAX)(score)

    def score_node(node: NodeState) -> int:
        used = (*map(node.non_zero.get, first), *map(node.used.get, others))
        return cached(tuple(map(node.allocatable.get, names)), used)

    return score_node


def score_fit(pod: PodConstraints, _fleet: Fleet, args: Args) -> NodeScorer:
    """Score nodes by the strategy of the arguments; the default is LeastAllocated."""
    strategy = get(args, "scoringStrategy", {})
    given = _Resource.all_of(get(strategy, "resources", ()), {**pod.amounts, **pod.non_zero})
    with_defaults = [each for each in given if each.name in (_CPU, _MEMORY)]
    resources = (*with_defaults, *(each for each in given if each not in with_defaults))
    kind = strategy.get("type") or "LeastAllocated"
    if kind == "RequestedToCapacityRatio":
        shape = get(strategy, "requestedToCapacityRatio.shape", ())
        score = _by_ratio(resources, broken_line(shape))
    else:
        score = _average(resources, _most if kind == "MostAllocated" else _least)
    return NodeScorer(_cache_by_amounts(resources, score, non_zero=len(with_defaults)))


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
    """Return the rounded average of the resources with a score above 0."""

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


def broken_line(shape: Sequence[Args]) -> Callable[[int], int]:
    """Return the score at each utilization, interpolated between the points of the shape."""
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
    """Score nodes by how much the pod balances the used shares of their resources."""
    given = args.get("resources") or _DEFAULT_RESOURCES
    if not any(pod.amounts.get(str(each["name"])) for each in given):
        # Otherwise all pods without requests would go to one node.
        return None
    resources = _Resource.all_of(given, pod.amounts)

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

    return NodeScorer(_cache_by_amounts(resources, score))


def _balance(fractions: Sequence[float]) -> int:
    """Return 100 if all fractions are equal, and less the more they differ."""
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
    """Return the amount in units, rounded up."""
    return -(-nanos // unit)
