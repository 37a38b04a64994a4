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


def _storage_class(obj: JsonObject, now: float) -> list[Any]:
    notes = get(obj, "metadata.annotations", {})
    is_default = "true" in (notes.get(_DEFAULT_CLASS), notes.get(_DEFAULT_CLASS_BETA))
    return [
        f"{name_of(obj)} (default)" if is_default else name_of(obj),
        obj.get("provisioner") or "",
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


STORAGE_CLASSES = Shape(
    (
        NAME,
        *plain("Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion"),
        AGE,
    ),
    _storage_class,
)
