"""
Reports of a cluster about a pending pod, which a decision cannot compute.

A claim that admission refuses is never created, a pod waits for the binding conditions of its
devices, and a kubelet reports in an event why it could not prepare a claim.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.allocation import Code, claim_name
from dryrack.kinds.quantity import Quantity, QuantityError
from dryrack.placement.views.claims import node_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.core import Event, Pod
    from dryrack.kinds.resource import ResourceClaim
    from dryrack.placement.whatif.world import Party, World

_CREATION = "FailedResourceClaimCreation"
_PREPARATION = "FailedPrepareDynamicResources"
_STARTED = ("Succeeded", "Failed", "Running")
_QUOTA = re.compile(
    r"exceeded quota: (?P<name>[^,]+), requested: (?P<requested>\S+), "
    r"used: (?P<used>\S+), limited: (?P<limited>\S+)"
)


@dataclass(frozen=True, slots=True)
class QuotaExcess:
    """A resource of which a quota has too little left."""

    quota: str
    resource: str
    requested: Quantity
    used: Quantity
    limited: Quantity

    @property
    def key(self) -> tuple[str, str]:
        """Return the quota and the resource."""
        return self.quota, self.resource

    @property
    def left(self) -> Quantity:
        return Quantity.of(max(0, self.limited.nanos - self.used.nanos), self.limited.format)

    @property
    def needed(self) -> Quantity:
        """Return the limit that the request needs."""
        return self.used + self.requested


def refused_creation(world: World, party: Party) -> str:
    """
    Return why a claim of the pod cannot be created.

    On a cluster an event reports it. In files it follows from quotas, if nothing else is missing.
    """
    assert party.pod is not None, "a claim by itself is created by a person"
    refused = [each.fact for each in party.missing if each.code is Code.ADMISSION]
    if refused and len(refused) == len(party.missing):
        return refused[0]
    existing = {claim_name(each) for each in world.claims}
    if all(claim_name(each) in existing for each in party.claims):
        return ""
    event = _last(world, party.pod, _CREATION)
    return "" if event is None else event.message


def preparation_failure(world: World, pod: Pod) -> str:
    """Return why the kubelet could not prepare the claims of a pod that has not started."""
    if pod.status.phase in _STARTED:
        return ""
    event = _last(world, pod, _PREPARATION)
    return "" if event is None else event.message


def creation_failure(world: World, kind: str, namespace: str, name: str) -> str:
    """Return why pods of a workload cannot be created; ReplicaSets create a Deployment's pods."""
    about = [
        each
        for each in world.events
        if each.reason == "FailedCreate" and each.involved_object.namespace == namespace
    ]
    own = [each for each in about if _is_about(each, kind, name)]
    event = max(own, key=lambda each: each.time, default=None)
    return "" if event is None else event.message


def _is_about(event: Event, kind: str, name: str) -> bool:
    about = event.involved_object
    if (about.kind, about.name) == (kind, name):
        return True
    is_replica_set = (kind, about.kind) == ("Deployment", "ReplicaSet")
    return is_replica_set and about.name.rpartition("-")[0] == name


def _last(world: World, pod: Pod, reason: str) -> Event | None:
    about = [
        each
        for each in world.events
        if each.reason == reason
        and each.involved_object.kind == "Pod"
        and each.involved_object.namespace == pod.metadata.namespace
        and each.involved_object.name == pod.metadata.name
        and each.involved_object.uid in ("", pod.metadata.uid)
    ]
    return max(about, key=lambda each: each.time, default=None)


def quota_excesses(message: str) -> tuple[QuotaExcess, ...]:
    """Return the resources that are exceeded by a message of quota admission."""
    match = _QUOTA.search(message)
    if match is None:
        return ()
    requested, used, limited = (_amounts(match[key]) for key in ("requested", "used", "limited"))
    zero = Quantity.parse("0")
    return tuple(
        QuotaExcess(match["name"], name, amount, used.get(name, zero), limited[name])
        for name, amount in requested.items()
        if name in limited
    )


def _amounts(text: str) -> dict[str, Quantity]:
    amounts: dict[str, Quantity] = {}
    for pair in text.split(","):
        name, _, amount = pair.partition("=")
        try:
            amounts[name] = Quantity.parse(amount)
        except QuantityError:
            continue
    return amounts


def pending_binding(party: Party) -> str:
    """Return the devices and binding conditions that a pod waits for; empty if there are none."""
    pod = party.pod
    assert pod is not None, "a claim by itself is bound to no node"
    conditions = [
        each
        for claim in party.claims
        if any(user.uid == pod.metadata.uid for user in claim.status.reserved_for)
        for each in _unmet_conditions(claim)
    ]
    return "; ".join(conditions)


def _unmet_conditions(claim: ResourceClaim) -> Iterator[str]:
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        name = f"{result.driver}/{result.pool}/{result.device}"
        conditions = {
            each.type: each
            for status in claim.status.devices
            if (status.driver, status.pool, status.device)
            == (result.driver, result.pool, result.device)
            for each in status.conditions
        }
        where = f"device {name} of claim {claim_name(claim)}"
        node = node_of(allocation.node_selector) if allocation is not None else ""
        where += f" on node {node}" if node else ""
        for wanted in result.binding_failure_conditions:
            if wanted in conditions and conditions[wanted].status == "True":
                why = conditions[wanted].message or conditions[wanted].reason
                yield f"{where} has the failure condition {wanted}{f': {why}' if why else ''}"
        missing = [
            each
            for each in result.binding_conditions
            if each not in conditions or conditions[each].status != "True"
        ]
        for each in missing:
            condition = conditions.get(each)
            state = "is not set" if condition is None else f"is {condition.status}"
            why = f": {condition.message}" if condition is not None and condition.message else ""
            yield f"{where}: the binding condition {each} {state}{why}"
