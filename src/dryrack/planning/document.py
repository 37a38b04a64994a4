"""The JSON document of a plan."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as changed

from dryrack.allocation import claim_name
from dryrack.kinds.decode import to_builtins
from dryrack.kinds.expansion.pod_claims import POD_CLAIM_NAME
from dryrack.kinds.resource import ResourceClaim, ResourceClaimConsumerReference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.kinds.meta import KubernetesObject
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
        "objects": list(_objects((*result.nodes, *result.existing))),
    }


def _objects(nodes: Sequence[PlannedNode]) -> Iterator[dict[str, Any]]:
    """Yield the pods as they are bound to their nodes, and their claims with their devices."""
    claims: dict[str, ResourceClaim] = {}
    for node in nodes:
        for planned in node.pods:
            pod = planned.member.pod
            user = ResourceClaimConsumerReference(
                resource="pods", name=pod.metadata.name, uid=pod.metadata.uid
            )
            names = []
            for each in planned.member.wanted:
                # Pods may share a claim; one of them has its allocation.
                known = claims.get(claim_name(each), each)
                allocation = planned.allocations.get(claim_name(each)) or known.status.allocation
                users = (*known.status.reserved_for, user)
                status = changed(known.status, allocation=allocation, reserved_for=users)
                claims[claim_name(each)] = changed(known, status=status)
                entry = each.metadata.annotations.get(POD_CLAIM_NAME)
                if entry is not None:
                    names.append({"name": entry, "resourceClaimName": each.metadata.name})
            raw = _object("v1", "Pod", pod)
            raw["spec"]["nodeName"] = node.name
            raw["status"] = {"resourceClaimStatuses": names} if names else {}
            yield raw
    yield from (_object("resource.k8s.io/v1", "ResourceClaim", each) for each in claims.values())


def _object(version: str, kind: str, value: KubernetesObject) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, **to_builtins(value)}


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
