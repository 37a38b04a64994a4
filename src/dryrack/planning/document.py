"""The JSON document of a plan."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.planning.model import Plan, PlannedNode, Unplaceable

_PLACES = 6


def amount(value: Fraction) -> float:
    """Return a sum of money as a number that is not longer than its price."""
    return round(float(value), _PLACES)


def document_of(
    result: Plan,
    *,
    hourly: Mapping[str, Fraction],
    prices: Mapping[str, str],
    objective: str,
    refused: Sequence[Unplaceable] = (),
) -> dict[str, Any]:
    """
    Return the plan as programs read it.

    `hourly` has the price of each type, `prices` their date and source. If a type has no price, the
    cost is unknown. `objective` is what the plan keeps low, "cost" or "nodes": the bound is that
    of the cost, or of the number of nodes. `refused` are pods that no plan can have.
    """
    fewer = result.one_fewer
    costs = [hourly.get(name) for name in result.types]
    known = [each for each in costs if each is not None]
    is_known = len(known) == len(costs)
    return {
        "nodes": [_node(each) for each in result.nodes],
        "existing": [_node(each) for each in result.existing],
        "cost": amount(sum(known, Fraction(0))) if is_known else None,
        "currency": "USD/h",
        "objective": objective,
        "bound": amount(result.bound),
        "optimal": result.is_optimal,
        "proof": result.proof,
        "placement": result.reach.value,
        "unplaceable": [
            {"pod": each.pod, "why": each.why} for each in (*refused, *result.unplaceable)
        ],
        "oneFewer": None
        if fewer is None
        else {"change": fewer.change, "saves": amount(fewer.saves), "nodes": fewer.nodes},
        "prices": dict(prices) if is_known and known else None,
    }


def _node(node: PlannedNode) -> dict[str, Any]:
    devices = [
        {"claim": claim, "driver": each.driver, "pool": each.pool, "device": each.device}
        for pod in node.pods
        for claim, allocation in pod.allocations.items()
        for each in allocation.devices.results
    ]
    head: dict[str, Any] = {"node": node.name}
    if node.type is not None:
        head = {"instanceType": node.type.name, "count": 1, "name": node.name}
        head |= {"zone": node.type.zone} if node.type.zone else {}
    return {
        **head,
        "pods": [pod.member.name for pod in node.pods],
        "devices": devices,
        "left": dict(node.left),
    }
