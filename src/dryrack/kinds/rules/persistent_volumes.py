"""PersistentVolumes."""

from __future__ import annotations

from posixpath import normpath
from typing import TYPE_CHECKING

from dryrack.kinds.core import VolumeNodeAffinity
from dryrack.kinds.decode import decode
from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.rules.checks import driver_name, steps_back
from dryrack.kinds.rules.json_edit import set_defaults, update_at
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.rules.pods.volumes import source_problems
from dryrack.kinds.rules.volume_claims import (
    VOLUME_DEFAULTS,
    VOLUME_MODES,
    access_mode_problems,
)
from dryrack.kinds.validation.names import checked, label, subdomain
from dryrack.kinds.validation.parts import node_selector
from dryrack.kinds.validation.problems import (
    FieldProblem,
    Reason,
    forbidden,
    invalid,
    not_supported,
    required,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.kinds.raw import Raw

_DEFAULTS = {"persistentVolumeReclaimPolicy": "Retain", **VOLUME_DEFAULTS}
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
# In the order of the server, with the required fields; some sources have a function below.
_SOURCES: Mapping[str, tuple[str, ...]] = {
    "hostPath": (),
    "gcePersistentDisk": (),
    "awsElasticBlockStore": ("volumeID",),
    "glusterfs": ("endpoints", "path"),
    "flocker": (),
    "nfs": (),
    "rbd": ("monitors", "image"),
    "quobyte": ("volume",),
    "cephfs": ("monitors",),
    "iscsi": ("targetPortal", "iqn"),
    "cinder": ("volumeID",),
    "fc": (),
    "flexVolume": ("driver",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "scaleIO": ("gateway", "system", "volumeName"),
    "local": (),
    "storageos": ("volumeName",),
    "csi": (),
}
_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)
_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_WITHOUT_MOUNT_OPTIONS = frozenset(
    ["hostPath", "flocker", "fc", "flexVolume", "portworxVolume", "scaleIO", "local", "csi"]
)


class VolumeRules(KindRules):
    """PersistentVolume."""

    def __init__(self) -> None:
        super().__init__(namespaced=False, has_status=True)

    def default(self, obj: Raw) -> Raw:
        return update_at(obj, "spec", _set_volume_defaults)

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        spec = spec_of(obj)
        found = [*_offer("spec", spec), *_source_problems("spec", spec), *_names("spec", spec)]
        annotations = get(obj["metadata"], "annotations", {})
        if _MOUNT_OPTIONS in annotations and source_of(spec).keys() <= _WITHOUT_MOUNT_OPTIONS:
            detail = "may not specify mount options for this volume type"
            found.append(forbidden(f"metadata.annotations.{_MOUNT_OPTIONS}", detail))
        return found


def source_of(spec: Raw) -> Raw:
    """Return the sources of a volume by kind; a valid volume has one."""
    return {kind: spec[kind] for kind in _SOURCES if spec.get(kind) is not None}


def _set_volume_defaults(spec: Raw) -> Raw:
    return update_at(
        set_defaults(spec, _DEFAULTS), "hostPath", lambda given: set_defaults(given, {"type": ""})
    )


def _offer(at: str, spec: Raw) -> Iterator[FieldProblem]:
    """Check the access modes, the capacity and the reclaim policy."""
    modes = get(spec, "accessModes", ())
    if not modes:
        yield required(f"{at}.accessModes")
    yield from access_mode_problems(f"{at}.accessModes", modes)
    capacity = spec.get("capacity") or None
    if capacity is None:
        yield required(f"{at}.capacity")
    if set(capacity or ()) != {"storage"}:
        detail = 'supported values: "storage"'
        yield FieldProblem(Reason.NOT_SUPPORTED, f"{at}.capacity", capacity, detail)
    for name, given in sorted((capacity or {}).items()):
        amount = Quantity.from_json(given)
        if amount.sign < 0:
            detail = "must be a valid resource quantity"
            yield invalid(f"{at}.capacity[{name}]", amount.value(), detail)
        if amount.sign <= 0:
            yield invalid(f"{at}.capacity[{name}]", str(amount), "must be greater than zero")
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy and policy not in _RECLAIM_POLICIES:
        yield not_supported(f"{at}.persistentVolumeReclaimPolicy", policy, _RECLAIM_POLICIES)


def _source_problems(at: str, spec: Raw) -> Iterator[FieldProblem]:
    """Check the node affinity and the source."""
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        needed = decode(affinity, VolumeNodeAffinity).required
        if needed is None:
            detail = "must specify required node constraints"
            yield required(f"{at}.nodeAffinity.required", detail)
        else:
            yield from node_selector(f"{at}.nodeAffinity.required", needed)
    sources = source_of(spec)
    for position, (kind, given) in enumerate(sources.items()):
        if position and kind != "flexVolume":
            yield forbidden(f"{at}.{kind}", "may not specify more than 1 volume type")
        else:
            yield from _source(f"{at}.{kind}", kind, given)
            if kind == "local" and affinity is None:
                yield required(f"{at}.nodeAffinity", "Local volume requires node affinity")
    if not sources:
        yield required(at, "must specify a volume type")
    is_recycled = spec.get("persistentVolumeReclaimPolicy") == "Recycle"
    if is_recycled and normpath(get(spec, "hostPath.path") or ".") == "/":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden(f"{at}.persistentVolumeReclaimPolicy", detail)


def _source(at: str, kind: str, given: Raw) -> Iterator[FieldProblem]:
    if kind in ("hostPath", "nfs"):
        yield from source_problems(at, kind, given)
    elif kind == "csi":
        yield from _driver(at, given)
    elif kind == "local":
        path = given.get("path") or ""
        if not path:
            yield required(f"{at}.path")
        elif steps_back(path):
            yield invalid(f"{at}.path", path, "must not contain '..'")
    else:
        yield from (required(f"{at}.{key}") for key in _SOURCES[kind] if not given.get(key))


def _driver(at: str, given: Raw) -> Iterator[FieldProblem]:
    yield from driver_name(f"{at}.driver", given.get("driver") or "")
    if not given.get("volumeHandle"):
        yield required(f"{at}.volumeHandle")
    for secret in _SECRETS:
        for key, check in (("name", subdomain), ("namespace", label)):
            path = f"{at}.{secret}.{key}"
            name = (given.get(secret) or {}).get(key)
            if name:
                yield from checked(path, name, check)
            elif given.get(secret) is not None:
                yield required(path)


def _names(at: str, spec: Raw) -> Iterator[FieldProblem]:
    """Check the names of classes, and the volume mode."""
    if spec.get("storageClassName"):
        yield from checked(f"{at}.storageClassName", spec["storageClassName"], subdomain)
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        yield not_supported(f"{at}.volumeMode", mode, VOLUME_MODES)
    name = spec.get("volumeAttributesClassName")
    if name is None:
        return
    if name:
        yield from checked(f"{at}.volumeAttributesClassName", name, subdomain)
    else:
        yield required(f"{at}.volumeAttributesClassName", "an empty string is disallowed")
    if spec.get("csi") is None:
        yield required(f"{at}.csi", "has to be specified when using volumeAttributesClassName")
