"""
Usage of quotas by ResourceClaims.

A quota limits devices by class (`gpu.example.com.deviceclass.resource.k8s.io/devices`), and by the
extended resources that classes stand for: `requests.example.com/gpu` for a class with that
`extendedResourceName`, and `requests.deviceclass.resource.kubernetes.io/CLASS` for every class. So
a namespace cannot get more devices by claims than by extended resources. A pod is charged for the
extended resources that it requests; the claim that the scheduler creates for them is charged only
for what exceeds that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.quantity import Format, Quantity
from dryrack.kinds.quota_usage.amounts import NOTHING, ONE, Amounts, add_amounts
from dryrack.kinds.quota_usage.pods import CLASS_RESOURCE, is_extended, pod_usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dryrack.kinds.raw import Raw

CLAIMS = "resourceclaims.resource.k8s.io"
COUNT = f"count/{CLAIMS}"
BY_CLASS = ".deviceclass.resource.k8s.io/devices"
EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
_REQUESTS = "requests."
# The maximum number of devices that one claim can get.
_ALL_DEVICES = 32


@dataclass(frozen=True, slots=True)
class ClaimContext:
    """The objects on which the usage of a claim depends, besides the claim."""

    classes: Mapping[str, str] = field(default_factory=dict)
    """The extended resource of each DeviceClass by the name of the class; "" for none."""
    pod: Callable[[str, str], Raw | None] = lambda _namespace, _name: None
    claims: Callable[[str], Iterable[Raw]] = lambda _namespace: ()
    """The claims of a namespace."""
    is_over: Callable[[Raw], bool] = lambda _pod: False
    """Returns True if a pod has ended, or should have."""


NO_CONTEXT = ClaimContext()


def extended_resources(classes: Iterable[Raw]) -> dict[str, str]:
    """Return the extended resource of each DeviceClass, as `ClaimContext.classes` has them."""
    return {
        each["metadata"]["name"]: get(each, "spec.extendedResourceName") or "" for each in classes
    }


def claim_names(names: Iterable[str], classes: Mapping[str, str]) -> list[str]:
    """Return the names in a quota that claims are counted by."""
    resources = {each for each in classes.values() if each}
    resources |= {f"{CLASS_RESOURCE}{each}" for each in classes}
    return [
        name
        for name in names
        if name == COUNT
        or name.endswith(BY_CLASS)
        or (name.startswith(_REQUESTS) and name.removeprefix(_REQUESTS) in resources)
    ]


def may_count_claims(names: Iterable[str]) -> bool:
    """Return whether one of the names can count claims, with any classes."""
    return any(
        name == COUNT
        or name.endswith(BY_CLASS)
        or (name.startswith(_REQUESTS) and is_extended(name.removeprefix(_REQUESTS)))
        for name in names
    )


def claim_usage(claim: Raw, context: ClaimContext = NO_CONTEXT) -> Amounts:
    """Return the most that a claim can get, by class and by extended resource."""
    used: Amounts = {COUNT: ONE}
    devices = _devices_by_class(claim)
    for name, amount in devices.items():
        used[f"{name}{BY_CLASS}"] = amount
    charged = _charged_to_pod(claim, context)
    for name, amount in _by_extended_resource(devices, context.classes).items():
        rest = amount - charged.get(name, NOTHING)
        if rest > NOTHING:
            used[name] = rest
    return used


def _by_extended_resource(devices: Amounts, classes: Mapping[str, str]) -> Amounts:
    found: Amounts = {}
    for name, amount in devices.items():
        if name:
            found[f"{_REQUESTS}{CLASS_RESOURCE}{name}"] = amount
            if resource := classes.get(name):
                # Of several classes with one resource one counts, as in kube-apiserver: there the
                # last in random order, here the largest amount.
                key = f"{_REQUESTS}{resource}"
                found[key] = max(found.get(key, NOTHING), amount)
    return found


def _devices_by_class(claim: Raw) -> Amounts:
    devices: Amounts = {}
    requests = get(claim, "spec.devices.requests", ())
    for request in requests:
        alternatives = request.get("firstAvailable") or (request.get("exactly"),)
        most: Amounts = {}
        for each in alternatives:
            if each:
                name = each.get("deviceClassName") or ""
                most[name] = max(most.get(name, NOTHING), _count(each))
        devices = add_amounts(devices, most)
    return devices


def _count(request: Raw) -> Quantity:
    mode = request.get("allocationMode") or ""
    count = {"ExactCount": request.get("count", 1), "All": _ALL_DEVICES}.get(mode, 0)
    return Quantity.of(count * 10**9, Format.DECIMAL_SI)


def _charged_to_pod(claim: Raw, context: ClaimContext) -> Amounts:
    """Return the amounts that are charged to the pod for which the claim was created."""
    owner = _pod_reference(claim)
    if owner is None:
        return {}
    namespace = claim["metadata"].get("namespace") or ""
    name = claim["metadata"].get("name")
    pod = context.pod(namespace, owner.get("name") or "")
    if pod is None or pod["metadata"].get("uid") != owner.get("uid"):
        return {}
    status = get(pod, "status.extendedResourceClaimStatus")
    if status is not None:
        is_claim = status.get("resourceClaimName") == name
    else:
        is_claim = not any(
            _age(other) < _age(claim)
            for other in context.claims(namespace)
            if (_pod_reference(other) or {}).get("uid") == owner.get("uid")
        )
    # Otherwise a second claim of the same pod would be free.
    return pod_usage(pod, is_over=context.is_over(pod)) if is_claim else {}


def _age(claim: Raw) -> tuple[str, str]:
    meta = claim["metadata"]
    return meta.get("creationTimestamp") or "", meta.get("name") or ""


def _pod_reference(claim: Raw) -> Raw | None:
    """Return the reference to the pod that controls a claim for extended resources."""
    meta = claim["metadata"]
    if get(meta, "annotations", {}).get(EXTENDED_RESOURCE_CLAIM) != "true":
        return None
    for owner in get(meta, "ownerReferences", ()):
        if owner.get("controller"):
            is_pod = (owner.get("kind"), owner.get("apiVersion")) == ("Pod", "v1")
            return owner if is_pod else None
    return None
