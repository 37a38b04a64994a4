"""
A change to try on a copy of the cluster: other requests, another node or priority, or a suggestion.

The claims of a pod, of a gang's pods, or one claim are changed in a copy of the world, and the
scheduler's code decides in it. Objects that have devices are first deallocated in the copy, so that
the decision is the one for a new object.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace as changed

from dryrack.allocation import claim_name
from dryrack.base.errors import DryrackError
from dryrack.base.text import hint
from dryrack.kinds.quantity import Quantity, QuantityError
from dryrack.kinds.resource import (
    CapacityRequirements,
    CELDeviceSelector,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
)
from dryrack.placement import as_if_unbound, find_gang, nodes_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from dryrack.kinds.resource import DeviceClaim, ResourceClaim
    from dryrack.placement import World

# The maximum number of devices and of requests of a claim.
_COUNT_MAX = 32
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(/[a-z0-9]([-a-z0-9]*[a-z0-9])?)?")
_PRIORITY_MAX = 10**9


class TrialError(DryrackError):
    """The change to try is invalid."""


class WantedRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request of a changed claim; what it does not have stays as in the present request."""

    # "name", or "name/alternative" of `firstAvailable`.
    name: str
    device_class: str = msgspec.field(name="class")
    # None requests all devices that match.
    count: int | None = 1
    selectors: tuple[str, ...] = ()
    capacity: dict[str, str] = {}


class WantedClaim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All requests of a changed claim; of a gang, of all claims with the same requests."""

    claim: str
    requests: tuple[WantedRequest, ...]


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The changes in the copy; None means no change."""

    # Names of the claim and of the request, "name" or "name/alternative"; empty means all.
    claim: str = ""
    request: str = ""
    device_class: str | None = msgspec.field(default=None, name="class")
    selectors: tuple[str, ...] | None = None
    count: int | None = None
    claims: tuple[WantedClaim, ...] = ()
    # The only node to try, and the priority of the pods.
    node: str | None = None
    priority: int | None = None

    @property
    def is_of_claims(self) -> bool:
        return any(each is not None for each in (self.device_class, self.selectors, self.count))

    @property
    def wanted(self) -> tuple[WantedRequest, ...]:
        """The wanted requests of all claims."""
        return tuple(each for claim in self.claims for each in claim.requests)


