"""Claims of storage, by themselves and in templates of stateful sets and pods; and volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.quantity import Quantity
from dryrack.kinds.rules.checks import quantity_problems, selector_problems
from dryrack.kinds.rules.copies import filled, within
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation.names import checked, subdomain
from dryrack.kinds.validation.problems import forbidden, invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_CLAIM_DEFAULTS = {"volumeMode": "Filesystem"}
_VOLUME_DEFAULTS = {"persistentVolumeReclaimPolicy": "Retain", **_CLAIM_DEFAULTS}


class VolumeClaimRules(KindRules):
    """PersistentVolumeClaim."""

    def __init__(self) -> None:
        super().__init__(namespaced=True, has_status=True)

    def default(self, obj: Raw) -> Raw:
        return within(obj, "spec", lambda spec: filled(spec, _CLAIM_DEFAULTS))

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        return tuple(claim_problems("spec", obj.get("spec") or {}))


class VolumeRules(KindRules):
    """PersistentVolume; what it is stored on is not looked at."""

    def __init__(self) -> None:
        super().__init__(namespaced=False, has_status=True)

    def default(self, obj: Raw) -> Raw:
        return within(obj, "spec", lambda spec: filled(spec, _VOLUME_DEFAULTS))


def claim_problems(at: str, spec: Raw) -> Iterator[FieldProblem]:
    """Of the spec of a PersistentVolumeClaim."""
    yield from _access(f"{at}.accessModes", spec.get("accessModes") or ())
    yield from selector_problems(f"{at}.selector", spec.get("selector"))
    yield from _storage(f"{at}.resources[storage]", spec)
    if spec.get("storageClassName"):
        yield from checked(f"{at}.storageClassName", spec["storageClassName"], subdomain)
    mode = spec.get("volumeMode")
    if mode is not None and mode not in _VOLUME_MODES:
        yield not_supported(f"{at}.volumeMode", mode, _VOLUME_MODES)


def _access(at: str, modes: Sequence[str]) -> Iterator[FieldProblem]:
    if not modes:
        yield required(at, "at least 1 access mode is required")
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield not_supported(at, mode, _ACCESS_MODES)
    known = {mode for mode in modes if mode in _ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        yield forbidden(at, "may not use ReadWriteOncePod with other access modes")


def _storage(at: str, spec: Raw) -> Iterator[FieldProblem]:
    given = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if given is None:
        yield required(at)
        return
    amount = Quantity.parse(given)
    if amount.sign <= 0:
        yield invalid(at, str(amount), "must be greater than zero")
    else:
        yield from quantity_problems(at, "storage", amount)
