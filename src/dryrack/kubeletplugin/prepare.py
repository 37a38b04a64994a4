"""
NodePrepareResources, planned: a claim and a kind in, a record out.

Nothing is written here. Numbers are given so that no two devices of one container share one: see
`RecordIndex.first_number`.
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
    from dryrack.kubeletplugin.record_index import RecordIndex


_CounterName = tuple[str, str]
"""A counter set and a counter of it."""
_NOTHING = Quantity.parse("0")


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """A kind on a node, with all devices that there are, by their names."""

    kind: DeviceKind
    node: str
    devices: Mapping[str, Device]
    counters: Mapping[_CounterName, Quantity]
    """What devices draw on that share it."""

    @staticmethod
    def of(kind: DeviceKind, node: str) -> NodeDevices:
        sets = kind.counter_sets() if isinstance(kind, PartitionableKind) else ()
        counters = {(s.name, name): c.value for s in sets for name, c in s.counters.items()}
        return NodeDevices(kind, node, {each.name: each for each in kind.devices(node)}, counters)

    def present(self, faults: NodeFaults) -> NodeDevices:
        """Without those that are lost."""
        lost = {name for name in faults.devices if name in self.devices and faults.is_lost(name)}
        if not lost:
            return self
        left = {name: each for name, each in self.devices.items() if name not in lost}
        return replace(self, devices=left)


def plan(claim: ResourceClaim, devices: NodeDevices, others: RecordIndex) -> ClaimRecord:
    """
    What preparing the claim comes to, beside the other claims that are prepared.

    Raises `PrepareError` if it is not allocated, or to devices that are not here or not free.
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
            allocated = replace(allocated, shared_with=tuple(_sharing(allocated, others, prepared)))
        device = _prepared(allocated, preparing, devices.kind, number)
        _check_free(device, preparing, others)
        number += device.edits.numbers
        prepared.append(device)
    _check_counters(prepared, preparing, devices, others)
    return msgspec.structs.replace(record, devices=tuple(prepared), first_number=first)


def allocated_devices(claim: ResourceClaim, devices: NodeDevices) -> Iterable[AllocatedDevice]:
    """The results of the driver, one by one; `PrepareError` if one is not on the node."""
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
            # A real API server takes any text here, and the name becomes that of a variable.
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
    """Those for the driver and the request, in the order of their weight; the last wins."""
    main = result.request.partition("/")[0]
    return tuple(
        config.opaque.parameters
        for config in allocation.devices.config
        if config.opaque is not None
        and config.opaque.driver == result.driver
        and (not config.requests or {result.request, main} & set(config.requests))
    )


def _prepared(
    device: AllocatedDevice, claim: PreparingClaim, kind: DeviceKind, number: int
) -> PreparedDevice:
    try:
        edits = kind.edits(device, claim, number)
    except PrepareError as error:
        raise PrepareError(f"claim {claim.namespace}/{claim.name}: {error}") from None
    name = cdi.device_name(claim.uid, device)
    return PreparedDevice(
        # The kubelet knows requests by name, and not their alternatives.
        requests=(device.request.partition("/")[0],),
        pool=device.pool,
        device=device.device,
        cdi_ids=(f"{kind.cdi_kind}={name}",) if cdi.has_content(edits) else (),
        share_id=device.share_id,
        has_admin_access=device.has_admin_access,
        edits=edits,
    )


def _sharing(
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
    """A whole and its partitions are never had together, by whichever claims."""
    left = dict(devices.counters)
    drawing = [each for each in prepared if _draws(each, devices)] if left else []
    if not drawing:
        return
    held = {
        each.device: other
        for other in others.by_uid.values()
        for each in other.devices
        if _draws(each, devices)
    }
    for name in (*held, *{each.device: None for each in drawing if each.device not in held}):
        for counter, amount in _drawn(devices.devices[name]):
            left[counter] = left.get(counter, _NOTHING) - amount
            if left[counter] < _NOTHING:
                raise PrepareError(_overdrawn(claim, name, counter, devices, held))


def _draws(device: PreparedDevice, devices: NodeDevices) -> bool:
    known = devices.devices.get(device.device)
    return known is not None and bool(known.consumes_counters) and not device.has_admin_access


def _drawn(device: Device) -> Iterator[tuple[_CounterName, Quantity]]:
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
        if any(each == counter for each, _ in _drawn(devices.devices[name]))
    ]
    return (
        f"claim {claim.namespace}/{claim.name}: device {claim.node}/{device} consumes more "
        f"{counter[1]} of {counter[0]} than {', '.join(names) or 'other claims'} leave; "
        "it becomes free when their pods end"
    )


def _check_free(device: PreparedDevice, claim: PreparingClaim, others: RecordIndex) -> None:
    """Two claims that may not have a device together never get it together."""
    if not device.is_exclusive:
        return
    for other, held in others.holders(device.pool, device.device):
        if held.is_exclusive and other.uid != claim.uid:
            raise PrepareError(
                f"claim {claim.namespace}/{claim.name}: device {device.pool}/{device.device} "
                f"is prepared for claim {other.namespace}/{other.name} ({other.uid}); it is "
                "free when the pods of that claim end"
            )
