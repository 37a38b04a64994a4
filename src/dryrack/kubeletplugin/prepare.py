"""
Plan NodePrepareResources: compute the record of a claim, without writing anything.

No two devices of one container have the same number: see `RecordIndex.first_number`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from dryrack.kinds.quantity import Quantity
from dryrack.kinds.validation.names import capacity_name
from dryrack.kubeletplugin import cdi
from dryrack.kubeletplugin.device_kind import (
    AllocatedDevice,
    PartitionableKind,
    PrepareError,
    PreparingClaim,
)
from dryrack.kubeletplugin.record import ClaimRecord, PreparedDevice, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dryrack.hardware import NodeFaults
    from dryrack.kinds.resource import (
        AllocationResult,
        Device,
        DeviceRequestAllocationResult,
        ResourceClaim,
    )
    from dryrack.kubeletplugin.device_kind import ContainerEdits, DeviceKind
    from dryrack.kubeletplugin.record import RecordIndex


_CounterName = tuple[str, str]
"""The names of a counter set and of a counter in it."""
_NOTHING = Quantity.parse("0")


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices of a kind on a node, by their names."""

    kind: DeviceKind
    node: str
    devices: Mapping[str, Device]
    counters: Mapping[_CounterName, Quantity]
    """The shared counters that devices consume."""

    @staticmethod
    def of(kind: DeviceKind, node: str) -> NodeDevices:
        sets = kind.counter_sets() if isinstance(kind, PartitionableKind) else ()
        counters = {(s.name, name): c.value for s in sets for name, c in s.counters.items()}
        return NodeDevices(kind, node, {each.name: each for each in kind.devices(node)}, counters)

    def present(self, faults: NodeFaults) -> NodeDevices:
        """Return the devices without those that a fault has removed."""
        lost = {name for name in faults.devices if name in self.devices and faults.is_lost(name)}
        if not lost:
            return self
        left = {name: each for name, each in self.devices.items() if name not in lost}
        return replace(self, devices=left)


def plan(claim: ResourceClaim, devices: NodeDevices, others: RecordIndex) -> ClaimRecord:
    """
    Return the record of a claim, given the other prepared claims.

    Raise `PrepareError` if the claim is not allocated, or a device is not on the node or not free.
    """
    consumers = claim.status.reserved_for
    given = tuple(allocated_devices(claim, devices))
    preparing = PreparingClaim(
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        uid=claim.metadata.uid,
        node=devices.node,
        pods=tuple(each.name for each in consumers if each.resource == "pods"),
        devices=frozenset(each.device for each in given),
    )
    record = ClaimRecord(
        uid=claim.metadata.uid,
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        state=State.PREPARING,
        devices=(),
        consumers=tuple(each.uid for each in consumers),
        is_of_one_pod=any(
            owner.kind == "Pod" and owner.controller for owner in claim.metadata.owner_references
        ),
        sequence=others.next_sequence,
    )
    first = others.first_number(record)
    prepared: list[PreparedDevice] = []
    number = first
    for allocated in given:
        if allocated.share_id is not None:
            allocated = replace(
                allocated, shared_with=tuple(_shared_edits(allocated, others, prepared))
            )
        device = _prepare(allocated, preparing, devices.kind, number)
        _check_free(device, preparing, others)
        number += device.edits.numbers
        prepared.append(device)
    _check_counters(prepared, preparing, devices, others)
    return msgspec.structs.replace(record, devices=tuple(prepared), first_number=first)


def allocated_devices(claim: ResourceClaim, devices: NodeDevices) -> Iterable[AllocatedDevice]:
    """Yield the results of the driver; raise `PrepareError` if one is not on the node."""
    kind = devices.kind
    node = devices.node
    known = devices.devices
    what = f"claim {claim.full_name}"
    allocation = claim.status.allocation
    if allocation is None:
        raise PrepareError(
            f"{what}: not allocated; a scheduler allocates it before it binds the pod"
        )
    results = [each for each in allocation.devices.results if each.driver == kind.driver]
    if not results:
        raise PrepareError(f"{what}: has no devices of driver {kind.driver}")
    counts = Counter(result.request for result in results)
    for result in results:
        if result.pool != node or result.device not in known:
            raise PrepareError(
                f"{what}, request {result.request}: device {result.pool}/{result.device} is not "
                f"on node {node}; it has {len(known)} devices of {kind.driver} in pool {node}"
            )
        for name in sorted(result.consumed_capacity):
            # A real API server accepts any text here, and the name becomes part of a variable.
            if any(capacity_name("", name)):
                raise PrepareError(
                    f"{what}, request {result.request}: consumedCapacity {name!r}: not the name "
                    "of a capacity; use NAME or DOMAIN/NAME"
                )
        yield AllocatedDevice(
            request=result.request,
            pool=result.pool,
            device=result.device,
            share_id=result.share_id,
            has_admin_access=bool(result.admin_access),
            consumed_capacity={k: str(v) for k, v in result.consumed_capacity.items()},
            parameters=_parameters(allocation, result),
            devices_of_request=counts[result.request],
        )


