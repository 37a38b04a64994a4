"""
Small changes to a world, each of which might make a claim fit.

They are derived from the reasons why it does not, smallest first, and only proposed: whoever
proposes one to a person has tried it before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.allocation import Code, blocking_taints, claim_name
from dryrack.kinds.pool_generation import newest_generation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dryrack.allocation import Reason
    from dryrack.kinds.quantity import Quantity
    from dryrack.kinds.resource import (
        Device,
        DeviceRequest,
        DeviceSelector,
        DeviceSubRequest,
        ExactDeviceRequest,
        ResourceClaim,
        ResourceSlice,
    )
    from dryrack.placement.whatif.world import World


# A device that is kept off for one of these would do if there were another like it.
_WOULD_DO = (
    Code.IN_USE,
    Code.TAINTED,
    Code.CONSTRAINT,
    Code.CAPACITY_SHORT,
    Code.COUNTER_SHORT,
)
_SLICES_TRIED_MAX = 12
_CAPACITY = (Code.CAPACITY_SHORT, Code.CAPACITY_POLICY, Code.CAPACITY_ABSENT)
_AMOUNTS_TRIED_MAX = 4


@dataclass(frozen=True, slots=True)
class Change:
    """Something that a person could do, and the world in which it is done."""

    text: str
    world: World
    # Changes of one kind are much the same; who knows one that helps needs no other.
    kind: str = ""


def possible_changes(
    world: World, claim: ResourceClaim, reasons: Sequence[Reason]
) -> Iterator[Change]:
    """What might help, the least intrusive first; each text once."""
    seen: set[str] = set()
    for propose in (_untaint, _free, _complete, _add, _widen, _unconstrain, _shrink, _lessen):
        for change in propose(world, claim, reasons):
            if change.text not in seen:
                seen.add(change.text)
                yield replace(change, kind=propose.__name__)


def _untaint(world: World, claim: ResourceClaim, reasons: Sequence[Reason]) -> Iterator[Change]:
    for reason in reasons:
        if reason.code is not Code.TAINTED:
            continue
        for each, device in _find(world, reason.device):
            for taint in blocking_taints(device, ()):
                rest = tuple(other for other in device.taints if other != taint)
                told = f"remove the taint {taint.key}:{taint.effect} from {reason.device}"
                yield Change(told, _with_device(world, each, changed(device, taints=rest)))
    for rule in world.taint_rules:
        rest_of_rules = tuple(other for other in world.taint_rules if other is not rule)
        told = f"delete the DeviceTaintRule {rule.metadata.name}"
        yield Change(told, replace(world, taint_rules=rest_of_rules))


def _free(world: World, claim: ResourceClaim, reasons: Sequence[Reason]) -> Iterator[Change]:
    short = (Code.IN_USE, Code.COUNTER_SHORT, Code.CAPACITY_SHORT)
    if not any(reason.code in short for reason in reasons):
        return
    for party in world.in_order():
        names = [claim_name(each) for each in party.claims]
        if names and claim_name(claim) not in names:
            gone = party.claims if party.pod is None else (*party.claims, party.pod)
            rest = tuple(each for each in world.parties if each not in gone)
            told = f"free what {', '.join(f'claim {name}' for name in names)} has"
            yield Change(told, replace(world, parties=rest))


def _complete(world: World, claim: ResourceClaim, reasons: Sequence[Reason]) -> Iterator[Change]:
    for reason in reasons:
        if reason.code is not Code.POOL_INCOMPLETE:
            continue
        there = [each for each in world.slices if _pool(each) == reason.device]
        current = newest_generation(there, lambda each: each.spec.pool).slices
        slices = tuple(
            _with_count(each, len(current)) if each in current else each for each in world.slices
        )
        told = f"complete pool {reason.device}: {reason.fact}"
        yield Change(told, replace(world, slices=slices))


def _add(world: World, claim: ResourceClaim, reasons: Sequence[Reason]) -> Iterator[Change]:
    would_do = [reason for reason in reasons if reason.code in _WOULD_DO and reason.device]
    # Of a device in use nobody asked whether it is selected at all.
    would_do.sort(key=lambda reason: reason.code is Code.IN_USE)
    likely = [reason.device for reason in would_do]
    # Devices of one slice are mostly alike.
    firsts = [f"{_pool(s)}/{s.spec.devices[0].name}" for s in world.slices if s.spec.devices]
    for count in sorted({1, *(reason.lacking for reason in reasons if reason.lacking)}):
        for named in dict.fromkeys([*likely[:1], *firsts[:_SLICES_TRIED_MAX]]):
            for each, device in _find(world, named):
                told = f"add {'a device' if count == 1 else f'{count} devices'} like {named}"
                more = tuple(_another(device, number) for number in range(count))
                yield Change(told, _with_devices(world, each, each.spec.devices + more))


def _another(device: Device, number: int) -> Device:
    name = f"{device.name}-more-{number}"
    return changed(device, name=name, taints=(), consumes_counters=())


def _widen(world: World, claim: ResourceClaim, reasons: Sequence[Reason]) -> Iterator[Change]:
    for label in _labels(reasons):
        for index, selector in enumerate(_selectors(claim, label)):
            text = selector.cel.expression if selector.cel else ""
            told = f"drop the selector of request {label}: {text}"
            yield Change(told, world.with_claim(_edited(claim, label, _without(index))))


def _unconstrain(world: World, claim: ResourceClaim, reasons: Sequence[Reason]) -> Iterator[Change]:
    for constraint in claim.spec.devices.constraints:
        rest = tuple(c for c in claim.spec.devices.constraints if c is not constraint)
        devices = changed(claim.spec.devices, constraints=rest)
        kind = "matchAttribute" if constraint.match_attribute else "distinctAttribute"
        name = constraint.match_attribute or constraint.distinct_attribute
        edited = changed(claim, spec=changed(claim.spec, devices=devices))
        yield Change(f"drop the constraint {kind}: {name}", world.with_claim(edited))


def _shrink(world: World, claim: ResourceClaim, reasons: Sequence[Reason]) -> Iterator[Change]:
    """Less of a capacity: what the device has or allows, the most first, or what it gives."""
    for reason in reasons:
        ask = _ask(claim, reason.request)
        if reason.code not in _CAPACITY or ask is None or ask.capacity is None:
            continue
        for name, wanted in ask.capacity.requests.items():
            for _, device in _find(world, reason.device):
                for amount in _amounts(device, name, below=wanted):
                    told = f"ask for {amount} instead of {wanted} of {name}"
                    edited = _edited(claim, reason.request, _asking(name, amount))
                    yield Change(f"{told} in request {reason.request}", world.with_claim(edited))
            told = f"ask for no particular {name} in request {reason.request}"
            yield Change(
                told, world.with_claim(_edited(claim, reason.request, _asking(name, None)))
            )


def _amounts(device: Device, name: str, *, below: Quantity) -> list[Quantity]:
    """How much of a capacity one could ask a device for, if it must be less."""
    bare = name.rpartition("/")[2]
    found = device.capacity.get(name) or device.capacity.get(bare)
    if found is None:
        return []
    amounts = {found.value}
    policy = found.request_policy
    if policy is not None:
        most = policy.valid_range.max if policy.valid_range is not None else None
        amounts.update(each for each in (*policy.valid_values, policy.default, most) if each)
    return sorted((each for each in amounts if each < below), reverse=True)[:_AMOUNTS_TRIED_MAX]


def _asking(
    name: str, amount: Quantity | None
) -> Callable[..., ExactDeviceRequest | DeviceSubRequest]:
    def edit(ask: ExactDeviceRequest | DeviceSubRequest) -> ExactDeviceRequest | DeviceSubRequest:
        assert ask.capacity is not None, "a request for less of what was not asked for"
        rest = {key: each for key, each in ask.capacity.requests.items() if key != name}
        requests = rest if amount is None else {**rest, name: amount}
        return changed(ask, capacity=changed(ask.capacity, requests=requests))

    return edit


def _lessen(world: World, claim: ResourceClaim, reasons: Sequence[Reason]) -> Iterator[Change]:
    for reason in reasons:
        count = _count(claim, reason.request)
        if reason.lacking and count > reason.lacking:
            fewer = count - reason.lacking
            edited = _edited(claim, reason.request, lambda ask, to=fewer: changed(ask, count=to))
            told = f"ask for {fewer} instead of {count} in request {reason.request}"
            yield Change(told, world.with_claim(edited))


# Edits.


def _without(index: int) -> Callable[..., ExactDeviceRequest | DeviceSubRequest]:
    def edit(
        ask: ExactDeviceRequest | DeviceSubRequest,
    ) -> ExactDeviceRequest | DeviceSubRequest:
        rest = tuple(s for place, s in enumerate(ask.selectors) if place != index)
        return changed(ask, selectors=rest)

    return edit


def _edited(
    claim: ResourceClaim,
    label: str,
    edit: Callable[..., ExactDeviceRequest | DeviceSubRequest],
) -> ResourceClaim:
    requests = tuple(
        _edited_request(request, label, edit) for request in claim.spec.devices.requests
    )
    devices = changed(claim.spec.devices, requests=requests)
    return changed(claim, spec=changed(claim.spec, devices=devices))


def _edited_request(
    request: DeviceRequest,
    label: str,
    edit: Callable[..., ExactDeviceRequest | DeviceSubRequest],
) -> DeviceRequest:
    name, _, sub = label.partition("/")
    if request.name != name:
        return request
    if request.exactly is not None and not sub:
        return changed(request, exactly=edit(request.exactly))
    ways = tuple(edit(each) if each.name == sub else each for each in request.first_available)
    return changed(request, first_available=ways)


def _ask(claim: ResourceClaim, label: str) -> ExactDeviceRequest | DeviceSubRequest | None:
    name, _, sub = label.partition("/")
    for request in claim.spec.devices.requests:
        if request.name == name:
            return next((e for e in request.first_available if e.name == sub), request.exactly)
    return None


def _selectors(claim: ResourceClaim, label: str) -> Sequence[DeviceSelector]:
    ask = _ask(claim, label)
    return () if ask is None else ask.selectors


def _count(claim: ResourceClaim, label: str) -> int:
    ask = _ask(claim, label)
    return 0 if ask is None or ask.allocation_mode == "All" else ask.count


def _labels(reasons: Sequence[Reason]) -> Sequence[str]:
    return list(dict.fromkeys(reason.request for reason in reasons if reason.request))


def _find(world: World, named: str) -> Iterator[tuple[ResourceSlice, Device]]:
    for each in world.slices:
        for device in each.spec.devices:
            if f"{_pool(each)}/{device.name}" == named:
                yield each, device


def _pool(each: ResourceSlice) -> str:
    return f"{each.spec.driver}/{each.spec.pool.name}"


def _with_device(world: World, each: ResourceSlice, device: Device) -> World:
    devices = tuple(device if d.name == device.name else d for d in each.spec.devices)
    return _with_devices(world, each, devices)


def _with_devices(world: World, each: ResourceSlice, devices: tuple[Device, ...]) -> World:
    edited = changed(each, spec=changed(each.spec, devices=devices))
    return replace(world, slices=tuple(edited if s is each else s for s in world.slices))


def _with_count(each: ResourceSlice, count: int) -> ResourceSlice:
    pool = changed(each.spec.pool, resource_slice_count=count)
    return changed(each, spec=changed(each.spec, pool=pool))
