"""
The devices in use, which the scheduler derives from the claims.

A `UsageTable` follows a cluster as it changes: a change costs what it changes, however much is in
use, and adding and removing a result leaves no trace. Admin access does not count as
use; a share counts as a share together with the capacity it consumes. A `UsageSnapshot` is what
was in use when a search began.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol

from dryrack.allocation.model.features import Features
from dryrack.allocation.model.identity import DeviceId, PoolId, SharedDeviceId
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.quota_usage.amounts import add_amounts
from dryrack.kinds.resource import AllocationResult, DeviceRequestAllocationResult

Capacity = Mapping[str, Quantity]
_Names = AbstractSet[str]


class Taken(Protocol):
    """The devices in use, as an attempt reads them."""

    @property
    def devices(self) -> AbstractSet[DeviceId]:
        """The devices that are used exclusively."""
        ...

    @property
    def capacity(self) -> Mapping[DeviceId, Capacity]:
        """The capacity that shares have consumed."""
        ...

    @property
    def holders(self) -> Mapping[DeviceId, str]: ...

    def is_shared(self, device: DeviceId) -> bool:
        """Return whether a claim has a share of the device."""
        ...

    def in_use(self, pool: PoolId) -> _Names:
        """Return the names of all devices of a pool that any claim has, whole or in part."""
        ...

    def snapshot(self, devices: Iterable[DeviceId]) -> "Taken":
        """Return the current use of these devices as a value."""
        ...


@dataclass(frozen=True, slots=True)
class UsageSnapshot:
    """
    The devices in use at one moment. Only explanations read `holders`, the claims of devices.

    A device with an empty entry in `capacity` is shared without consuming any of it.
    """

    devices: frozenset[DeviceId] = frozenset()
    shared: frozenset[SharedDeviceId] = frozenset()
    capacity: Mapping[DeviceId, Capacity] = field(default_factory=dict)
    holders: Mapping[DeviceId, str] = field(default_factory=dict)
    # The devices in use by pool, and the shared ones; filled on demand.
    _by_pool: dict[PoolId, set[str]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _wholes: set[DeviceId] = field(default_factory=set, init=False, repr=False, compare=False)

    def is_shared(self, device: DeviceId) -> bool:
        if self.shared and not self._wholes:
            self._wholes.update(share.whole for share in self.shared)
        return device in self._wholes

    def in_use(self, pool: PoolId) -> _Names:
        if not self._by_pool:
            for driver, name, device, *_ in (*self.devices, *self.shared, *self.capacity):
                self._by_pool.setdefault(PoolId(driver, name), set()).add(device)
        return self._by_pool.get(pool, _NO_NAMES)

    def snapshot(self, devices: Iterable[DeviceId]) -> "UsageSnapshot":
        return self


class UsageTable:
    """
    The devices in use, as a cluster changes.

    Invariant: it is equal to a new table that has only the allocations in force.
    """

    def __init__(self, features: Features) -> None:
        self._features = features
        self.devices: set[DeviceId] = set()
        self.capacity: dict[DeviceId, Capacity] = {}
        self.holders: dict[DeviceId, str] = {}
        # Claims that have a device although another has it: schedulers that decided at one time.
        self._further: dict[DeviceId, list[str]] = {}
        self._shares: dict[DeviceId, set[str]] = {}
        self._by_pool: dict[PoolId, set[str]] = {}

    def is_shared(self, device: DeviceId) -> bool:
        return device in self._shares

    def in_use(self, pool: PoolId) -> _Names:
        return self._by_pool.get(pool, _NO_NAMES)

    def snapshot(self, devices: Iterable[DeviceId]) -> UsageSnapshot:
        these = tuple(devices)
        shares = ((device, self._shares.get(device, ())) for device in these)
        return UsageSnapshot(
            frozenset(self.devices.intersection(these)),
            frozenset(SharedDeviceId(*device, each) for device, ids in shares for each in ids),
            {device: self.capacity[device] for device in these if device in self.capacity},
            {device: self.holders[device] for device in these if device in self.holders},
        )

    def allocate(self, allocation: AllocationResult, claim: str = "") -> None:
        """Add an allocation."""
        for result, share in _results_in_use(allocation, self._features):
            device = _device(result)
            self.holders.setdefault(device, claim)
            self._by_pool.setdefault(PoolId(*device[:2]), set()).add(device.device)
            if share is None:
                if device in self.devices:
                    self._further.setdefault(device, []).append(claim)
                self.devices.add(device)
                continue
            self._shares.setdefault(device, set()).add(share.share_id)
            if result.consumed_capacity:
                consumed = self.capacity.get(device, {})
                self.capacity[device] = add_amounts(consumed, result.consumed_capacity)

    def release(self, allocation: AllocationResult, claim: str = "") -> None:
        """Remove an allocation."""
        for result, share in _results_in_use(allocation, self._features):
            device = _device(result)
            if share is None and device in self._further:
                others = self._further[device]
                if self.holders.get(device) == claim:
                    self.holders[device] = others.pop(0)
                else:
                    others.remove(claim)
                if not others:
                    del self._further[device]
                continue
            if share is None:
                self.devices.discard(device)
            else:
                shares = self._shares.get(share.whole, set())
                shares.discard(share.share_id)
                if not shares:
                    self._shares.pop(share.whole, None)
                _subtract(self.capacity, device, result.consumed_capacity)
            if device not in self._shares:
                self.holders.pop(device, None)
            self._forget(device)

    def _forget(self, device: DeviceId) -> None:
        if device in self.devices or device in self._shares or device in self.capacity:
            return
        pool = PoolId(*device[:2])
        names = self._by_pool.get(pool, set())
        names.discard(device.device)
        if not names:
            self._by_pool.pop(pool, None)


_NO_NAMES: frozenset[str] = frozenset()


def _results_in_use(
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