def _parameters(
    allocation: AllocationResult, result: DeviceRequestAllocationResult
) -> tuple[object, ...]:
    """Return the parameters for the driver and the request; the last one wins."""
    main = result.request.partition("/")[0]
    return tuple(
        config.opaque.parameters
        for config in allocation.devices.config
        if config.opaque is not None
        and config.opaque.driver == result.driver
        and (not config.requests or {result.request, main} & set(config.requests))
    )


def _prepare(
    device: AllocatedDevice, claim: PreparingClaim, kind: DeviceKind, number: int
) -> PreparedDevice:
    try:
        edits = kind.edits(device, claim, number)
    except PrepareError as error:
        raise PrepareError(f"claim {claim.namespace}/{claim.name}: {error}") from None
    name = cdi.device_name(claim.uid, device)
    return PreparedDevice(
        # The kubelet knows the names of requests, and not of their alternatives.
        requests=(device.request.partition("/")[0],),
        pool=device.pool,
        device=device.device,
        cdi_ids=(f"{kind.cdi_kind}={name}",) if cdi.has_content(edits) else (),
        share_id=device.share_id,
        has_admin_access=device.has_admin_access,
        edits=edits,
    )


def _shared_edits(
    device: AllocatedDevice, others: RecordIndex, prepared: Iterable[PreparedDevice]
) -> Iterator[ContainerEdits]:
    for _, held in others.holders(device.pool, device.device):
        yield held.edits
    for each in prepared:
        if (each.pool, each.device) == (device.pool, device.device):
            yield each.edits


def _check_counters(
    prepared: Iterable[PreparedDevice],
    claim: PreparingClaim,
    devices: NodeDevices,
    others: RecordIndex,
) -> None:
    """Refuse devices that consume more of a counter than other claims leave."""
    left = dict(devices.counters)
    counted = [each for each in prepared if _is_counted(each, devices)] if left else []
    if not counted:
        return
    held = {
        each.device: other
        for other in others.by_uid.values()
        for each in other.devices
        if _is_counted(each, devices)
    }
    for name in (*held, *{each.device: None for each in counted if each.device not in held}):
        for counter, amount in _consumption(devices.devices[name]):
            left[counter] = left.get(counter, _NOTHING) - amount
            if left[counter] < _NOTHING:
                raise PrepareError(_overdrawn(claim, name, counter, devices, held))


def _is_counted(device: PreparedDevice, devices: NodeDevices) -> bool:
    known = devices.devices.get(device.device)
    return known is not None and bool(known.consumes_counters) and not device.has_admin_access


def _consumption(device: Device) -> Iterator[tuple[_CounterName, Quantity]]:
    for consumption in device.consumes_counters:
        for name, counter in consumption.counters.items():
            yield (consumption.counter_set, name), counter.value


def _overdrawn(
    claim: PreparingClaim,
    device: str,
    counter: _CounterName,
    devices: NodeDevices,
    held: Mapping[str, ClaimRecord],
) -> str:
    names = [
        f"{name} of claim {record.namespace}/{record.name} ({record.uid})"
        for name, record in held.items()
        if any(each == counter for each, _ in _consumption(devices.devices[name]))
    ]
    return (
        f"claim {claim.namespace}/{claim.name}: device {claim.node}/{device} consumes more "
        f"{counter[1]} of {counter[0]} than {', '.join(names) or 'other claims'} leave; "
        "it becomes free when their pods end"
    )


def _check_free(device: PreparedDevice, claim: PreparingClaim, others: RecordIndex) -> None:
    """Refuse a device that another claim has, if they cannot share it."""
    if not device.is_exclusive:
        return
    for other, held in others.holders(device.pool, device.device):
        if held.is_exclusive and other.uid != claim.uid:
            raise PrepareError(
                f"claim {claim.namespace}/{claim.name}: device {device.pool}/{device.device} "
                f"is prepared for claim {other.namespace}/{other.name} ({other.uid}); it is "
                "free when the pods of that claim end"
            )
