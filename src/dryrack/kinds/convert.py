"""
Conversion between the versions of resource.k8s.io, on raw objects.

All other modules use v1. v1beta2 has the same shape. v1beta1 has the fields of an exact request in
the request itself and those of a device under `basic`; v1alpha3 has DeviceTaintRule alone, in the
same shape as v1. Fields that no model has are kept.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

Raw: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str | int, ...]

GROUP = "resource.k8s.io"
V1 = f"{GROUP}/v1"
V1BETA2 = f"{GROUP}/v1beta2"
V1BETA1 = f"{GROUP}/v1beta1"
V1ALPHA3 = f"{GROUP}/v1alpha3"

EXACT_FIELDS = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
)
# The values that mean "unset" in v1beta1; other fields are set if they are present.
_UNSET = {"deviceClassName": "", "allocationMode": "", "count": 0}
_BASIC_FIELDS = (
    "attributes",
    "capacity",
    "consumesCounters",
    "nodeName",
    "nodeSelector",
    "allNodes",
    "taints",
    "bindsToNode",
    "bindingConditions",
    "bindingFailureConditions",
    "allowMultipleAllocations",
    "nodeAllocatableResourceMappings",
)


def to_v1(raw: Raw) -> Raw:
    """Return the object in resource.k8s.io/v1; objects of other groups are not changed."""
    version = raw.get("apiVersion")
    if version not in (V1BETA1, V1BETA2, V1ALPHA3):
        return raw
    converted = {**raw, "apiVersion": V1}
    return (
        _with_spec(converted, _nested_request, _lifted_device) if version == V1BETA1 else converted
    )


def misplaced(raw: Raw) -> Iterator[Path]:
    """Yield the paths of v1 fields in a v1beta1 object, which the server drops."""
    if raw.get("apiVersion") != V1BETA1 or not isinstance(raw.get("spec"), dict):
        return
    template = raw.get("kind") == "ResourceClaimTemplate"
    path: Path = ("spec", "spec", "devices") if template else ("spec", "devices")
    devices: Any = raw
    for step in path:
        devices = devices.get(step) if isinstance(devices, dict) else None
    if isinstance(devices, dict):
        yield from _misplaced_items(devices.get("requests"), ("exactly",), (*path, "requests"))
    else:
        yield from _misplaced_items(devices, _BASIC_FIELDS, path)


def _misplaced_items(items: Any, names: Sequence[str], path: Path) -> Iterator[Path]:
    for index, item in enumerate(items if isinstance(items, list) else ()):
        for name in names if isinstance(item, dict) else ():
            if name in item:
                yield (*path, index, name)


def from_v1(raw: Raw, api_version: str) -> Raw:
    """Return an object of resource.k8s.io/v1 in another version of the group."""
    assert raw.get("apiVersion") == V1, f"not an object of {V1}: {raw.get('apiVersion')}"
    converted = {**raw, "apiVersion": api_version}
    return (
        _with_spec(converted, _flat_request, _wrapped_device)
        if api_version == V1BETA1
        else converted
    )


def _with_spec(raw: Raw, request: Callable[[Raw], Raw], device: Callable[[Raw], Raw]) -> Raw:
    match raw.get("kind"), raw.get("spec"):
        case "ResourceClaim", dict(spec):
            return {**raw, "spec": _claim_spec(spec, request)}
        case "ResourceClaimTemplate", {"spec": dict(inner), **rest}:
            return {**raw, "spec": {**rest, "spec": _claim_spec(inner, request)}}
        case "ResourceSlice", dict(spec):
            return {**raw, "spec": _slice_spec(spec, device)}
        case _:
            return raw


def _claim_spec(spec: Raw, request: Callable[[Raw], Raw]) -> Raw:
    match spec.get("devices"):
        case {"requests": list(requests), **rest}:
            return {**spec, "devices": {"requests": _each(requests, request), **rest}}
        case _:
            return spec


def _slice_spec(spec: Raw, device: Callable[[Raw], Raw]) -> Raw:
    # "" and false are how v1beta1 says "not set"; in v1 they would be values.
    unset = {"nodeName": "", "allNodes": False}
    kept = {key: value for key, value in spec.items() if key not in unset or value != unset[key]}
    devices = spec.get("devices")
    return {**kept, "devices": _each(devices, device)} if isinstance(devices, list) else kept


def _each(items: list[Any], change: Callable[[Raw], Raw]) -> list[Any]:
    # What is not an object is left for decoding to complain about.
    return [change(item) if isinstance(item, dict) else item for item in items]


def _nested_request(request: Raw) -> Raw:
    fields = {key: request[key] for key in EXACT_FIELDS if _is_set(key, request.get(key))}
    # v1beta1 knows no `exactly`: its server passes over one.
    kept = {k: v for k, v in request.items() if k != "exactly" and k not in EXACT_FIELDS}
    return {**kept, "exactly": fields} if fields else kept


def _is_set(key: str, value: Any) -> bool:
    """Return whether Go sees the field as set, or as a value of the wrong type."""
    unset = _UNSET.get(key)
    return value is not None and (type(value) is not type(unset) or value != unset)


def _flat_request(request: Raw) -> Raw:
    kept = {key: value for key, value in request.items() if key != "exactly"}
    exactly = request.get("exactly")
    # The server writes the class of a v1beta1 request even if it is empty.
    return {**kept, "deviceClassName": "", **(exactly if isinstance(exactly, dict) else {})}


def _lifted_device(device: Raw) -> Any:
    basic = device.get("basic")
    if basic is not None and not isinstance(basic, dict):
        # In the place of the device, where decoding reports the wrong type.
        return basic
    # What v1beta1 has elsewhere, or not at all, must not become a field by being lifted.
    kept = {k: v for k, v in device.items() if k != "basic" and k not in _BASIC_FIELDS}
    return {**kept, **{key: value for key, value in (basic or {}).items() if key != "name"}}


def _wrapped_device(device: Raw) -> Raw:
    named = {key: value for key, value in device.items() if key == "name"}
    return {**named, "basic": {key: value for key, value in device.items() if key != "name"}}
