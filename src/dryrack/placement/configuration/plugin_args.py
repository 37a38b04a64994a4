"""Arguments of kube-scheduler's plugins: what it would refuse of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.kinds.shape import Path

_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")


def argument_problems(plugin: str, args: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Values of arguments that kube-scheduler would refuse; their types are right."""
    match plugin:
        case "InterPodAffinity":
            yield from _outside(args, "hardPodAffinityWeight", 100)
        case "DefaultPreemption":
            yield from _outside(args, "minCandidateNodesPercentage", 100)
            yield from _outside(args, "minCandidateNodesAbsolute", None)
        case "ResourceReservation":
            yield from _outside(args, "ttlSeconds", None)
        case "PodTopologySpread":
            yield from _defaulting_problems(args)
        case "NodeResourcesFit":
            yield from _strategy_problems(get(args, "scoringStrategy", {}))
        case "NodeResourcesBalancedAllocation":
            for index, each in enumerate(get(args, "resources", ())):
                if each.get("weight", 1) != 1:
                    message = f"{each['weight']} is invalid: it must be 1"
                    yield ("resources", index, "weight"), message
        case _:
            return


def _outside(args: Mapping[str, Any], name: str, most: int | None) -> Iterator[tuple[Path, str]]:
    value = args.get(name)
    if value is not None and (value < 0 or (most is not None and value > most)):
        bounds = "at least 0" if most is None else f"from 0 to {most}"
        yield (name,), f"{value} is invalid: it must be {bounds}"


def _defaulting_problems(args: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    kind = args.get("defaultingType") or "System"
    constraints = get(args, "defaultConstraints", ())
    if kind not in ("List", "System"):
        yield ("defaultingType",), f"{kind!r} is invalid: it must be List or System"
    elif kind == "System" and constraints:
        yield ("defaultConstraints",), "have no effect without defaultingType: List; add it"
    for index, each in enumerate(constraints):
        if each.get("labelSelector") is not None:
            message = "must not be set: each pod determines it; remove it"
            yield ("defaultConstraints", index, "labelSelector"), message


def _strategy_problems(strategy: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    kind = strategy.get("type") or "LeastAllocated"
    if kind not in _STRATEGIES:
        message = f"{kind!r} is invalid: it must be one of {', '.join(_STRATEGIES)}"
        yield ("scoringStrategy", "type"), message
    for index, each in enumerate(get(strategy, "resources", ())):
        if not 0 < each.get("weight", 1) <= 100:
            message = f"{each['weight']} is invalid: it must be from 1 to 100"
            yield ("scoringStrategy", "resources", index, "weight"), message
    ratio = strategy.get("requestedToCapacityRatio")
    if (kind == "RequestedToCapacityRatio") != (ratio is not None):
        message = "is required with type RequestedToCapacityRatio, and invalid with other types"
        yield ("scoringStrategy", "requestedToCapacityRatio"), message