class Trial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The object to explain, and the change to try."""

    kind: str
    namespace: str
    name: str
    change: Change = Change()
    # A text of `helps` of the explanation: the change that it suggests.
    help: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


def read_trial(body: bytes) -> Trial:
    """Return the trial in a body; raise a `TrialError` with the field that is wrong."""
    try:
        trial = msgspec.json.decode(body, type=Trial)
    except msgspec.DecodeError as error:
        raise TrialError(f"{error}; see docs/reference/dashboard-api.md") from None
    if trial.kind not in ("pod", "claim", "gang"):
        raise TrialError(f"kind {trial.kind!r}: must be pod, claim or gang")
    change = trial.change
    for count in (change.count, *(each.count for each in change.wanted)):
        if count is not None and not 1 <= count <= _COUNT_MAX:
            raise TrialError(f"count {count}: must be from 1 to {_COUNT_MAX}")
    if change.priority is not None and abs(change.priority) > _PRIORITY_MAX:
        raise TrialError(f"priority {change.priority}: must be at most {_PRIORITY_MAX}")
    for claim in change.claims:
        _check_requests(claim.requests)
    return trial


def _check_requests(requests: Sequence[WantedRequest]) -> None:
    names = [each.name for each in requests]
    if not 1 <= len(names) <= _COUNT_MAX:
        raise TrialError(f"requests: a claim has 1 to {_COUNT_MAX} requests, got {len(names)}")
    for name in names:
        if not _NAME.fullmatch(name):
            problem = "must be lowercase letters, digits and -, or request/alternative"
            raise TrialError(f"request {name!r}: {problem}")
        if names.count(name) > 1 or name.partition("/")[0] in set(names) - {name}:
            raise TrialError(f"request {name!r}: the name is used more than once")
    for each in requests:
        for capacity, amount in each.capacity.items():
            try:
                Quantity.parse(amount)
            except QuantityError as error:
                text = f"request {each.name!r}, capacity {capacity!r}: {amount!r}: {error}"
                raise TrialError(text) from None


def apply_change(world: World, trial: Trial) -> World:
    """Return the changed copy of the objects, in which the scheduler decides."""
    change = trial.change
    _check(world, change)
    pods = _pods(world, trial)
    for party in [each for each in world.in_order() if each.pod is not None]:
        assert party.pod is not None, "selected by its pod"
        if party.pod.full_name in pods and party.is_bound:
            world = as_if_unbound(world, party)
    if change.priority is not None:
        world = world.with_priority(pods, change.priority)
    copies = [
        _with_requests(claim, wanted.requests)
        for wanted in change.claims
        for claim in _claims(world, trial, pods, wanted.claim)
    ]
    for copy in copies:
        world = world.with_claim(copy)
    if not change.is_of_claims:
        return world
    claims = _claims(world, trial, pods, change.claim)
    copies = [_change_claim(each, change) for each in claims]
    if all(copy is each for copy, each in zip(copies, claims, strict=True)):
        of = f"request {change.request!r}" if change.request else "request"
        raise TrialError(f"{trial.kind} {trial.full_name} has no {of} to change")
    for copy in copies:
        world = world.with_claim(copy)
    return world


def _check(world: World, change: Change) -> None:
    classes = [each.metadata.name for each in world.classes]
    for name in (change.device_class, *(each.device_class for each in change.wanted)):
        if name is not None and name not in classes:
            raise TrialError(f"class {name!r} not found; {hint(name, classes)}")
    nodes = [each.metadata.name for each in nodes_of(world)[0]]
    if change.node is not None and change.node not in nodes:
        raise TrialError(f"node {change.node!r} not found; {hint(change.node, nodes)}")


def _pods(world: World, trial: Trial) -> Collection[str]:
    """Return the pods whose claims change, by "namespace/name"."""
    if trial.kind == "pod":
        return {trial.full_name}
    if trial.kind == "gang":
        gang = find_gang(world, trial.full_name)
        return {f"{gang.key.namespace}/{each}" for each in (*gang.placed, *gang.waiting)}
    return {
        party.pod.full_name
        for party in world.in_order()
        if party.pod is not None and trial.full_name in map(claim_name, party.claims)
    }


def _claims(world: World, trial: Trial, pods: Collection[str], wanted: str) -> list[ResourceClaim]:
    """Return the claims that change; of a gang, all that are like the claim of the change."""
    claims = _own_claims(world, trial, pods)
    if not wanted:
        return claims
    named = [each for each in claims if each.metadata.name == wanted]
    if not named:
        names = [each.metadata.name for each in claims]
        raise TrialError(f"claim {wanted!r} not found; {hint(wanted, names)}")
    if trial.kind == "gang":
        return [each for each in claims if each.spec.devices == named[0].spec.devices]
    return named


def _own_claims(world: World, trial: Trial, pods: Collection[str]) -> list[ResourceClaim]:
    """Return the claims of the object."""
    found: dict[str, ResourceClaim] = {}
    for party in world.in_order():
        pod = party.pod
        is_asked = pod is not None and pod.full_name in pods
        for claim in party.claims:
            name = claim_name(claim)
            if name == trial.full_name if trial.kind == "claim" else is_asked:
                found[name] = claim
    return list(found.values())


def current_values(world: World, trial: Trial) -> dict[str, Any]:
    """Return what a change starts from: the claims with their requests, and the priority."""
    pods = _pods(world, trial)
    shapes: list[tuple[ResourceClaim, int]] = []
    for claim in _own_claims(world, trial, pods):
        for place, (other, count) in enumerate(shapes):
            if trial.kind == "gang" and other.spec.devices == claim.spec.devices:
                shapes[place] = (other, count + 1)
                break
        else:
            shapes.append((claim, 1))
    priorities = [each.spec.priority or 0 for each in world.pods if each.full_name in pods]
    return {
        "priority": max(priorities, default=None),
        "claims": [
            {"claim": claim.metadata.name, "alike": count, "requests": list(_requests_of(claim))}
            for claim, count in shapes
        ],
    }


def _requests_of(claim: ResourceClaim) -> Iterator[dict[str, Any]]:
    """Yield the requests of a claim and their alternatives, as a change has them."""
    for request in claim.spec.devices.requests:
        ways: dict[str, ExactDeviceRequest | DeviceSubRequest] = {}
        if request.exactly is not None:
            ways[request.name] = request.exactly
        ways |= {f"{request.name}/{each.name}": each for each in request.first_available}
        for name, way in ways.items():
            capacity = way.capacity.requests if way.capacity is not None else {}
            cels = [each.cel.expression for each in way.selectors if each.cel is not None]
            yield {
                "name": name,
                "class": way.device_class_name,
                "count": None if way.allocation_mode == "All" else way.count or 1,
                "selectors": cels,
                "capacity": {key: str(amount) for key, amount in capacity.items()},
            }


def _change_claim(claim: ResourceClaim, change: Change) -> ResourceClaim:
    """Return the claim with changed requests and no allocation, or the same claim."""
    before = claim.spec.devices
    requests = tuple(_change_request(each, change) for each in before.requests)
    if all(new is old for new, old in zip(requests, before.requests, strict=True)):
        return claim
    return _with_devices(claim, changed(before, requests=requests))


def _with_requests(claim: ResourceClaim, wanted: Sequence[WantedRequest]) -> ResourceClaim:
    """Return the claim with the wanted requests, and with the constraints that are about them."""
    before = claim.spec.devices
    requests = _wanted_requests(before.requests, wanted)
    names = {each.name for each in requests} | {each.name for each in wanted}
    rest = ((each, tuple(it for it in each.requests if it in names)) for each in before.constraints)
    constraints = tuple(
        changed(each, requests=kept) for each, kept in rest if kept or not each.requests
    )
    return _with_devices(claim, changed(before, requests=requests, constraints=constraints))


def _with_devices(claim: ResourceClaim, devices: DeviceClaim) -> ResourceClaim:
    """Return the claim with other requests, and without its allocation."""
    status = changed(claim.status, allocation=None, reserved_for=(), devices=())
    return changed(claim, spec=changed(claim.spec, devices=devices), status=status)


def _wanted_requests(
    before: Sequence[DeviceRequest], wanted: Sequence[WantedRequest]
) -> tuple[DeviceRequest, ...]:
    """Return the wanted requests, with further fields of the requests that exist already."""
    known = {each.name: each for each in before}
    requests: dict[str, DeviceRequest] = {}
    for each in wanted:
        name, _, alternative = each.name.partition("/")
        old = known.get(name, DeviceRequest(name=name))
        request = requests.setdefault(name, DeviceRequest(name=name))
        if not alternative:
            way = _with_wanted(old.exactly or ExactDeviceRequest(), each)
            requests[name] = changed(request, exactly=way)
            continue
        new = DeviceSubRequest(name=alternative)
        sub = next((it for it in old.first_available if it.name == alternative), new)
        ways = (*request.first_available, _with_wanted(sub, each))
        requests[name] = changed(request, first_available=ways)
    return tuple(requests.values())


def _with_wanted(way: Any, wanted: WantedRequest) -> Any:
    """Return a request or an alternative with the wanted values."""
    cels = [CELDeviceSelector(expression=each) for each in wanted.selectors]
    amounts = {name: Quantity.parse(amount) for name, amount in wanted.capacity.items()}
    return changed(
        way,
        device_class_name=wanted.device_class,
        selectors=tuple(DeviceSelector(cel=each) for each in cels),
        allocation_mode="All" if wanted.count is None else "ExactCount",
        count=wanted.count or 0,
        capacity=CapacityRequirements(requests=amounts) if amounts else None,
    )


def _change_request(request: DeviceRequest, change: Change) -> DeviceRequest:
    name, _, alternative = change.request.partition("/")
    if name and name != request.name:
        return request
    if request.exactly is not None:
        return request if alternative else changed(request, exactly=_way(request.exactly, change))
    ways = tuple(
        _way(each, change) if alternative in ("", each.name) else each
        for each in request.first_available
    )
    is_same = all(new is old for new, old in zip(ways, request.first_available, strict=True))
    return request if is_same else changed(request, first_available=ways)


def _way(way: Any, change: Change) -> Any:
    """Return a changed exact request or alternative."""
    request: ExactDeviceRequest | DeviceSubRequest = way
    if change.device_class is not None:
        request = changed(request, device_class_name=change.device_class)
    if change.selectors is not None:
        cels = [CELDeviceSelector(expression=each) for each in change.selectors]
        request = changed(request, selectors=tuple(DeviceSelector(cel=each) for each in cels))
    if change.count is not None:
        request = changed(request, count=change.count, allocation_mode="ExactCount")
    return request
