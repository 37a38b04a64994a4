"""PersistentVolumeClaims, PersistentVolumes and StorageClasses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import Subject
from dryrack.apiserver.answer.status import forbidden as refused
from dryrack.apiserver.strategies.limit_ranges import check_volume
from dryrack.apiserver.strategy import Strategy, object_meta
from dryrack.kinds.paths import get, spec_of, status_of
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.rules.checks import changed_paths
from dryrack.kinds.rules.json_edit import update_at, with_metadata, with_value, without
from dryrack.kinds.rules.persistent_volumes import VolumeRules, source_of
from dryrack.kinds.rules.storage_classes import StorageClassRules
from dryrack.kinds.rules.volume_claims import VolumeClaimRules
from dryrack.kinds.validation.meta import metadata
from dryrack.kinds.validation.problems import Token, forbidden, invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_CLAIMS = Subject("", "persistentvolumeclaims")
_CLASSES = "storageclasses.storage.k8s.io"
_IS_DEFAULT = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEPRECATED = {
    _OLD_CLASS: 'deprecated since v1.8; use "storageClassName" attribute instead',
    "volume.beta.kubernetes.io/mount-options": (
        'deprecated since v1.31; use "mountOptions" attribute instead'
    ),
}
_RECYCLED = (
    "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the "
    "recommended approach is to use dynamic provisioning."
)
_FIXED = "field is immutable"
_FIXED_CLAIM = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
    "bound claims"
)
_FIXED_SOURCE = "spec.persistentvolumesource is immutable after creation"
_NOTHING = "0"


class _StorageStrategy(Strategy):
    """Updates are judged as if they were new, then for the change; both are warned of."""

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource:
            return ()
        found = [
            *metadata(object_meta(obj), self.naming, namespaced=self.namespaced),
            *self.rules.problems(obj),
            *self.changes(obj, old),
        ]
        for warning in self.warnings(obj) if not found else ():
            write.warn(warning)
        return found

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        raise NotImplementedError


class VolumeClaimStrategy(_StorageStrategy):
    """Within the limits of their namespace, and of the default class if they name none."""

    def __init__(self) -> None:
        super().__init__(VolumeClaimRules())

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        made = update_at(obj, "spec", lambda spec: _with_sources(spec, {}))
        return {**made, "status": {"phase": "Pending"}}

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        made = super().prepare_update(obj, old, write)
        if write.subresource:
            return made
        return update_at(made, "spec", lambda spec: _with_sources(spec, spec_of(old)))

    def admit(self, obj: Raw, old: Raw | None, write: Write) -> Raw:
        if old is not None:
            return obj
        obj = _add_protection(obj, "kubernetes.io/pvc-protection")
        spec = spec_of(obj)
        annotations = _annotations(obj)
        if "storageClassName" in spec or _OLD_CLASS in annotations:
            return obj
        # The newest default class; "" if no class is marked as the default.
        found = [each["metadata"] for each in write.lookup.list(_CLASSES, None)]
        marked = [
            each
            for each in found
            if any(get(each, "annotations", {}).get(key) == "true" for key in _IS_DEFAULT)
        ]
        # Of several with the same creation time, the first by name.
        newest = max((each["creationTimestamp"] for each in marked), default="")
        name = min(
            (each["name"] for each in marked if each["creationTimestamp"] == newest), default=""
        )
        return {**obj, "spec": {**spec, "storageClassName": name}} if name else obj

    def approve(self, obj: Raw, old: Raw | None, write: Write) -> None:
        if write.subresource:
            return
        if old is not None:
            _check_growth(obj, old, write)
        check_volume(obj, write)

    def warnings(self, obj: Raw) -> Iterable[str]:
        if _OLD_CLASS in _annotations(obj):
            yield f"metadata.annotations[{_OLD_CLASS}]: {_DEPRECATED[_OLD_CLASS]}"
        for part in ("requests", "limits"):
            given = (get(obj["spec"], "resources", {}).get(part) or {}).get("storage")
            if given is not None and Quantity.from_json(given).milli_value() % 1000:
                about = f"spec.resources.{part}[storage]: fractional byte value"
                yield f'{about} "{Quantity.from_json(given)}" is invalid, must be an integer'

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        spec = spec_of(obj)
        before = old["spec"]
        old_class, new_class = (_annotations(each).get(_OLD_CLASS) for each in (old, obj))
        if old_class != new_class and not _moves_to_field(obj, old):
            yield invalid(f"metadata.annotations.{_OLD_CLASS}", new_class or "", _FIXED)
        changed = ", ".join(changed_paths("spec", *_fixed_parts(obj, old)))
        if changed:
            yield forbidden("spec", f"{_FIXED_CLAIM}; changed: {changed}")
        capacity = get(old, "status.capacity", {})
        there = Quantity.from_json(capacity.get("storage", _NOTHING))
        if (
            _requested_storage(spec) < _requested_storage(before)
            and _requested_storage(spec) <= there
        ):
            detail = "field can not be less than status.capacity"
            yield forbidden("spec.resources.requests.storage", detail)
        yield from _kept_mode(spec, before)
        # A claim with a VolumeAttributesClass cannot drop it.
        status = status_of(old)
        key = "volumeAttributesClassName"
        if status.get("currentVolumeAttributesClassName") is None or spec.get(key):
            return
        nothing = "nil" if spec.get(key) is None else "empty string"
        why = "is forbidden when status.currentVolumeAttributesClassName is not nil"
        yield forbidden(f"spec.{key}", f"update to {nothing} {why}")


class VolumeStrategy(_StorageStrategy):
    """A new one is pending until a controller has seen it."""

    def __init__(self) -> None:
        super().__init__(VolumeRules())

    def admit(self, obj: Raw, old: Raw | None, write: Write) -> Raw:
        return _add_protection(obj, "kubernetes.io/pv-protection") if old is None else obj

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        return _with_phase_time({**obj, "status": {"phase": "Pending"}}, write.now)

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        made = super().prepare_update(obj, old, write)
        phase, before = (get(each, "status.phase") for each in (made, old))
        return made if phase == before else _with_phase_time(made, write.now)

    def warnings(self, obj: Raw) -> Iterable[str]:
        for key, detail in _DEPRECATED.items():
            if key in _annotations(obj):
                yield f"metadata.annotations[{key}]: {detail}"
        if obj["spec"].get("persistentVolumeReclaimPolicy") == "Recycle":
            yield _RECYCLED

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        spec = spec_of(obj)
        before = old["spec"]
        changed = ", ".join(changed_paths("spec", _fixed_source(spec, before), source_of(before)))
        if changed:
            yield forbidden("spec.persistentvolumesource", f"{_FIXED_SOURCE}; changed: {changed}")
        yield from _kept_mode(spec, before)
        affinity = before.get("nodeAffinity")
        if affinity is not None and affinity != spec.get("nodeAffinity"):
            detail = f"{_FIXED}, except for updating from beta label to GA"
            yield invalid("nodeAffinity", spec.get("nodeAffinity"), detail)
        key = "volumeAttributesClassName"
        if before.get(key) is not None and spec.get(key) is None:
            yield forbidden(f"spec.{key}", "update from non-nil value to nil is forbidden")


class StorageClassStrategy(_StorageStrategy):
    """Fixed, but for whether volumes grow, how they are mounted, and where."""

    def __init__(self) -> None:
        super().__init__(StorageClassRules())

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        parameters = get(obj, "parameters", {})
        if parameters != get(old, "parameters", {}):
            yield invalid("parameters", parameters or None, _FIXED)
        for key in ("provisioner", "reclaimPolicy", "volumeBindingMode"):
            if obj.get(key) != old.get(key):
                yield invalid(key, obj.get(key) or "", _FIXED)


def _annotations(obj: Raw) -> Raw:
    return get(obj["metadata"], "annotations", {})


def _add_protection(obj: Raw, finalizer: str) -> Raw:
    """Add the finalizer that a controller removes when the object is not used any more."""
    finalizers = get(obj["metadata"], "finalizers", [])
    if finalizer in finalizers:
        return obj
    return with_metadata(obj, "finalizers", [*finalizers, finalizer])


def _with_phase_time(volume: Raw, now: str) -> Raw:
    """Set the time of the last phase transition."""
    return {**volume, "status": {**volume["status"], "lastPhaseTransitionTime": now}}


def _with_sources(spec: Raw, old: Raw) -> Raw:
    """Return the spec with the data source under its old and its new name."""
    source = spec.get("dataSource")
    reference = spec.get("dataSourceRef")
    if reference is not None and reference.get("namespace") and not old.get("dataSourceRef"):
        # From other namespaces nothing is copied, unless that is switched on.
        spec = without(spec, "dataSourceRef")
        reference = None
    is_new = not (old.get("dataSource") or old.get("dataSourceRef") or reference)
    if source is not None and is_new and not _is_copied_from(source):
        return without(spec, "dataSource")
    if source is not None and reference is None:
        return {**spec, "dataSource": _source(source), "dataSourceRef": _source(source)}
    if reference is not None and source is None and not reference.get("namespace"):
        return {**spec, "dataSource": _source(reference)}
    return spec


def _source(given: Raw) -> Raw:
    return {key: given.get(key) for key in ("apiGroup", "kind", "name")}


def _is_copied_from(source: Raw) -> bool:
    known = {"PersistentVolumeClaim": "", "VolumeSnapshot": "snapshot.storage.k8s.io"}
    return known.get(source.get("kind") or "") == (source.get("apiGroup") or "")


def _requested_storage(spec: Raw) -> Quantity:
    requests = get(spec, "resources.requests", {})
    return Quantity.from_json(requests.get("storage", _NOTHING))


def _moves_to_field(claim: Raw, old: Raw) -> bool:
    """Return whether the storage class moves from the annotation to the field."""
    named = _annotations(old).get(_OLD_CLASS)
    return (
        named is not None
        and old["spec"].get("storageClassName") is None
        and get(claim, "spec.storageClassName") == named
        and _annotations(claim).get(_OLD_CLASS, named) == named
    )


def _fixed_parts(claim: Raw, old: Raw) -> tuple[Raw, Raw]:
    """The specs of a claim after and before, without what may change."""
    spec = spec_of(claim)
    before = old["spec"]
    if not before.get("volumeName"):
        spec = without(spec, "volumeName")
    named = _annotations(old).get(_OLD_CLASS, spec.get("storageClassName"))
    if before.get("storageClassName") is None and spec.get("storageClassName") == named:
        spec = without(spec, "storageClassName")
    if get(claim, "status.phase") == "Bound" or _requested_storage(spec) == _requested_storage(
        before
    ):
        kept = get(before, "resources.requests.storage")
        spec = update_at(
            spec, "resources.requests", lambda given: with_value(given, "storage", kept)
        )
    if get(claim, "status.phase") == "Bound":
        key = "volumeAttributesClassName"
        spec = with_value(spec, key, before.get(key))
    return _set_fields(spec), _set_fields(before)


def _set_fields(spec: Raw) -> Raw:
    """Return the mapping without empty fields."""
    return without(spec, *(key for key, value in spec.items() if value is None or value == ""))


def _kept_mode(spec: Raw, old: Raw) -> Iterator[FieldProblem]:
    if spec.get("volumeMode") != old.get("volumeMode"):
        yield invalid("volumeMode", Token(spec.get("volumeMode") or ""), _FIXED)


def _fixed_source(spec: Raw, old: Raw) -> Raw:
    """The source of a volume; a driver that had no secret for growing may get one."""
    key = "controllerExpandSecretRef"
    if key in get(old, "csi", {}):
        return source_of(spec)
    return update_at(source_of(spec), "csi", lambda given: without(given, key))


def _check_growth(claim: Raw, old: Raw, write: Write) -> None:
    """PersistentVolumeClaimResize: a bound claim grows, if its class lets it."""
    if _requested_storage(claim["spec"]) <= _requested_storage(old["spec"]):
        return
    name = claim["metadata"]["name"]
    if get(old, "status.phase") != "Bound":
        raise refused(_CLAIMS, name, "Only bound persistent volume claims can be expanded")
    kind = _annotations(claim).get(_OLD_CLASS, claim["spec"].get("storageClassName"))
    storage_class = write.lookup.get(_CLASSES, "", kind) if kind else None
    if not (storage_class or {}).get("allowVolumeExpansion"):
        about = "only dynamically provisioned pvc can be resized"
        needed = "the storageclass that provisions the pvc must support resize"
        raise refused(_CLAIMS, name, f"{about} and {needed}")
