"""
The way of a claim: from its requests over the alternatives that were passed over to its devices.

With the constraints that hold devices together, by the values that the devices have in common; the
devices that come earlier in their pools and that it did not get; the conditions that drivers
report; and the pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.decode import to_builtins
from dryrack.placement import claims_of, skipped_devices

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.dashboard.data.tracked import Tracked
    from dryrack.kinds.resource import (
        DeviceConstraint,
        DeviceRequest,
        DeviceRequestAllocationResult,
        DeviceSubRequest,
        ExactDeviceRequest,
        ResourceClaim,
    )
    from dryrack.placement import DeviceView

Document = dict[str, Any]
_Id = tuple[str, str, str]
# Of devices that were passed over; a pool may have hundreds.
_PASSED_MAX = 20


def claim_document(tracked: Tracked, name: str) -> Document | None:
    """Return the details of a claim; None if no claim has this name."""
    claim = tracked.claim(name)
    if claim is None:
        return None
    users = tracked.users_of(name)
    [view] = claims_of([claim], users.values())
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    pools = dict.fromkeys((each.driver, each.pool) for each in results)
    devices = {
        (view.driver, view.pool, view.device): view
        for key in pools
        for view in tracked.fleet.views_of(key)
    }
    # A claim from a template has an owner.
    owners = claim.metadata.owner_references
    passed = list(_passed_over(tracked, name, results))
    return {
        **view.document(),
        "owner": {"kind": owners[0].kind, "name": owners[0].name} if owners else None,
        "allocated": (allocation.allocation_timestamp or "") if allocation is not None else "",
        "requests": [
            _request(tracked, each, results, devices) for each in claim.spec.devices.requests
        ],
        "constraints": [
            _constraint(each, results, devices) for each in claim.spec.devices.constraints
        ],
        "config": list(_configs(claim)),
        "passedOver": passed[:_PASSED_MAX],
        "passedOverOmitted": max(0, len(passed) - _PASSED_MAX),
        "conditions": list(_conditions(claim)),
        "users": [
            tracked.pods.current[each] for each in sorted(users) if (each in tracked.pods.current)
        ],
    }


def _request(
    tracked: Tracked,
    request: DeviceRequest,
    results: Sequence[DeviceRequestAllocationResult],
    devices: Mapping[_Id, DeviceView],
) -> Document:
    own = [each for each in results if each.request.partition("/")[0] == request.name]
    taken = {each.request.partition("/")[2] for each in own}
    if request.exactly is not None:
        ways = [_way(request.exactly) | {"name": "", "isTaken": bool(own), "isPassedOver": False}]
    else:
        names = [each.name for each in request.first_available]
        last = max((names.index(each) for each in taken if each in names), default=-1)
        ways = [
            _way(each)
            | {"name": each.name, "isTaken": each.name in taken, "isPassedOver": place < last}
            for place, each in enumerate(request.first_available)
        ]
    return {
        "name": request.name,
        "ways": ways,
        "devices": [_device(tracked, each, devices) for each in own],
    }


def _way(way: ExactDeviceRequest | DeviceSubRequest) -> Document:
    capacity = way.capacity.requests if way.capacity is not None else {}
    return {
        "class": way.device_class_name,
        "mode": way.allocation_mode or "ExactCount",
        "count": None if way.allocation_mode == "All" else way.count or 1,
        "selectors": [each.cel.expression for each in way.selectors if each.cel is not None],
        "capacity": {name: str(amount) for name, amount in capacity.items()},
        "tolerations": [to_builtins(each) for each in way.tolerations],
        "adminAccess": bool(getattr(way, "admin_access", None)),
    }


def _device(
    tracked: Tracked,
    result: DeviceRequestAllocationResult,
    devices: Mapping[_Id, DeviceView],
) -> Document:
    view = devices.get((result.driver, result.pool, result.device))
    found: Document = {
        "driver": result.driver,
        "pool": result.pool,
        "device": result.device,
        "node": view.node if view is not None else "",
        "model": view.model if view is not None else "",
        "state": tracked.fleet.state_of(view) if view is not None else "withdrawn",
    }
    if result.consumed_capacity:
        consumed = result.consumed_capacity.items()
        found["consumedCapacity"] = {name: str(amount) for name, amount in consumed}
    if result.share_id:
        found["shareID"] = result.share_id
    return found


def _constraint(
    constraint: DeviceConstraint,
    results: Sequence[DeviceRequestAllocationResult],
    devices: Mapping[_Id, DeviceView],
) -> Document:
    """Return a constraint with the devices that it binds and their values of its attribute."""
    attribute = constraint.match_attribute or constraint.distinct_attribute or ""
    bound = [each for each in results if _is_bound(constraint, each.request)]
    return {
        "kind": "match" if constraint.match_attribute else "distinct",
        "attribute": attribute,
        "requests": list(constraint.requests),
        "values": {
            f"{each.driver}/{each.pool}/{each.device}": _attribute(
                devices.get((each.driver, each.pool, each.device)), attribute
            )
            for each in bound
        },
    }


def _is_bound(constraint: DeviceConstraint, request: str) -> bool:
    """Return whether a constraint applies: to all, or to its requests and their alternatives."""
    names = (request, request.partition("/")[0])
    return not constraint.requests or any(each in constraint.requests for each in names)


def _attribute(view: DeviceView | None, name: str) -> str | None:
    """Return an attribute by its full name, or by the short name in the domain of the driver."""
    if view is None:
        return None
    domain, _, short = name.partition("/")
    if name in view.attributes or domain != view.driver:
        return view.attributes.get(name)
    return view.attributes.get(short)


def _passed_over(
    tracked: Tracked, name: str, results: Sequence[DeviceRequestAllocationResult]
) -> Iterator[Document]:
    for key in dict.fromkeys((each.driver, each.pool) for each in results):
        for view in skipped_devices(tracked.fleet.views_of(key), name):
            yield {
                "driver": view.driver,
                "pool": view.pool,
                "device": view.device,
                "model": view.model,
                "state": tracked.fleet.state_of(view),
                "claims": [each.claim for each in view.holders],
            }


def _configs(claim: ResourceClaim) -> Iterator[Document]:
    """Yield the opaque configurations; after the allocation, also those of the classes."""
    allocation = claim.status.allocation
    configs = allocation.devices.config if allocation is not None else claim.spec.devices.config
    for each in configs:
        if each.opaque is not None:
            yield {
                "source": getattr(each, "source", "") or "FromClaim",
                "requests": list(each.requests),
                "driver": each.opaque.driver,
                "parameters": each.opaque.parameters,
            }


def _conditions(claim: ResourceClaim) -> Iterator[Document]:
    for device in claim.status.devices:
        for each in device.conditions:
            yield {
                "device": f"{device.driver}/{device.pool}/{device.device}",
                "type": each.type,
                "status": each.status,
                "reason": each.reason,
                "message": each.message,
                "since": each.last_transition_time or "",
            }
