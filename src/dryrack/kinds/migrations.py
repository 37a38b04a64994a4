"""
API migrations: the new places of fields of older versions of DRA.

A manifest for v1beta1, or for classic DRA before it, has fields that v1 has elsewhere or not at
all. Messages about such fields in an object of v1 also name their new places. `conversion` converts
whole objects of older versions.
"""

import shlex
from typing import Any

from dryrack.kinds.convert import EXACT_FIELDS, V1, V1BETA1
from dryrack.kinds.shape import Path

# Kinds of resource.k8s.io that are gone.
KINDS_GONE = frozenset(
    {
        "PodScheduling",
        "PodSchedulingContext",
        "ResourceClaimParameters",
        "ResourceClass",
        "ResourceClassParameters",
    }
)
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


def convert_command(file: str) -> str:
    """Return what to run for a file with objects of older versions."""
    return f"run: dryrack convert {'-f -' if file.startswith('<') else f'-i {shlex.quote(file)}'}"


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
