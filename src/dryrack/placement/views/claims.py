"""Views of claims: their state, devices, node and pods."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dryrack.allocation import claim_name
from dryrack.kinds.expansion.pod_claims import named_claim

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dryrack.kinds.core import NodeSelector, Pod
    from dryrack.kinds.resource import DeviceRequest, ResourceClaim

_NAME_FIELD = "metadata.name"
_DONE = ("Succeeded", "Failed")


class ClaimState(StrEnum):
    """The state of a claim."""

    PENDING = "pending"
    ALLOCATED = "allocated"
    RESERVED = "reserved"
    """Allocated, and pods may use it."""
    DELETING = "deleting"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimView:
    """A claim, as it is now."""

    namespace: str
    name: str
    state: ClaimState
    # Class and number, by request.
    requests: Mapping[str, str]
    # Its devices, as "driver/pool/device".
    devices: tuple[str, ...] = ()
    # The node of its devices; empty if it has none, or if several nodes can use them.
    node: str = ""
    # The pods that may use it; while it is pending, the pods that name it.
    pods: tuple[str, ...] = ()
    created: str = ""

    def document(self) -> dict[str, Any]:
        """Return the claim as programs read it."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "state": str(self.state),
            "requests": dict(self.requests),
            "devices": list(self.devices),
            "node": self.node,
            "pods": list(self.pods),
            "created": self.created,
        }


def claims_of(claims: Iterable[ResourceClaim], pods: Iterable[Pod] = ()) -> tuple[ClaimView, ...]:
    """Return every claim, by namespace and name; `pods` that have not ended may use them."""
    users: dict[str, list[str]] = defaultdict(list)
    for pod in pods:
        if pod.status.phase in _DONE:
            continue
        for entry in pod.spec.resource_claims:
            name = named_claim(pod, entry)
            if name:
                users[f"{pod.metadata.namespace}/{name}"].append(pod.metadata.name)
    views = [_view(each, users.get(claim_name(each), ())) for each in claims]
    return tuple(sorted(views, key=lambda each: (each.namespace, each.name)))


def _view(claim: ResourceClaim, users: Iterable[str]) -> ClaimView:
    allocation = claim.status.allocation
    metadata = claim.metadata
    reserved = tuple(each.name for each in claim.status.reserved_for)
    results = allocation.devices.results if allocation is not None else ()
    return ClaimView(
        namespace=metadata.namespace,
        name=metadata.name,
        state=_state(claim),
        requests={each.name: _asks(each) for each in claim.spec.devices.requests},
        devices=tuple(f"{each.driver}/{each.pool}/{each.device}" for each in results),
        node=node_of(allocation.node_selector) if allocation is not None else "",
        pods=reserved or tuple(dict.fromkeys(users)),
        created=metadata.creation_timestamp or "",
    )


def _state(claim: ResourceClaim) -> ClaimState:
    if claim.metadata.deletion_timestamp is not None:
        return ClaimState.DELETING
    if claim.status.allocation is None:
        return ClaimState.PENDING
    return ClaimState.RESERVED if claim.status.reserved_for else ClaimState.ALLOCATED


def _asks(request: DeviceRequest) -> str:
    """Return class and number of a request, or of all its alternatives."""
    ways = request.first_available or ((request.exactly,) if request.exactly is not None else ())
    return " or ".join(
        f"{'all' if each.allocation_mode == 'All' else each.count or 1} × {each.device_class_name}"
        for each in ways
    )


def node_of(selector: NodeSelector | None) -> str:
    """Return the node that a selector selects by name; empty for other selectors."""
    if selector is None or len(selector.node_selector_terms) != 1:
        return ""
    for field in selector.node_selector_terms[0].match_fields:
        if field.key == _NAME_FIELD and field.operator == "In" and len(field.values) == 1:
            return field.values[0]
    return ""
