"""
DynamicResources: nodes where the devices of a pod's claims are, or can be had.

Whether devices can be had is asked of the allocator, last of all (see `place`), because the answer
is the allocation itself. Here is what a node says before that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dryrack.allocation import claim_name
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.selectors import SelectorError
from dryrack.placement.framework import DeviceScorer, Plugin
from dryrack.placement.node_state import NodeRefusal
from dryrack.placement.outcomes import ELSEWHERE

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.placement.extended_resources import ExtendedResources
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args, Check
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import ClaimReach, PodConstraints

# As many as the API lets a request have.
_ALTERNATIVES_MAX = 8


def _available(pod: PodConstraints, _fleet: Fleet, _args: Args) -> Check | None:
    reaches = pod.reaches
    extended = pod.extended
    if not reaches and not pod.wanted:
        return None
    if not reaches and extended is None:
        return _anywhere

    def check(node: NodeState) -> NodeRefusal | None:
        refusals = (_beyond(reach, node) for reach in reaches)
        refusal = next((each for each in refusals if each is not None), None)
        return refusal or (None if extended is None else _made_for_another(extended, node))

    return check


def _anywhere(_node: NodeState) -> None:
    """Of claims that are yet to be allocated the allocator is asked."""


def _beyond(reach: ClaimReach, node: NodeState) -> NodeRefusal | None:
    try:
        if reach.matcher.matches(node.node):
            return None
    except SelectorError:
        pass
    fact = f"claim {reach.claim} is allocated for other nodes"
    return NodeRefusal(ELSEWHERE, fact, "use a node that it is allocated for")


def _made_for_another(extended: ExtendedResources, node: NodeState) -> NodeRefusal | None:
    made = extended.made
    if made is None or extended.is_as_made(node.node):
        return None
    fact = f"claim {claim_name(made)} was created for extended resources of another node"
    return NodeRefusal(ELSEWHERE, fact, "delete the claim")


def _preferred(pod: PodConstraints, _fleet: Fleet, _args: Args) -> DeviceScorer | None:
    """How far in front the alternatives are that requests with firstAvailable would get."""
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
    """The first alternative of a request counts 8, the second 7, and so on."""
    given = {each.request for each in allocation.devices.results} if allocation else set()
    return sum(
        _ALTERNATIVES_MAX - place
        for request in claim.spec.devices.requests
        for place, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in given
    )


def _quantity(value: object) -> str:
    assert isinstance(value, Quantity), "nothing else in a request is no JSON"
    return value.text


_encode = msgspec.json.Encoder(enc_hook=_quantity).encode


def _asks(pod: PodConstraints) -> Hashable:
    """All of the claims that decides which nodes do."""
    devices = [
        (claim.spec.devices.requests, claim.spec.devices.constraints) for claim in pod.wanted
    ]
    selectors = tuple(reach.selector for reach in pod.reaches)
    made = pod.extended.made if pod.extended is not None else None
    had = sum(_rank(each, each.status.allocation) for each in pod.allocated)
    return _encode(devices), selectors, had, made and _encode(made.spec), tuple(pod.by_devices)


DYNAMIC_RESOURCES = Plugin("DynamicResources", filter=_available, score=_preferred, sign=_asks)
