"""Rows of storage kinds: volumes, claims, storage classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.tables.columns import (
    AGE,
    NAME,
    Shape,
    age,
    name_of,
    plain,
    wide,
)
from dryrack.kinds.paths import get
from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver.tables.columns import JsonObject

_UNSET = "<unset>"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_DEFAULT_CLASS_BETA = "storageclass.beta.kubernetes.io/is-default-class"
_MIGRATION_STATES = ("Running", "Failed", "Succeeded")
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _storage(amounts: JsonObject) -> str:
    return str(Quantity.parse(amounts.get("storage") or "0"))


def _modes(modes: Sequence[str]) -> str:
    return ",".join(_MODES[mode] for mode in _MODES if mode in modes)


def _phase(obj: JsonObject) -> str:
    if get(obj, "metadata.deletionTimestamp"):
        return "Terminating"
    return str(get(obj, "status.phase", ""))


def _volume(obj: JsonObject, now: float) -> list[Any]:
    spec = get(obj, "spec", {})
    claim = spec.get("claimRef")
    return [
        name_of(obj),
        _storage(get(spec, "capacity", {})),
        _modes(get(spec, "accessModes", ())),
        spec.get("persistentVolumeReclaimPolicy") or "",
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or _UNSET,
        get(obj, "status.reason", ""),
        age(obj, now),
        spec.get("volumeMode") or _UNSET,
    ]


VOLUMES = Shape(
    (
        NAME,
        *plain("Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass"),
        *plain("VolumeAttributesClass", "Reason"),
        AGE,
        *wide("VolumeMode"),
    ),
    _volume,
)


def _volume_claim(obj: JsonObject, now: float) -> list[Any]:
    spec = get(obj, "spec", {})
    is_bound = bool(spec.get("volumeName"))
    return [
        name_of(obj),
        _phase(obj),
        spec.get("volumeName") or "",
        _storage(get(obj, "status.capacity", {})) if is_bound else "",
        _modes(get(obj, "status.accessModes", ())) if is_bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or _UNSET,
        age(obj, now),
        spec.get("volumeMode") or _UNSET,
    ]


VOLUME_CLAIMS = Shape(
    (
        NAME,
        *plain("Status", "Volume", "Capacity", "Access Modes", "StorageClass"),
        *plain("VolumeAttributesClass"),
        AGE,
        *wide("VolumeMode"),
    ),
    _volume_claim,
)


def _is_default(storage_class: JsonObject) -> bool:
    notes = get(storage_class, "metadata.annotations", {})
    return "true" in (notes.get(_DEFAULT_CLASS), notes.get(_DEFAULT_CLASS_BETA))


def _storage_class_of_1_36(obj: JsonObject, now: float) -> list[Any]:
    name, *cells = _storage_class(obj, now)
    return [f"{name} (default)" if _is_default(obj) else name, *cells]


def _creation_time(obj: JsonObject) -> str:
    return str(get(obj, "metadata.creationTimestamp", ""))


def _storage_classes(objects: Sequence[JsonObject], now: float) -> list[list[Any]]:
    """Mark the class that new claims get: the newest default, or the first of these by name."""
    defaults = sorted(filter(_is_default, objects), key=name_of)
    effective = max(defaults, key=_creation_time, default=None)
    rows = [_storage_class(each, now) for each in objects]
    return [
        [f"{name} (default)" if each is effective else name, *cells]
        for each, (name, *cells) in zip(objects, rows, strict=True)
    ]


def _storage_class(obj: JsonObject, now: float) -> list[Any]:
    return [
        name_of(obj),
        obj.get("provisioner") or "",
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


_STORAGE_CLASS_COLUMNS = (
    NAME,
    *plain("Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion"),
    AGE,
)
STORAGE_CLASSES_OF_1_36 = Shape(_STORAGE_CLASS_COLUMNS, _storage_class_of_1_36)
STORAGE_CLASSES = Shape(_STORAGE_CLASS_COLUMNS, _storage_class, list_cells=_storage_classes)


def _migration(obj: JsonObject, now: float) -> list[Any]:
    resource = get(obj, "spec.resource", {})
    names = (resource.get("resource"), resource.get("group"))
    status = "Unknown"
    for condition in get(obj, "status.conditions", ()):
        if condition.get("status") == "True" and condition.get("type") in _MIGRATION_STATES:
            status = condition["type"]
    return [name_of(obj), ".".join(name for name in names if name), status]


STORAGE_VERSION_MIGRATIONS = Shape((NAME, *plain("Resource", "Status")), _migration)
