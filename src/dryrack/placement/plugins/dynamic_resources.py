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
from dryrack.placement.framework import Plugin
from dryrack.placement.node_state import NodeRefusal

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dryrack.placement.extended_resources import ExtendedResources
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args, Check
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import PodConstraints, Reach

ELSEWHERE = "resourceclaim not available on the node"


def _available(pod: PodConstraints, _fleet: Fleet, _args: Args) -> Check | None:
    reaches, extended = pod.reaches, pod.extended
    if not reaches and not pod.wanted:
        return None

    def check(node: NodeState) -> NodeRefusal | None:
        refusals = (_beyond(reach, node) for reach in reaches)
        refusal = next((each for each in refusals if each is not None), None)
        return refusal or (None if extended is None else _made_for_another(extended, node))

    return check


def _beyond(reach: Reach, node: NodeState) -> NodeRefusal | None:
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
    fact = f"claim {claim_name(made)} was made for what another node lacks"
    return NodeRefusal(ELSEWHERE, fact, "delete the claim")


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
    return _encode(devices), selectors, made and _encode(made.spec), tuple(pod.by_devices)


DYNAMIC_RESOURCES = Plugin("DynamicResources", filter=_available, sign=_asks)
