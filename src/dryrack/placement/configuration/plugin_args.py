"""Arguments of kube-scheduler's plugins: what it would refuse of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
            yield from _strategy_problems(args.get("scoringStrategy") or {})
        case "NodeResourcesBalancedAllocation":
            for index, each in enumerate(args.get("resources") or ()):
                if each.get("weight", 1) != 1:
                    yield ("resources", index, "weight"), f"{each['weight']} is not 1"
        case _:
            return


def _outside(args: Mapping[str, Any], name: str, most: int | None) -> Iterator[tuple[Path, str]]:
    value = args.get(name)
    if value is not None and (value < 0 or (most is not None and value > most)):
        bounds = "less than 0" if most is None else f"not from 0 to {most}"
        yield (name,), f"{value} is {bounds}"


def _defaulting_problems(args: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    kind, constraints = args.get("defaultingType") or "System", args.get("defaultConstraints") or ()
    if kind not in ("List", "System"):
        yield ("defaultingType",), f"{kind!r} is neither List nor System"
    elif kind == "System" and constraints:
        yield ("defaultConstraints",), "are not read; write defaultingType: List beside them"
    for index, each in enumerate(constraints):
        if each.get("labelSelector") is not None:
            yield ("defaultConstraints", index, "labelSelector"), "follows from each pod; leave out"


def _strategy_problems(strategy: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    kind = strategy.get("type") or "LeastAllocated"
    if kind not in _STRATEGIES:
        yield ("scoringStrategy", "type"), f"{kind!r} is none of {', '.join(_STRATEGIES)}"
    for index, each in enumerate(strategy.get("resources") or ()):
        if not 0 < each.get("weight", 1) <= 100:
            message = f"{each['weight']} is not from 1 to 100"
            yield ("scoringStrategy", "resources", index, "weight"), message
    ratio = strategy.get("requestedToCapacityRatio")
    if (kind == "RequestedToCapacityRatio") != (ratio is not None):
        message = "goes with type RequestedToCapacityRatio, and with no other"
        yield ("scoringStrategy", "requestedToCapacityRatio"), message
