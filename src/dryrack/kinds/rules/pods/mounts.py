"""Validation of volume mounts and block devices of containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.rules.checks import relative_path, steps_back
from dryrack.kinds.validation.problems import (
    FieldProblem,
    Reason,
    forbidden,
    invalid,
    not_supported,
    required,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.kinds.raw import Raw

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_READ_ONLY = ("Disabled", "Enabled", "IfPossible")


def mounts(at: str, container: Raw, volumes: Mapping[str, Raw]) -> Iterator[FieldProblem]:
    """Check the volume mounts."""
    devices = _by_name(container, "volumeDevices", "devicePath")
    seen: set[str] = set()
    for position, mount in enumerate(get(container, "volumeMounts", ())):
        path = f"{at}[{position}]"
        name = mount.get("name") or ""
        where = mount.get("mountPath") or ""
        if not name:
            yield required(f"{path}.name")
        if name not in volumes:
            yield FieldProblem(Reason.NOT_FOUND, f"{path}.name", name)
        if not where:
            yield required(f"{path}.mountPath")
        if where in seen:
            yield invalid(f"{path}.mountPath", where, "must be unique")
        seen.add(where)
        if name in devices:
            yield invalid(f"{path}.name", name, "must not already exist in volumeDevices")
        if where in devices.values():
            detail = "must not already exist as a path in volumeDevices"
            yield invalid(f"{path}.mountPath", where, detail)
        yield from _part(at, path, mount)
        yield from _propagation(at, mount, get(container, "securityContext", {}))


def _by_name(container: Raw, key: str, path: str) -> dict[str, str]:
    return {each.get("name") or "": each.get(path) or "" for each in container.get(key) or ()}


def _part(all_of_them: str, at: str, mount: Raw) -> Iterator[FieldProblem]:
    """Check the subpath of a mount; the real server names the list, not the mount."""
    path = mount.get("subPath") or ""
    pattern = mount.get("subPathExpr") or ""
    yield from relative_path(f"{all_of_them}.subPath", path)
    if path and pattern:
        detail = "subPathExpr and subPath are mutually exclusive"
        yield invalid(f"{at}.subPathExpr", pattern, detail)
    yield from relative_path(f"{all_of_them}.subPathExpr", pattern)


def _propagation(at: str, mount: Raw, security: Raw) -> Iterator[FieldProblem]:
    """Check the mount propagation and recursive read-only mounts."""
    spread = mount.get("mountPropagation")
    if spread is not None and spread not in _PROPAGATIONS:
        yield not_supported(f"{at}.mountPropagation", spread, _PROPAGATIONS)
    if spread == "Bidirectional" and not security.get("privileged"):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        yield forbidden(f"{at}.mountPropagation", detail)
    wish = mount.get("recursiveReadOnly")
    if wish is not None and wish not in _READ_ONLY:
        yield not_supported(f"{at}.recursiveReadOnly", wish, _READ_ONLY)
    elif wish not in (None, "Disabled"):
        if not mount.get("readOnly"):
            detail = "may only be specified when readOnly is true"
            yield forbidden(f"{at}.recursiveReadOnly", detail)
        if spread not in (None, "None"):
            detail = "may only be specified when mountPropagation is None or not specified"
            yield forbidden(f"{at}.recursiveReadOnly", detail)


def devices(at: str, container: Raw, volumes: Mapping[str, Raw]) -> Iterator[FieldProblem]:
    """Check the block devices."""
    mounted = _by_name(container, "volumeMounts", "mountPath")
    names: set[str] = set()
    places: set[str] = set()
    for position, device in enumerate(get(container, "volumeDevices", ())):
        path = f"{at}[{position}]"
        name = device.get("name") or ""
        yield from _source(f"{path}.name", name, names, volumes)
        yield from _place(f"{path}.devicePath", device.get("devicePath") or "", places)
        if name in mounted:
            yield invalid(f"{path}.name", name, "must not already exist in volumeMounts")
        if (device.get("devicePath") or "") in mounted.values():
            detail = "must not already exist as a path in volumeMounts"
            yield invalid(f"{path}.devicePath", device.get("devicePath") or "", detail)
        names.add(name)


def _source(
    at: str, name: str, names: set[str], volumes: Mapping[str, Raw]
) -> Iterator[FieldProblem]:
    if not name:
        yield required(at)
    elif name in names:
        yield invalid(at, name, "must be unique")
    volume = volumes.get(name)
    if volume is None:
        yield FieldProblem(Reason.NOT_FOUND, at, name)
    elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
        kinds = "PersistentVolumeClaim or Ephemeral"
        yield invalid(at, name, f"can only use volume source type of {kinds} for block mode")


def _place(at: str, place: str, places: set[str]) -> Iterator[FieldProblem]:
    if not place:
        yield required(at)
    if place in places:
        yield invalid(at, place, "must be unique")
    if steps_back(place):
        yield invalid(at, place, "can not contain backsteps ('..')")
    else:
        places.add(place)
