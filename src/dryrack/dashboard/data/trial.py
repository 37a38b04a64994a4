"""
A change to try on a copy of the cluster: another class, selector, count or node.

The claims of a pod, of a gang's pods, or one claim are changed in a copy of the world, and the case
is decided in it. What has devices already gives them back first, in the copy, so that it is decided
as if it came now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace as changed

from dryrack.allocation import claim_name
from dryrack.base.errors import DryrackError
from dryrack.base.text import hint
from dryrack.kinds.resource import CELDeviceSelector, DeviceSelector
from dryrack.placement import as_if_unbound, find_gang, nodes_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from dryrack.kinds.resource import (
        DeviceRequest,
        DeviceSubRequest,
        ExactDeviceRequest,
        ResourceClaim,
    )
    from dryrack.placement import World

# The maximum number of devices for one request.
_COUNT_MAX = 32


class TrialError(DryrackError):
    """The change to try is invalid."""


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The changes in the copy; None means no change."""

    # Names of the claim and of the request, "name" or "name/alternative"; empty means all.
    claim: str = ""
    request: str = ""
    device_class: str | None = msgspec.field(default=None, name="class")
    selectors: tuple[str, ...] | None = None
    count: int | None = None
    # The only node to try.
    node: str | None = None

    @property
    def is_of_claims(self) -> bool:
        return any(each is not None for each in (self.device_class, self.selectors, self.count))


class Trial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The object to explain, and the change to try."""

    kind: str
    namespace: str
    name: str
    change: Change

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
    count = trial.change.count
    if count is not None and not 1 <= count <= _COUNT_MAX:
        raise TrialError(f"count {count}: must be from 1 to {_COUNT_MAX}")
    return trial


def apply_change(world: World, trial: Trial) -> World:
    """Return the changed copy of the objects, in which the scheduler decides."""
    change = trial.change
    _check(world, change)
    pods = _pods(world, trial)
    for party in [each for each in world.in_order() if each.pod is not None]:
        assert party.pod is not None, "selected by its pod"
        if party.pod.full_name in pods and party.is_bound:
            world = as_if_unbound(world, party)
    if not change.is_of_claims:
        return world
    claims = _claims(world, trial, pods)
    copies = [_change_claim(each, change) for each in claims]
    if all(copy is each for copy, each in zip(copies, claims, strict=True)):
        of = f"request {change.request!r}" if change.request else "request"
        raise TrialError(f"{trial.kind} {trial.full_name} has no {of} to change")
    for copy in copies:
        world = world.with_claim(copy)
    return world


def _check(world: World, change: Change) -> None:
    classes = [each.metadata.name for each in world.classes]
    if change.device_class is not None and change.device_class not in classes:
        raise TrialError(
            f"class {change.device_class!r} not found; {hint(change.device_class, classes)}"
        )
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


def _claims(world: World, trial: Trial, pods: Collection[str]) -> list[ResourceClaim]:
    found: dict[str, ResourceClaim] = {}
    for party in world.in_order():
        pod = party.pod
        is_asked = pod is not None and pod.full_name in pods
        for claim in party.claims:
            name = claim_name(claim)
            if name == trial.full_name if trial.kind == "claim" else is_asked:
                found[name] = claim
    wanted = trial.change.claim
    return [each for each in found.values() if not wanted or each.metadata.name == wanted]


def _change_claim(claim: ResourceClaim, change: Change) -> ResourceClaim:
    """Return the claim with changed requests and no allocation, or the same claim."""
    requests = tuple(_change_request(each, change) for each in claim.spec.devices.requests)
    if all(new is old for new, old in zip(requests, claim.spec.devices.requests, strict=True)):
        return claim
    devices = changed(claim.spec.devices, requests=requests)
    status = changed(claim.status, allocation=None, reserved_for=(), devices=())
    return changed(claim, spec=changed(claim.spec, devices=devices), status=status)


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
