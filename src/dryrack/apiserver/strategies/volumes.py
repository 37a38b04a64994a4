"""Claims of storage, and volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.limits.enforcement import check_volume
from dryrack.apiserver.strategy import Strategy
from dryrack.kinds.rules.volume_claims import VolumeClaimRules, VolumeRules

if TYPE_CHECKING:
    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw

_CLASSES = "storageclasses.storage.k8s.io"
_IS_DEFAULT = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


class VolumeClaimStrategy(Strategy):
    """Within the limits of their namespace, and of the default class if they name none."""

    def __init__(self) -> None:
        super().__init__(VolumeClaimRules())

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        return {**obj, "status": {"phase": "Pending"}}

    def admit(self, obj: Raw, old: Raw | None, write: Write) -> Raw:
        spec, annotations = obj.get("spec") or {}, obj["metadata"].get("annotations") or {}
        if old is not None or "storageClassName" in spec or _OLD_CLASS in annotations:
            return obj
        name = _default_class(write)
        return {**obj, "spec": {**spec, "storageClassName": name}} if name else obj

    def approve(self, obj: Raw, old: Raw | None, write: Write) -> None:
        if not write.subresource:
            check_volume(obj, write)


class VolumeStrategy(Strategy):
    """A new one is pending until a controller has seen it."""

    def __init__(self) -> None:
        super().__init__(VolumeRules())

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        return _dated({**obj, "status": {"phase": "Pending"}}, write.now)

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        made = super().prepare_update(obj, old, write)
        phase, before = ((each.get("status") or {}).get("phase") for each in (made, old))
        return made if phase == before else _dated(made, write.now)


def _dated(volume: Raw, now: str) -> Raw:
    """Since when it is in its phase."""
    return {**volume, "status": {**volume["status"], "phaseTransitionTime": now}}


def _default_class(write: Write) -> str:
    """The newest of those that say that they are the default; "" if none does."""
    found = [each["metadata"] for each in write.lookup.list(_CLASSES, None)]
    marked = [
        each
        for each in found
        if any((each.get("annotations") or {}).get(key) == "true" for key in _IS_DEFAULT)
    ]
    # Of several of one moment the first by name.
    newest = max((each["creationTimestamp"] for each in marked), default="")
    return min((each["name"] for each in marked if each["creationTimestamp"] == newest), default="")
