"""
API migrations: the new places of fields and kinds of older versions of DRA.

A manifest for v1beta1, or for classic DRA before it, has fields that v1 has elsewhere or not at
all. Messages about such fields also name their new places.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from dryrack.kinds.convert import EXACT_FIELDS, GROUP, V1, V1BETA1
from dryrack.kinds.shape import Path

# Kinds of resource.k8s.io that are gone, and what to write instead.
KINDS_GONE = {
    "ResourceClass": "it is a DeviceClass now; write kind: DeviceClass, and what it serves as "
    "spec.selectors",
    "ResourceClassParameters": "move its parameters to spec.selectors and spec.config of the "
    "spec.config",
    "ResourceClaimParameters": "move its parameters to spec.devices.requests and "
    "spec.devices.config",
    "PodSchedulingContext": "remove it; the scheduler allocates devices by itself",
    "PodScheduling": "remove it; the scheduler allocates devices by itself",
}
_ONE_UP = "move its fields one level up"
_BESIDE_NAME = f"{_ONE_UP}, next to `name`"
_BY_PLACE = "name the devices by driver, pool and device"
# By the list that holds the object, and the field.
_MOVED = {
    **{("requests", name): "move it under `exactly`" for name in EXACT_FIELDS},
    ("resourceClaims", "source"): _BESIDE_NAME,
    ("devices", "basic"): _BESIDE_NAME,
    ("deviceSelector", "deviceClassName"): _BY_PLACE,
    ("deviceSelector", "selectors"): _BY_PLACE,
}
# Of objects of v1beta1, by the same.
_MOVED_LATER = {
    ("requests", "exactly"): f"{_ONE_UP}, or use {V1}",
}
# Fields of classic DRA, which had a controller for each driver.
_CLASSIC = {
    "resourceClassName": "name a DeviceClass: spec.devices.requests[].exactly.deviceClassName",
    "parametersRef": "write what it refers to as selectors and config",
    "structuredParameters": "remove it; all parameters are structured",
    "driverName": "select its devices: selectors: [{cel: {expression: device.driver == …}}]",
    "suitableNodes": "remove it; ResourceSlices contain the nodes of devices",
    "controller": "remove it; the scheduler allocates devices by itself",
}
# The same as steps of a conversion, with what the field says.
_CLASSIC_CHANGES = {
    "controller": "remove controller",
    "resourceClassName": "replace resourceClassName by devices: {{requests: [{{name: device,"
    " exactly: {{deviceClassName: {0}}}}}]}}",
    "parametersRef": "write what parametersRef refers to as selectors of the request or as"
    " devices.config",
    "allocationMode": "remove allocationMode",
}


def conversion(raw: Any, api_version: str) -> str:
    """Return how to rewrite an object of an older version: all that changes for this object."""
    steps = [f"write apiVersion: {api_version}", *dict.fromkeys(_changes(raw))]
    return steps[0] if len(steps) == 1 else f"{', '.join(steps[:-1])} and {steps[-1]}"


def _changes(raw: Any) -> Iterator[str]:
    spec = _below(raw, "spec")
    if raw.get("kind") == "ResourceClaimTemplate":
        spec = _below(spec, "spec")
    is_classic = "resourceClassName" in spec
    for name in ("controller", "resourceClassName", "parametersRef", "allocationMode"):
        if name in spec:
            yield _CLASSIC_CHANGES[name].format(spec.get(name))
    if not is_classic and raw.get("apiVersion") != f"{GROUP}/v1beta2":
        for request in _dicts(_below(spec, "devices").get("requests")):
            flat = [name for name in EXACT_FIELDS if name in request]
            if flat:
                yield f"move {_join_names(flat)} of each request under `exactly`"
    if any("basic" in device for device in _dicts(spec.get("devices"))):
        yield "move the fields in `basic` of each device one level up, next to `name`"
    if raw.get("kind") == "DeviceClass" and "suitableNodes" in spec:
        yield "remove suitableNodes"
    selector = _below(spec, "deviceSelector")
    gone = [name for name in ("deviceClassName", "selectors") if name in selector]
    if raw.get("kind") == "DeviceTaintRule" and gone:
        yield f"replace {_join_names(gone)} of deviceSelector by driver, pool and device"


def _below(raw: Any, key: str) -> dict[str, Any]:
    value = raw.get(key) if isinstance(raw, dict) else None
    return value if isinstance(value, dict) else {}


def _dicts(items: Any) -> Iterator[dict[str, Any]]:
    yield from (
        each for each in (items if isinstance(items, list) else ()) if isinstance(each, dict)
    )


def _join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def moved(path: Path, api_version: str) -> str:
    """Return where a misplaced field belongs; empty if that is not known."""
    holder = _holder(path)
    name = str(path[-1])
    if path == ("spec", "devices") and api_version.startswith("resource.k8s.io/"):
        return "move it under `spec`: a template has spec.spec"
    if api_version == V1BETA1:
        in_device = f"put it under basic, or use {V1}" if holder == "devices" else ""
        return _MOVED_LATER.get((holder, name)) or in_device
    if name == "allocationMode" and holder == "spec":
        return "remove it; devices are allocated for the first pod that uses the claim"
    return _MOVED.get((holder, name)) or _CLASSIC.get(name, "")


def misplaced_in(raw: Any, path: Path) -> str:
    """Return which fields of an older version to move, in an object that lacks a field."""
    if raw.get("apiVersion") == V1BETA1:
        return ""
    holder = _holder((*path, ""))
    found = raw
    for step in path:
        is_there = isinstance(found, dict | list) and (
            step in found
            if isinstance(found, dict)
            else isinstance(step, int) and step < len(found)
        )
        found = found[step] if is_there else None
    names = [
        name for at, name in _MOVED if at == holder and isinstance(found, dict) and name in found
    ]
    if not names:
        return ""
    if holder == "requests":
        return f"move {', '.join(names)} under `exactly`"
    return f"write what is in `{names[0]}` one level up"


def _holder(path: Path) -> str:
    """Return the field whose object, or list of objects, has the last step as a field."""
    return next((step for step in reversed(path[:-1]) if isinstance(step, str)), "")
