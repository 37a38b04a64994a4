"""
Small changes to a world, with which a claim might fit.

They are derived from the reasons for which it does not fit, the smallest first. They are only
proposals: the caller tries each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import SequenceMatcher, get_close_matches
from itertools import takewhile
from operator import eq
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.allocation import Code, blocking_taints, claim_name
from dryrack.cel.selector_parts import compared_texts, split, with_text
from dryrack.hardware.names import qualified
from dryrack.kinds.pool_generation import newest_generation
from dryrack.kinds.quantity import ZERO, Quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from dryrack.allocation import Reason
    from dryrack.cel.device_reads import Read
    from dryrack.kinds.resource import (
        Device,
        DeviceRequest,
        DeviceSubRequest,
        ExactDeviceRequest,
        ResourceClaim,
        ResourceSlice,
    )
    from dryrack.placement.whatif.world import Party, World


# If the claim cannot use a device for one of these reasons, another device like it would fit.
_WOULD_DO = (
    Code.IN_USE,
    Code.TAINTED,
    Code.CONSTRAINT,
    Code.CAPACITY_SHORT,
    Code.COUNTER_SHORT,
    Code.INCOMPATIBLE,
)
_SLICES_TRIED_MAX = 12
_CAPACITY = (Code.CAPACITY_SHORT, Code.CAPACITY_POLICY, Code.CAPACITY_ABSENT)
_AMOUNTS_TRIED_MAX = 4
_TEXTS_TRIED_MAX = 6

# The costs of changes, the smallest first: a correction costs nothing.
_OF_TYPO = 0.0
_OF_OPERATOR = 1.0
_OF_LESS = 2.0
_OF_OTHER_DEVICES = 3.0
_OF_CONDITION = 3.1
_OF_SELECTOR = 3.2
_OF_OTHERS = 4.0
_OF_HARDWARE = 5.0

# The kind of changes that free the devices of other claims.
FREE = "_free"


@dataclass(frozen=True, slots=True)
class WorldChange:
    """A change that a person could make, and the world after it."""

    text: str
    world: World
    # Only the first helpful change of a kind is reported.
    kind: str = ""
    # The cost of the change for the person.
    cost: float = 0.0


def possible_changes(
    world: World, claim: ResourceClaim, reasons: Sequence[Reason], nodes: Sequence[str] = ()
) -> Iterator[WorldChange]:
    """
    Yield changes that might help; each text once, and of each kind the smallest change first.

    `nodes` are the nearest nodes, which get additional devices first.
    """
    seen: set[str] = set()
    small = (_correct, _untaint, _complete, _shrink, _lessen, _reclass, _unconstrain, _widen, _free)
    proposals = [(each.__name__, each(world, claim, reasons)) for each in small]
    for kind, changes in (*proposals, (_add.__name__, _add(world, claim, reasons, nodes))):
        for change in changes:
            if change.text not in seen:
                seen.add(change.text)
                yield replace(change, kind=kind)


def _untaint(
    world: World, claim: ResourceClaim, reasons: Sequence[Reason]
) -> Iterator[WorldChange]:
    for reason in reasons:
        if reason.code is not Code.TAINTED:
            continue
        for each, device in _find(world, reason.device):
            for taint in blocking_taints(device, ()):
                rest = tuple(other for other in device.taints if other != taint)
                text = f"remove the taint {taint.key}:{taint.effect} from {reason.device}"
                untainted = changed(device, taints=rest)
                devices = tuple(untainted if it is device else it for it in each.spec.devices)
                after = _with_devices(world, each, devices)
                yield WorldChange(text, after, cost=_OF_OPERATOR)
    for rule in world.taint_rules:
        rest_of_rules = tuple(other for other in world.taint_rules if other is not rule)
        text = f"delete the DeviceTaintRule {rule.metadata.name}"
        yield WorldChange(text, replace(world, taint_rules=rest_of_rules), cost=_OF_OPERATOR)


def _correct(
    world: World, claim: ResourceClaim, reasons: Sequence[Reason]
) -> Iterator[WorldChange]:
    """Yield corrections of texts in selectors, and of names of capacities and classes."""
    for label in _labels(claim, reasons):
        ask = _ask(claim, label)
        if ask is None:
            continue
        names = [each.metadata.name for each in world.classes]
        if ask.device_class_name not in names:
            yield from _of_class(world, claim, label, names, cost=_OF_TYPO)
        yield from _correct_capacity(world, claim, label, reasons)
        for index, selector in enumerate(ask.selectors):
            expression = selector.cel.expression if selector.cel else ""
            for read, literal in compared_texts(expression):
                known = _texts(world, read)
                meant = str(literal.value)
                for text in _closest(meant, known):
                    # A text that devices have is no typo; a similar text selects other devices.
                    is_typo = meant not in known
                    edited = _with_expression(index, with_text(expression, literal, text))
                    yield WorldChange(
                        f"use {text!r} instead of {meant!r} in the selector of request {label}",
                        world.with_claim(_edit(claim, label, edited)),
                        cost=_OF_TYPO if is_typo else _OF_OTHER_DEVICES,
                    )


def _correct_capacity(
    world: World, claim: ResourceClaim, label: str, reasons: Sequence[Reason]
) -> Iterator[WorldChange]:
    ask = _ask(claim, label)
    for reason in reasons:
        if reason.code is not Code.CAPACITY_ABSENT or reason.request != label or ask is None:
            continue
        for _, device in _find(world, reason.device):
            for name in () if ask.capacity is None else ask.capacity.requests:
                bare = name.rpartition("/")[2]
                same = [each for each in device.capacity if each.rpartition("/")[2] == bare]
                for known in same or get_close_matches(name, list(device.capacity), n=1):
                    if name not in device.capacity:
                        edited = _edit(claim, label, _with_renamed_capacity(name, known))
                        text = f"use capacity {known} instead of {name} in request {label}"
                        yield WorldChange(text, world.with_claim(edited), cost=_OF_TYPO)


def _reclass(
    world: World, claim: ResourceClaim, reasons: Sequence[Reason]
) -> Iterator[WorldChange]:
    """Yield other classes, where the class selects no device of the nearest nodes."""
    names = [each.metadata.name for each in world.classes]
    for label in _labels(claim, [each for each in reasons if each.code is Code.NO_DEVICES]):
        yield from _of_class(world, claim, label, names, cost=_OF_OTHER_DEVICES)


def _of_class(
    world: World, claim: ResourceClaim, label: str, names: Sequence[str], *, cost: float
) -> Iterator[WorldChange]:
    ask = _ask(claim, label)
    if ask is None:
        return
    before = ask.device_class_name
    others = [each for each in names if each != before]
    for name in _closest(before, others):
        edited = _edit(claim, label, lambda it, to=name: changed(it, device_class_name=to))
        text = f"use class {name} instead of {before} in request {label}"
        yield WorldChange(text, world.with_claim(edited), cost=cost)


def _free(world: World, claim: ResourceClaim, reasons: Sequence[Reason]) -> Iterator[WorldChange]:
    """Yield other parties to delete, first those with devices that the claim needs."""
    short = (Code.IN_USE, Code.INCOMPATIBLE, Code.COUNTER_SHORT, Code.CAPACITY_SHORT)
    lacking = {reason.device for reason in reasons if reason.code in short}
    if not lacking:
        return
    others = [
        party
        for party in world.in_order()
        if party.claims and claim_name(claim) not in map(claim_name, party.claims)
    ]
    for party in sorted(others, key=lambda it: not _has_device_of(it, lacking)):
        names = [claim_name(each) for each in party.claims]
        gone = party.claims if party.pod is None else (*party.claims, party.pod)
        rest = tuple(each for each in world.parties if each not in gone)
        text = f"free the devices of {', '.join(f'claim {name}' for name in names)}"
        yield WorldChange(text, replace(world, parties=rest), cost=_OF_OTHERS)


def _has_device_of(party: Party, devices: Collection[str]) -> bool:
    return any(
        f"{each.driver}/{each.pool}/{each.device}" in devices
        for claim in party.claims
        if claim.status.allocation is not None
        for each in claim.status.allocation.devices.results
    )


def _complete(
    world: World, claim: ResourceClaim, reasons: Sequence[Reason]
) -> Iterator[WorldChange]:
    for reason in reasons:
        if reason.code is not Code.POOL_INCOMPLETE:
            continue
        of_pool = [each for each in world.slices if _pool(each) == reason.device]
        current = newest_generation(of_pool, lambda each: each.spec.pool).slices
        slices = []
        for each in world.slices:
            pool = changed(each.spec.pool, resource_slice_count=len(current))
            complete = changed(each, spec=changed(each.spec, pool=pool))
            slices.append(complete if each in current else each)
        text = f"complete pool {reason.device}: {reason.fact}"
        yield WorldChange(text, replace(world, slices=tuple(slices)), cost=_OF_OPERATOR)


def _add(
    world: World, claim: ResourceClaim, reasons: Sequence[Reason], nodes: Sequence[str]
) -> Iterator[WorldChange]:
    would_do = [reason for reason in reasons if reason.code in _WOULD_DO and reason.device]
    # Selectors are not evaluated for a device in use.
    would_do.sort(key=lambda reason: reason.code is Code.IN_USE)
    likely = [reason.device for reason in would_do]
    # Devices of one slice are mostly alike. The closest node needs the fewest additional devices.
    rank = {name: place for place, name in enumerate(nodes)}
    closest_first = sorted(
        world.slices, key=lambda it: rank.get(it.spec.node_name or "", len(rank))
    )
    firsts = [f"{_pool(s)}/{s.spec.devices[0].name}" for s in closest_first if s.spec.devices]
    counts = sorted({1, *(reason.lacking for reason in reasons if reason.lacking)})
    # Each count has a turn before too many changes were tried.
    slices_tried = max(1, _SLICES_TRIED_MAX // len(counts))
    for count in counts:
        for named in list(dict.fromkeys([*likely[:1], *firsts]))[:slices_tried]:
            for each, device in _find(world, named):
                text = f"add {'a device' if count == 1 else f'{count} devices'} like {named}"
                names = [f"{device.name}-more-{number}" for number in range(count)]
                more = [changed(device, name=it, taints=(), consumes_counters=()) for it in names]
                after = _with_devices(world, each, (*each.spec.devices, *more))
                yield WorldChange(text, after, cost=_OF_HARDWARE + count)


def _widen(world: World, claim: ResourceClaim, reasons: Sequence[Reason]) -> Iterator[WorldChange]:
    """Yield selectors without one condition, or without all of them."""
    for label in _labels(claim, reasons):
        ask = _ask(claim, label)
        for index, selector in enumerate(ask.selectors if ask is not None else ()):
            expression = selector.cel.expression if selector.cel else ""
            conditions = split(expression)
            for place, condition in enumerate(conditions if len(conditions) > 1 else ()):
                rest = " && ".join(conditions[:place] + conditions[place + 1 :])
                edited = _edit(claim, label, _with_expression(index, rest))
                text = f"remove {condition} from the selector of request {label}"
                yield WorldChange(text, world.with_claim(edited), cost=_OF_CONDITION)
            text = f"remove the selector of request {label}: {expression}"
            edited = _edit(claim, label, _without_selector(index))
            yield WorldChange(text, world.with_claim(edited), cost=_OF_SELECTOR)


def _unconstrain(
    world: World, claim: ResourceClaim, reasons: Sequence[Reason]
) -> Iterator[WorldChange]:
    for constraint in claim.spec.devices.constraints:
        rest = tuple(c for c in claim.spec.devices.constraints if c is not constraint)
        devices = changed(claim.spec.devices, constraints=rest)
        kind = "matchAttribute" if constraint.match_attribute else "distinctAttribute"
        name = constraint.match_attribute or constraint.distinct_attribute
        edited = changed(claim, spec=changed(claim.spec, devices=devices))
        text = f"remove the constraint {kind}: {name}"
        yield WorldChange(text, world.with_claim(edited), cost=_OF_CONDITION)


def _shrink(world: World, claim: ResourceClaim, reasons: Sequence[Reason]) -> Iterator[WorldChange]:
    """Yield smaller amounts of a capacity: the most that is left, or that the device allows."""
    changes: list[WorldChange] = []
    for reason in reasons:
        ask = _ask(claim, reason.request)
        if reason.code not in _CAPACITY or ask is None or ask.capacity is None:
            continue
        for name, wanted in ask.capacity.requests.items():
            for _, device in _find(world, reason.device):
                for amount in _amounts(device, name, below=wanted, left=reason.left):
                    text = f"lower {name} from {wanted} to {amount} in request {reason.request}"
                    edited = _edit(claim, reason.request, _with_capacity(name, amount))
                    share = 1 - amount.nanos / wanted.nanos
                    changes.append(
                        WorldChange(text, world.with_claim(edited), cost=_OF_LESS + share)
                    )
            text = f"remove capacity {name} from request {reason.request}"
            edited = _edit(claim, reason.request, _with_capacity(name, None))
            changes.append(WorldChange(text, world.with_claim(edited), cost=_OF_CONDITION))
    yield from sorted(changes, key=lambda change: change.cost)


def _amounts(
    device: Device, name: str, *, below: Quantity, left: Quantity | None
) -> list[Quantity]:
    """Return the amounts of a capacity that a request could ask of a device, the most first."""
    bare = name.rpartition("/")[2]
    capacity = device.capacity.get(name) or device.capacity.get(bare)
    if capacity is None:
        return []
    amounts = {capacity.value}
    if left is not None:
        amounts.add(Quantity.of(left.nanos, below.format))
    policy = capacity.request_policy
    if policy is not None:
        limits = policy.valid_range
        most = limits.max if limits is not None else None
        amounts.update(each for each in (*policy.valid_values, policy.default, most) if each)
        if limits is not None and limits.step is not None and left is not None:
            start = limits.min.nanos if limits.min is not None else 0
            steps = (left.nanos - start) // limits.step.nanos if limits.step.nanos else -1
            if steps >= 0:
                amounts.add(Quantity.of(start + steps * limits.step.nanos, below.format))
    most_first = sorted((each for each in amounts if ZERO < each < below), reverse=True)
    # Another device may have more left than this one.
    return most_first[:_AMOUNTS_TRIED_MAX]


def _with_capacity(
    name: str, amount: Quantity | None
) -> Callable[..., ExactDeviceRequest | DeviceSubRequest]:
    def edit(ask: ExactDeviceRequest | DeviceSubRequest) -> ExactDeviceRequest | DeviceSubRequest:
        assert ask.capacity is not None, "the request has a capacity"
        rest = {key: each for key, each in ask.capacity.requests.items() if key != name}
        requests = rest if amount is None else {**rest, name: amount}
        return changed(ask, capacity=changed(ask.capacity, requests=requests))

    return edit


def _with_renamed_capacity(
    name: str, known: str
) -> Callable[..., ExactDeviceRequest | DeviceSubRequest]:
    def edit(ask: ExactDeviceRequest | DeviceSubRequest) -> ExactDeviceRequest | DeviceSubRequest:
        assert ask.capacity is not None, "the request names a capacity"
        requests = {known if key == name else key: it for key, it in ask.capacity.requests.items()}
        return changed(ask, capacity=changed(ask.capacity, requests=requests))

    return edit


def with_count(claim: ResourceClaim, label: str, count: int) -> ResourceClaim:
    """Return the claim with another number of devices in a request."""
    return _edit(claim, label, lambda ask: changed(ask, count=count))


def _lessen(world: World, claim: ResourceClaim, reasons: Sequence[Reason]) -> Iterator[WorldChange]:
    for reason in reasons:
        ask = _ask(claim, reason.request)
        count = 0 if ask is None or ask.allocation_mode == "All" else ask.count
        if reason.lacking and count > reason.lacking:
            fewer = count - reason.lacking
            edited = with_count(claim, reason.request, fewer)
            text = f"lower the count of request {reason.request} from {count} to {fewer}"
            yield WorldChange(
                text, world.with_claim(edited), cost=_OF_LESS + reason.lacking / count
            )


def _without_selector(index: int) -> Callable[..., ExactDeviceRequest | DeviceSubRequest]:
    def edit(
        ask: ExactDeviceRequest | DeviceSubRequest,
    ) -> ExactDeviceRequest | DeviceSubRequest:
        rest = tuple(s for place, s in enumerate(ask.selectors) if place != index)
        return changed(ask, selectors=rest)

    return edit


def _with_expression(
    index: int, expression: str
) -> Callable[..., ExactDeviceRequest | DeviceSubRequest]:
    def edit(ask: ExactDeviceRequest | DeviceSubRequest) -> ExactDeviceRequest | DeviceSubRequest:
        selector = ask.selectors[index]
        assert selector.cel is not None, "the expression is CEL"
        edited = changed(selector, cel=changed(selector.cel, expression=expression))
        rest = ask.selectors[index + 1 :]
        return changed(ask, selectors=(*ask.selectors[:index], edited, *rest))

    return edit


def _edit(
    claim: ResourceClaim,
    label: str,
    edit: Callable[..., ExactDeviceRequest | DeviceSubRequest],
) -> ResourceClaim:
    requests = tuple(_edit_request(request, label, edit) for request in claim.spec.devices.requests)
    devices = changed(claim.spec.devices, requests=requests)
    return changed(claim, spec=changed(claim.spec, devices=devices))


def _edit_request(
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


def _labels(claim: ResourceClaim, reasons: Sequence[Reason]) -> Sequence[str]:
    """Return the requests that the reasons are about; all, if an error is about none of them."""
    named = dict.fromkeys(reason.request for reason in reasons if reason.request)
    if named or not any(reason.code is Code.ERROR for reason in reasons):
        return list(named)
    requests = claim.spec.devices.requests
    exact = [each.name for each in requests if each.exactly is not None]
    return exact + [f"{it.name}/{each.name}" for it in requests for each in it.first_available]


def _closest(text: str, known: Iterable[str]) -> list[str]:
    """Return the most similar texts; of equally similar ones, those with the same start first."""

    def unlikeness(other: str) -> tuple[float, int, str]:
        ratio = SequenceMatcher(None, text, other).ratio()
        return -ratio, -sum(takewhile(bool, map(eq, text, other))), other

    return sorted(known, key=unlikeness)[:_TEXTS_TRIED_MAX]


def _texts(world: World, read: Read) -> list[str]:
    """Return the values of devices for the field that a selector reads."""
    if read.kind == "driver":
        return sorted({each.spec.driver for each in world.slices})
    return sorted(
        {
            attribute.string_value
            for each in world.slices
            for device in each.spec.devices
            for name, attribute in device.attributes.items()
            if attribute.string_value is not None
            and qualified(name, each.spec.driver) == f"{read.domain}/{read.name}"
        }
    )


def _find(world: World, named: str) -> Iterator[tuple[ResourceSlice, Device]]:
    for each in world.slices:
        for device in each.spec.devices:
            if f"{_pool(each)}/{device.name}" == named:
                yield each, device


def _pool(each: ResourceSlice) -> str:
    return f"{each.spec.driver}/{each.spec.pool.name}"


def _with_devices(world: World, each: ResourceSlice, devices: tuple[Device, ...]) -> World:
    edited = changed(each, spec=changed(each.spec, devices=devices))
    return replace(world, slices=tuple(edited if s is each else s for s in world.slices))
