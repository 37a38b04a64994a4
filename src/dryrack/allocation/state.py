"""
Which devices are in use, as the scheduler works it out from the claims.

`AllocatedState` is a value: giving a result out and taking it back are functions from one
state to the next, and one undoes the other exactly. Admin access does not count as use; a
share counts as a share together with the capacity it consumes.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dryrack.allocation.features import Features
from dryrack.allocation.identity import DeviceId, SharedDeviceId, claim_name
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import AllocationResult, DeviceRequestAllocationResult, ResourceClaim

Capacity = Mapping[str, Quantity]


@dataclass(frozen=True, slots=True)
class AllocatedState:
    """
    What is taken. `holders` only serves explanations: the claim that has a device.

    A device with an empty entry in `capacity` is shared without consuming any of it.
    """

    devices: frozenset[DeviceId] = frozenset()
    shared: frozenset[SharedDeviceId] = frozenset()
    capacity: Mapping[DeviceId, Capacity] = field(default_factory=dict)
    holders: Mapping[DeviceId, str] = field(default_factory=dict)

    @staticmethod
    def from_claims(claims: Iterable[ResourceClaim], features: Features) -> "AllocatedState":
        """Everything that the claims' statuses say is allocated."""
        given = [
            (claim.status.allocation, claim_name(claim))
            for claim in claims
            if claim.status.allocation is not None
        ]
        return AllocatedState().allocate_all(given, features)

    def allocate(
        self, allocation: AllocationResult, features: Features, *, claim: str = ""
    ) -> "AllocatedState":
        """The state once the allocation is in force."""
        return self.allocate_all([(allocation, claim)], features)

    def allocate_all(
        self, allocations: Iterable[tuple[AllocationResult, str]], features: Features
    ) -> "AllocatedState":
        """The state once all the allocations, each of a claim, are in force."""
        devices, shared = set(self.devices), set(self.shared)
        capacity, holders = dict(self.capacity), dict(self.holders)
        for allocation, claim in allocations:
            for result, share in _counted(allocation, features):
                device = _device(result)
                holders.setdefault(device, claim)
                if share is None:
                    devices.add(device)
                    continue
                shared.add(share)
                if result.consumed_capacity:
                    capacity[device] = _plus(capacity.get(device, {}), result.consumed_capacity)
        return AllocatedState(frozenset(devices), frozenset(shared), capacity, holders)

    def release(self, allocation: AllocationResult, features: Features) -> "AllocatedState":
        """The state once the allocation is gone."""
        devices, shared = set(self.devices), set(self.shared)
        capacity, holders = dict(self.capacity), dict(self.holders)
        for result, share in _counted(allocation, features):
            device = _device(result)
            if share is None:
                devices.discard(device)
            else:
                shared.discard(share)
                _subtract(capacity, device, result.consumed_capacity)
            if not any(other.whole == device for other in shared):
                holders.pop(device, None)
        return AllocatedState(frozenset(devices), frozenset(shared), capacity, holders)


def _counted(
    allocation: AllocationResult, features: Features
) -> Iterator[tuple[DeviceRequestAllocationResult, SharedDeviceId | None]]:
    for result in allocation.devices.results:
        if result.admin_access:
            continue
        if features.consumable_capacity and result.share_id is not None:
            yield result, SharedDeviceId(*_device(result), result.share_id)
        else:
            yield result, None


def _device(result: DeviceRequestAllocationResult) -> DeviceId:
    return DeviceId(result.driver, result.pool, result.device)


def _plus(left: Capacity, right: Capacity) -> Capacity:
    total = dict(left)
    for name, quantity in right.items():
        total[name] = total[name] + quantity if name in total else quantity
    return total


def _subtract(capacity: dict[DeviceId, Capacity], device: DeviceId, consumed: Capacity) -> None:
    if device not in capacity:
        return
    left = {
        name: quantity - consumed[name] if name in consumed else quantity
        for name, quantity in capacity[device].items()
    }
    if any(quantity.nanos for quantity in left.values()):
        capacity[device] = left
    else:
        del capacity[device]
