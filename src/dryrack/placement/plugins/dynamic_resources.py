"""
DynamicResources: nodes that can use the pod's allocated claims, and prefer first alternatives.

The allocator decides about new claims, after all filters (see `place`), because the answer is the
allocation itself. This module has the checks before that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dryrack.allocation import OPTIONAL_OPERATIONS, claim_name
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.selectors import SelectorError
from dryrack.placement.framework import DeviceScorer, Plugin
from dryrack.placement.node_state import NodeRefusal
from dryrack.placement.outcomes import ELSEWHERE

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args, Check
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import ClaimReach, PodConstraints

# The API's maximum of alternatives in a request.
_ALTERNATIVES_MAX = 8


def _filter(pod: PodConstraints, _fleet: Fleet, _args: Args) -> Check | None:
    reaches = pod.reaches
    extended = pod.extended
    skipping = next(filter(_skips_operations, pod.allocated), None)
    if not reaches and not pod.wanted and skipping is None:
        return None
    if not reaches and extended is None and skipping is None:
        return _accept

    def check(node: NodeState) -> NodeRefusal | None:
        if skipping is not None and OPTIONAL_OPERATIONS not in node.node.status.declared_features:
            fact = f"claim {claim_name(skipping)} has devices that skip node operations"
            remedy = f"use a node that declares the feature {OPTIONAL_OPERATIONS}"
            return NodeRefusal(ELSEWHERE, fact, remedy)
        for reach in reaches:
            refusal = _check_reach(reach, node)
            if refusal is not None:
                return refusal
        made = None if extended is None else extended.made
        if extended is None or made is None or extended.is_as_made(node.node):
            return None
        fact = f"claim {claim_name(made)} was created for extended resources of another node"
        return NodeRefusal(ELSEWHERE, fact, "delete the claim")

    return check


def _skips_operations(claim: ResourceClaim) -> bool:
    """Return True if only a node that declares the feature can use the claim's devices."""
    allocation = claim.status.allocation
    return allocation is not None and any(
        each.skip_node_operations for each in allocation.devices.results
    )


def _accept(_node: NodeState) -> None:
    """Accept every node: the allocator decides about claims that are not allocated."""


def _check_reach(reach: ClaimReach, node: NodeState) -> NodeRefusal | None:
    try:
        if reach.matcher.matches(node.node):
            return None
    except SelectorError:
        pass
    fact = f"claim {reach.claim} is allocated for other nodes"
    return NodeRefusal(ELSEWHERE, fact, "use a node that it is allocated for")


def _score(pod: PodConstraints, _fleet: Fleet, _args: Args) -> DeviceScorer | None:
    """Prefer nodes where requests with firstAvailable get early alternatives."""
    most = sum(
        _ALTERNATIVES_MAX
        for claim in pod.wanted
        for request in claim.spec.devices.requests
        if request.first_available
    )
    if not most:
        return None
    had = sum(_rank(each, each.status.allocation) for each in pod.allocated)

    def score(node: NodeState, allocations: Sequence[AllocationResult]) -> int:
        wanted = pod.wanted_on(node.node)
        return had + sum(map(_rank, wanted, allocations))

    return DeviceScorer(score, most=had + most, is_relative=True)


def _rank(claim: ResourceClaim, allocation: AllocationResult | None) -> int:
    """Return 8 for the first alternative of a request, 7 for the second, and so on."""
    given = {each.request for each in allocation.devices.results} if allocation else set()
    return sum(
        _ALTERNATIVES_MAX - place
        for request in claim.spec.devices.requests
        for place, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in given
    )


def _quantity(value: object) -> str:
    assert isinstance(value, Quantity), "all other values of a request are JSON"
    return value.text


_encode = msgspec.json.Encoder(enc_hook=_quantity).encode


def _sign(pod: PodConstraints) -> Hashable:
    """Return the parts of the claims that decide which nodes fit."""
    devices = [
        (claim.spec.devices.requests, claim.spec.devices.constraints) for claim in pod.wanted
    ]
    selectors = tuple(reach.selector for reach in pod.reaches)
    made = pod.extended.made if pod.extended is not None else None
    had = sum(_rank(each, each.status.allocation) for each in pod.allocated)
    skips = any(map(_skips_operations, pod.allocated))
    spec = made and _encode(made.spec)
    return _encode(devices), selectors, had, spec, skips, tuple(pod.by_devices)


DYNAMIC_RESOURCES = Plugin("DynamicResources", filter=_filter, score=_score, sign=_sign)
