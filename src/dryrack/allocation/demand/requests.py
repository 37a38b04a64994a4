"""
Exact requests and subrequests in one form, checked as Kubernetes checks them.

An `Ask` is one way to satisfy one request: the request itself, or one of its subrequests.
Checking happens in the order of Kubernetes, so that of several mistakes the same one is
reported, in the same words.
"""

from collections.abc import Mapping

import msgspec

from dryrack.allocation.model.errors import AllocationError, MissingClassError
from dryrack.allocation.model.features import Features
from dryrack.allocation.model.identity import claim_name
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.releases import AllocationBehaviour
from dryrack.kinds.resource import (
    CapacityRequirements,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)

# The API allows this many results in one claim.
RESULTS_MAX = 32


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A request or subrequest whose class is known."""

    claim_name: str
    name: str
    # The request that has it as a subrequest.
    parent: str | None
    device_class: DeviceClass
    count: int
    takes_all: bool
    admin: bool
    class_selectors: tuple[str, ...]
    selectors: tuple[str, ...]
    tolerations: tuple[DeviceToleration, ...]
    capacity: Mapping[str, Quantity]
    # Expressions by the name of the attribute.
    derived: Mapping[str, str]

    @property
    def label(self) -> str:
        """The name it has in results."""
        return self.name if self.parent is None else f"{self.parent}/{self.name}"

    @property
    def base(self) -> str:
        """The name of the request."""
        return self.name if self.parent is None else self.parent


def check_gates(claim: ResourceClaim, request: DeviceRequest, features: Features) -> None:
    """Refuse a request that needs a disabled feature, rather than ignore a part of it."""
    if request.first_available and not features.prioritized_list:
        where = f"claim {claim_name(claim)}, request {request.name}"
        raise AllocationError(
            f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled"
        )
    if features.consumable_capacity:
        return
    off = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
    if request.exactly is not None and request.exactly.capacity is not None:
        raise AllocationError(f"claim {claim_name(claim)}, request {request.name}: {off}")
    for subrequest in request.first_available:
        if subrequest.capacity is not None:
            raise AllocationError(f"claim {claim_name(claim)}, subrequest {subrequest.name}: {off}")


def asks_of(
    claim: ResourceClaim, request: DeviceRequest, classes: Mapping[str, DeviceClass]
) -> "tuple[Draft, ...]":
    """Return the ways to satisfy the request, not yet checked."""
    if not request.first_available:
        exactly = request.exactly or ExactDeviceRequest()
        return (Draft(claim, request.name, None, exactly, classes),)
    return tuple(
        Draft(claim, subrequest.name, request.name, subrequest, classes)
        for subrequest in request.first_available
    )


class Draft(msgspec.Struct, frozen=True):
    """A way to satisfy a request, as it was written."""

    claim: ResourceClaim
    name: str
    parent: str | None
    wanted: ExactDeviceRequest | DeviceSubRequest
    classes: Mapping[str, DeviceClass]

    def check(self, features: Features, behaviour: AllocationBehaviour) -> Ask:
        """Return the ask, or raise the first mistake in it."""
        wanted = self.wanted
        claim = claim_name(self.claim)
        where = f"claim {claim}, request {self.name}"
        if wanted.selectors:
            for index, selector in enumerate(wanted.selectors):
                if selector.cel is None:
                    raise AllocationError(
                        f"{where}, selector #{index}: CEL expression empty "
                        "(unsupported selector type?)"
                    )
        admin = wanted.admin_access if isinstance(wanted, ExactDeviceRequest) else None
        if admin is not None and not features.admin_access:
            raise AllocationError(
                f"{where}: admin access is requested, but the feature is disabled"
            )
        derived: Mapping[str, str] = {}
        if wanted.derived_attributes and behaviour.has_alpha_fields_of_1_37:
            derived = {each.name: each.expression for each in wanted.derived_attributes}
            if not features.derived_attributes:
                raise AllocationError(
                    f"{where}: cannot handle request with derived attributes, "
                    "the feature is disabled"
                )
        name = self.wanted.device_class_name
        if not name:
            raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
        device_class = self.classes.get(name)
        if device_class is None:
            raise MissingClassError(claim, self.name, name)
        if wanted.allocation_mode not in ("ExactCount", "All"):
            raise AllocationError(f"{where}: unsupported count mode {wanted.allocation_mode}")
        return Ask(
            claim_name=claim,
            name=self.name,
            parent=self.parent,
            device_class=device_class,
            count=wanted.count,
            takes_all=wanted.allocation_mode == "All",
            admin=bool(admin),
            class_selectors=_expressions(device_class.spec.selectors),
            selectors=_expressions(wanted.selectors),
            tolerations=wanted.tolerations,
            capacity=_requested_capacity(wanted.capacity),
            derived=derived,
        )


def _expressions(selectors: tuple[DeviceSelector, ...]) -> tuple[str, ...]:
    if not selectors:
        return ()
    return tuple([selector.cel.expression for selector in selectors if selector.cel is not None])


def _requested_capacity(capacity: CapacityRequirements | None) -> Mapping[str, Quantity]:
    return {} if capacity is None else capacity.requests
