"""PersistentVolumeClaims, also in templates of StatefulSets and pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.rules.checks import quantity_problems, selector_problems
from dryrack.kinds.rules.json_edit import set_defaults, update_at
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation.names import checked, label, subdomain
from dryrack.kinds.validation.problems import forbidden, invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
VOLUME_DEFAULTS = {"volumeMode": "Filesystem"}


class VolumeClaimRules(KindRules):
    """PersistentVolumeClaim."""

    def __init__(self) -> None:
        super().__init__(namespaced=True, has_status=True)

    def default(self, obj: Raw) -> Raw:
        return update_at(obj, "spec", lambda spec: set_defaults(spec, VOLUME_DEFAULTS))

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        return claim_problems("spec", spec_of(obj))


def claim_problems(at: str, spec: Raw) -> Iterator[FieldProblem]:
    """Yield the problems of the spec of a PersistentVolumeClaim."""
    modes = get(spec, "accessModes", ())
    if not modes:
        yield required(f"{at}.accessModes", "at least 1 access mode is required")
    yield from selector_problems(f"{at}.selector", spec.get("selector"))
    yield from access_mode_problems(f"{at}.accessModes", modes)
    yield from _storage(f"{at}.resources[storage]", spec)
    if spec.get("storageClassName"):
        yield from checked(f"{at}.storageClassName", spec["storageClassName"], subdomain)
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        yield not_supported(f"{at}.volumeMode", mode, VOLUME_MODES)
    yield from _sources(at, spec)
    if spec.get("volumeAttributesClassName"):
        name = spec["volumeAttributesClassName"]
        yield from checked(f"{at}.volumeAttributesClassName", name, subdomain)


def access_mode_problems(at: str, modes: Sequence[str]) -> Iterator[FieldProblem]:
    """Check the access modes of a claim or a volume."""
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield not_supported(at, mode, _ACCESS_MODES)
    known = {mode for mode in modes if mode in _ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        yield forbidden(at, "may not use ReadWriteOncePod with other access modes")


def _sources(at: str, spec: Raw) -> Iterator[FieldProblem]:
    """Check the data source, which has an old field and a new one."""
    source, reference = (spec.get(key) for key in ("dataSource", "dataSourceRef"))
    for key, given in (("dataSource", source), ("dataSourceRef", reference)):
        if given is not None:
            yield from _reference(f"{at}.{key}", given)
    if source is None or reference is None:
        return
    if reference.get("namespace"):
        yield invalid(at, {}, "may not be specified when dataSourceRef.namespace is specified")
    elif any(source.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
        # The real server shows {} instead of a path.
        yield invalid(at, {}, "must match dataSourceRef")


def _reference(at: str, given: Raw) -> Iterator[FieldProblem]:
    for key in ("name", "kind"):
        if not given.get(key):
            yield required(f"{at}.{key}")
    group = given.get("apiGroup")
    kind = given.get("kind") or ""
    if group:
        yield from checked(f"{at}.apiGroup", group, subdomain)
    elif kind != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield invalid(at, kind, detail)
    if given.get("namespace"):
        yield from checked(f"{at}.namespace", given["namespace"], label)


def _storage(at: str, spec: Raw) -> Iterator[FieldProblem]:
    given = get(spec, "resources.requests.storage")
    if given is None:
        yield required(at)
        return
    amount = Quantity.parse(given)
    if amount.sign <= 0:
        yield invalid(at, str(amount), "must be greater than zero")
    else:
        yield from quantity_problems(at, "storage", amount)
