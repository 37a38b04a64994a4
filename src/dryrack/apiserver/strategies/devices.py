"""
The kinds of resource.k8s.io: stored in one version, read and written in every served version.

Fields of disabled feature gates are dropped before validation, as in the real server. A new rule
for a kind belongs into `kinds.validation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import bad_request
from dryrack.apiserver.strategy import Strategy, keep_status, object_meta, status_and_metadata
from dryrack.cel.admission import SelectorChecker
from dryrack.kinds.convert import V1, from_v1, to_v1
from dryrack.kinds.decode import DecodeError
from dryrack.kinds.defaults import with_defaults
from dryrack.kinds.paths import get, status_of
from dryrack.kinds.releases import SLICE_FIELD_SELECTORS, FeatureSet
from dryrack.kinds.rules.json_edit import null_if_empty, update_at, with_metadata
from dryrack.kinds.validation.device_rules import DeviceRules
from dryrack.kinds.validation.gates import drop_disabled
from dryrack.kinds.validation.names import capacity_name
from dryrack.kinds.validation.slices import slice_warnings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.registry import Kind
    from dryrack.kinds.validation import FieldProblem
    from dryrack.kinds.validation.parts import ExpressionChecker

# By kind: where devices are requested.
_DEVICES = {
    "ResourceClaim": ("spec.devices",),
    "ResourceClaimTemplate": ("spec.spec.devices",),
}

# The metadata that a write of the status does not change.
_RESET_BY_STATUS = (
    *("annotations", "deletionTimestamp", "finalizers", "generation", "labels"),
    "ownerReferences",
)


_DEFAULT_FEATURES = FeatureSet()


class DeviceStrategy(Strategy):
    """One kind of resource.k8s.io in one version."""

    def __init__(
        self,
        kind: Kind,
        checker: ExpressionChecker | None = None,
        features: FeatureSet = _DEFAULT_FEATURES,
    ) -> None:
        super().__init__(DeviceRules(kind.kind, features=features))
        self._kind = kind
        self._features = features
        self._checker = checker or SelectorChecker(features)
        if kind.kind == "ResourceSlice":
            self.selectable_fields = SLICE_FIELD_SELECTORS[features.release]
            self.field_refusal = "field label not supported for {gvk}: {label}"
        self._is_rule = kind.kind == "DeviceTaintRule"
        self._stored_version = f"{kind.group}/{kind.storage_version}"
        # Rules were too new for v1 for a while; only their v1 asks for a resourceVersion.
        self.updates_unconditionally = not (self._is_rule and kind.version == "v1")

    def default(self, obj: Raw, write: Write) -> Raw:
        return with_defaults(obj, now=write.now)

    def to_storage(self, obj: Raw) -> Raw:
        stored = _in_version(obj, self._stored_version)
        for path in _DEVICES.get(stored["kind"], ()):
            stored = update_at(stored, path, lambda devices: null_if_empty(devices, "requests"))
        return stored

    def from_storage(self, obj: Raw) -> Raw:
        return _in_version(obj, self._kind.api_version)

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        if self.has_status:
            # New claims and taint rules have an empty status.
            obj = {**obj, "status": {}}
        new = self._drop_disabled(obj, None)
        # Only cluster-wide kinds count the changes of their spec.
        return new if self.namespaced else with_metadata(new, "generation", 1)

    def validate_create(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        try:
            problems = self._rules_for(write).new_problems(obj, object_meta(obj))
        except DecodeError as error:
            raise self._bad_request(error) from error
        if self._kind.kind == "ResourceSlice" and not problems:
            for warning in slice_warnings(obj["spec"]["driver"]):
                write.warn(warning)
        return problems

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        if write.subresource == "status":
            return self._drop_disabled(_without_lost_devices(_status_written(obj, old), old), old)
        new = self._drop_disabled(keep_status(obj, old) if self.has_status else obj, old)
        if self.namespaced:
            return new
        if self._is_rule:
            new = _with_time_of_effect(new, old, write.now)
        generation = old["metadata"].get("generation", 0)
        if new.get("spec") != old.get("spec"):
            generation += 1
        return with_metadata(new, "generation", generation)

    def validate_update(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        try:
            problems = self._rules_for(write).change_problems(obj, old, write.subresource)
        except DecodeError as error:
            raise self._bad_request(error) from error
        if self._kind.kind == "ResourceClaim" and write.subresource == "status":
            return (*problems, *_consumed_capacity_problems(to_v1(obj), old))
        return problems

    def _rules_for(self, write: Write) -> DeviceRules:
        """Return the rules for the namespace of the write."""
        labels: Mapping[str, str] | None = None
        if write.namespace:
            namespace = write.lookup.get("namespaces", "", write.namespace)
            labels = get(namespace, "metadata.labels", {})
        return DeviceRules(self._kind.kind, self._checker, labels, self._features)

    def _bad_request(self, error: DecodeError) -> Exception:
        kind = self._kind
        return bad_request(
            f"{kind.kind} in version {kind.version!r} cannot be handled as a {kind.kind}: {error}"
        )

    def _drop_disabled(self, obj: Raw, old: Raw | None) -> Raw:
        dropped = drop_disabled(to_v1(obj), None if old is None else to_v1(old), self._features)
        return self.from_storage(dropped.document) if dropped.fields else obj


def _in_version(obj: Raw, api_version: str) -> Raw:
    if obj["apiVersion"] == api_version:
        return obj
    current = to_v1(obj)
    return current if api_version == V1 else from_v1(current, api_version)


def _with_time_of_effect(rule: Raw, old: Raw, now: str) -> Raw:
    """Return the rule with a new timeAdded if its effect changes and the client sets no time."""
    taint, before = get(rule, "spec.taint", {}), get(old, "spec.taint", {})
    is_changed = taint.get("effect") != before.get("effect")
    if not is_changed or taint.get("timeAdded") != before.get("timeAdded"):
        return rule
    return update_at(rule, "spec.taint", lambda taint: {**taint, "timeAdded": now})


def _consumed_capacity_problems(claim: Raw, old: Raw) -> Iterator[FieldProblem]:
    """
    Check the names of consumed capacity, as the server checks those of a device's capacity.

    A real server takes any text here. Drivers make environment variables of these names, and a
    line end or "=" in one of them would set other variables.
    """
    known = _results_of(old)
    for position, result in enumerate(_results_of(claim)):
        if result not in known:
            field = f"status.allocation.devices.results[{position}].consumedCapacity"
            for name in sorted(get(result, "consumedCapacity", {})):
                yield from capacity_name(field, name)


def _results_of(claim: Raw) -> Sequence[Raw]:
    allocation = get(claim, "status.allocation", {})
    return get(allocation, "devices.results", ())


def _status_written(obj: Raw, old: Raw) -> Raw:
    """Return the stored object with the status of the new one."""
    given = obj["metadata"]
    stored = old["metadata"]
    meta = {key: value for key, value in given.items() if key not in _RESET_BY_STATUS}
    meta |= {key: stored[key] for key in _RESET_BY_STATUS if key in stored}
    return status_and_metadata({**obj, "metadata": meta}, old)


def _without_lost_devices(claim: Raw, old: Raw) -> Raw:
    """Return the claim without the status of devices that are no longer allocated."""
    status = status_of(claim)
    told = status.get("devices")
    lost = _devices_of(old) - _devices_of(claim)
    if not told or not lost:
        return claim
    left = [each for each in told if _device_of(each) not in lost]
    kept = {key: value for key, value in status.items() if key != "devices"}
    return {**claim, "status": kept | ({"devices": left} if left else {})}


def _devices_of(claim: Raw) -> set[tuple[str, ...]]:
    return {_device_of(each) for each in _results_of(claim)}


def _device_of(named: Raw) -> tuple[str, ...]:
    return tuple(named.get(key) or "" for key in ("driver", "pool", "device", "shareID"))
