"""
The defaults of resource.k8s.io, on raw objects of any version.

A request or subrequest asks for one device; a toleration compares by equality; a taint is added
now. Defaults depend on the version of the object, so they come before conversion. Objects of other
groups are not changed.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from dryrack.kinds.convert import V1, V1ALPHA3, V1BETA1, V1BETA2, Raw

_Change = Callable[[Raw], Raw]


def with_defaults(raw: Raw, *, now: str | None = None) -> Raw:
    """
    Return a copy of the object with defaults.

    `now` is an RFC 3339 time in whole seconds for taints that do not say since when; without
    it they stay without.
    """
    version = raw.get("apiVersion")
    if version not in (V1, V1BETA2, V1BETA1, V1ALPHA3):
        return raw
    tainted = partial(_taint, now=now)
    request = _flat_request if version == V1BETA1 else _request
    device = partial(_device, tainted=tainted)
    if version == V1BETA1:
        device = partial(_in, key="basic", change=device)
    match raw.get("kind"):
        case "ResourceClaim":
            claimed = _in(raw, key="spec", change=partial(_claim_spec, request=request))
            return _in(claimed, key="status", change=_claim_status)
        case "ResourceClaimTemplate":
            claim = partial(_claim_spec, request=request)
            return _in(raw, key="spec", change=partial(_in, key="spec", change=claim))
        case "ResourceSlice":
            return _in(raw, key="spec", change=partial(_each, key="devices", change=device))
        case "DeviceTaintRule":
            return _in(raw, key="spec", change=partial(_in, key="taint", change=tainted))
        case _:
            return raw


def _claim_spec(spec: Raw, request: _Change) -> Raw:
    return _in(spec, key="devices", change=partial(_each, key="requests", change=request))


def _claim_status(status: Raw) -> Raw:
    result = partial(_each, key="tolerations", change=_toleration)
    results = partial(_each, key="results", change=result)
    devices = partial(_in, key="devices", change=results)
    return _in(status, key="allocation", change=devices)


def _request(request: Raw) -> Raw:
    exact = _in(request, key="exactly", change=_exact)
    return _each(exact, key="firstAvailable", change=_exact)


def _flat_request(request: Raw) -> Raw:
    """A request of v1beta1: without a class it can only be a list of subrequests."""
    tolerant = _each(request, key="tolerations", change=_toleration)
    exact = _exact(tolerant) if request.get("deviceClassName") else tolerant
    return _each(exact, key="firstAvailable", change=_exact)


def _exact(request: Raw) -> Raw:
    mode = request.get("allocationMode") or "ExactCount"
    counted = {**request, "allocationMode": mode}
    if mode == "ExactCount" and not request.get("count"):
        counted["count"] = 1
    return _each(counted, key="tolerations", change=_toleration)


def _taint(taint: Raw, now: str | None) -> Raw:
    unset = taint.get("timeAdded") is None and now is not None
    return {**taint, "timeAdded": now} if unset else taint


def _toleration(toleration: Raw) -> Raw:
    return toleration if toleration.get("operator") else {**toleration, "operator": "Equal"}


def _device(device: Raw, tainted: _Change) -> Raw:
    mapped = device.get("nodeAllocatableResourceMappings")
    if isinstance(mapped, dict):
        changed = {name: _default_mapping(mapping) for name, mapping in mapped.items()}
        device = {**device, "nodeAllocatableResourceMappings": changed}
    return _each(device, key="taints", change=tainted)


def _default_mapping(mapping: Any) -> Any:
    unset = isinstance(mapping, dict) and mapping.get("allocationMultiplier") is None
    return {**mapping, "allocationMultiplier": "1"} if unset else mapping


def _in(raw: Raw, key: str, change: _Change) -> Raw:
    value = raw.get(key)
    return {**raw, key: change(value)} if isinstance(value, dict) else raw


def _each(raw: Raw, key: str, change: _Change) -> Raw:
    items = raw.get(key)
    if not isinstance(items, list):
        return raw
    return {**raw, key: [change(item) if isinstance(item, dict) else item for item in items]}
