"""
What the API server fills in, on raw objects of resource.k8s.io/v1.

An exact request or subrequest asks for one device unless it says otherwise; a toleration
compares by equality; a taint was added now. Objects of other kinds are returned as they are.
"""

from collections.abc import Callable
from typing import Any

from dryrack.kinds.convert import V1, Raw

_Change = Callable[[Raw], Raw]


def with_defaults(raw: Raw, *, now: str | None = None) -> Raw:
    """
    The object with its defaults, the given one unchanged.

    `now` is an RFC 3339 time in whole seconds for taints that do not say since when; without
    it they stay without.
    """
    if raw.get("apiVersion") != V1:
        return raw

    def tainted(taint: Raw) -> Raw:
        unset = taint.get("timeAdded") is None and now is not None
        return {**taint, "timeAdded": now} if unset else taint

    match raw.get("kind"):
        case "ResourceClaim":
            return _in(_in(raw, "spec", _claim_spec), "status", _claim_status)
        case "ResourceClaimTemplate":
            return _in(raw, "spec", lambda spec: _in(spec, "spec", _claim_spec))
        case "ResourceSlice":
            return _in(
                raw, "spec", lambda spec: _each(spec, "devices", lambda d: _device(d, tainted))
            )
        case "DeviceTaintRule":
            return _in(raw, "spec", lambda spec: _in(spec, "taint", tainted))
        case _:
            return raw


def _claim_spec(spec: Raw) -> Raw:
    return _in(spec, "devices", lambda devices: _each(devices, "requests", _request))


def _claim_status(status: Raw) -> Raw:
    def results(devices: Raw) -> Raw:
        return _each(devices, "results", lambda result: _each(result, "tolerations", _toleration))

    return _in(status, "allocation", lambda allocation: _in(allocation, "devices", results))


def _request(request: Raw) -> Raw:
    return _each(_in(request, "exactly", _exact), "firstAvailable", _exact)


def _exact(request: Raw) -> Raw:
    mode = request.get("allocationMode") or "ExactCount"
    counted = {**request, "allocationMode": mode}
    if mode == "ExactCount" and not request.get("count"):
        counted["count"] = 1
    return _each(counted, "tolerations", _toleration)


def _toleration(toleration: Raw) -> Raw:
    return toleration if toleration.get("operator") else {**toleration, "operator": "Equal"}


def _device(device: Raw, tainted: _Change) -> Raw:
    mapped = device.get("nodeAllocatableResourceMappings")
    if isinstance(mapped, dict):
        changed = {name: _mapping(mapping) for name, mapping in mapped.items()}
        device = {**device, "nodeAllocatableResourceMappings": changed}
    return _each(device, "taints", tainted)


def _mapping(mapping: Any) -> Any:
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
