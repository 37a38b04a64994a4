"""
The kinds of resource.k8s.io: stored as v1, read and written in every version that is served.

Verdicts are those of `kinds.validation`, which gives the real server's causes; fields whose gate
is off are dropped before anything is judged, as the real server does it. A new kind-wide rule
belongs there, not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import bad_request
from dryrack.apiserver.strategy import Strategy, keep_status, status_only
from dryrack.cel.admission import SelectorChecker
from dryrack.kinds import resource
from dryrack.kinds.convert import GROUP, V1, from_v1, to_v1
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.defaults import with_defaults
from dryrack.kinds.paths import get, status_of
from dryrack.kinds.rules.copies import at, forgetting
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.text.document_patch import changed
from dryrack.kinds.validation import FieldProblem, validate, warnings
from dryrack.kinds.validation.gates import drop_disabled
from dryrack.kinds.validation.names import capacity_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation.writes import Validated

MODELS: Mapping[str, type[Validated]] = {
    "ResourceSlice": resource.ResourceSlice,
    "ResourceClaim": resource.ResourceClaim,
    "ResourceClaimTemplate": resource.ResourceClaimTemplate,
    "DeviceClass": resource.DeviceClass,
    "DeviceTaintRule": resource.DeviceTaintRule,
}

_CHECKER = SelectorChecker()
# By kind: where devices are asked for.
_DEVICES = {
    "ResourceClaim": ("spec.devices",),
    "ResourceClaimTemplate": ("spec.spec.devices",),
}


class DeviceStrategy(Strategy):
    """One kind of resource.k8s.io in one version."""

    def __init__(self, kind: str, version: str, *, namespaced: bool, has_status: bool) -> None:
        super().__init__(KindRules(namespaced=namespaced, has_status=has_status))
        self._kind = kind
        self._api_version = f"{GROUP}/{version}"
        # Only kinds without a namespace count the changes of their spec.
        self._counts_generations = not namespaced
        if kind == "ResourceSlice":
            self.selectable_fields = ("spec.nodeName", "spec.driver")
            self.field_refusal = "field label not supported for {gvk}: {label}"
        # Taint rules are too new for v1; they are stored as they come.
        self._is_in_v1 = kind != "DeviceTaintRule"
        self.updates_unconditionally = self._is_in_v1

    def default(self, obj: Raw, write: Write) -> Raw:
        return with_defaults(obj, now=write.now)

    def to_storage(self, obj: Raw) -> Raw:
        kept = to_v1(obj) if self._is_in_v1 else obj
        for path in _DEVICES.get(kept["kind"], ()):
            kept = at(kept, path, lambda devices: forgetting(devices, "requests"))
        return kept

    def from_storage(self, obj: Raw) -> Raw:
        return self._served(obj) if self._is_in_v1 else obj

    def _served(self, document: Raw) -> Raw:
        return document if self._api_version == V1 else from_v1(document, self._api_version)

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        kept = self._enabled(self._without_status(obj), None)
        return self._generation(kept, 1) if self._counts_generations else kept

    def _without_status(self, obj: Raw) -> Raw:
        if not self.has_status:
            return obj
        # Claims and rules always have one, if only an empty one.
        return {key: value for key, value in obj.items() if key != "status"} | {"status": {}}

    def validate_create(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        document = to_v1(obj)
        typed = self._typed(document)
        found = validate(
            typed,
            expressions=_CHECKER,
            namespace_labels=_namespace_labels(write),
            document=document,
        )
        for warning in () if found else warnings(typed):
            write.warn(warning)
        return found

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        if write.subresource == "status":
            return self._enabled(_without_lost_devices(status_only(obj, old), old), old)
        kept = keep_status(obj, old) if self.has_status else obj
        kept = self._enabled(kept, old)
        if not self._counts_generations:
            return kept
        before = old["metadata"].get("generation", 0)
        same = kept.get("spec") == old.get("spec")
        return self._generation(kept, before if same else before + 1)

    def validate_update(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        document = to_v1(obj)
        problems = validate(
            self._typed(document),
            old=self._typed(to_v1(old)),
            subresource=write.subresource,
            expressions=_CHECKER,
            namespace_labels=_namespace_labels(write),
            document=document,
        )
        if self._kind == "ResourceClaim" and write.subresource == "status":
            return (*problems, *_consumed_capacity_problems(document, old))
        return problems

    def _enabled(self, obj: Raw, old: Raw | None) -> Raw:
        """Without the fields that the gates of the reference release leave out."""
        document = to_v1(obj)
        typed = self._typed(document)
        before = self._typed(to_v1(old)) if old is not None else None
        dropped = drop_disabled(typed, before)
        if not dropped.fields:
            return obj
        return self._served(changed(document, typed, dropped.obj))

    def _typed(self, document: Raw) -> Validated:
        try:
            return decode(document, MODELS[self._kind])
        except DecodeError as error:
            raise bad_request(
                f"{self._kind} in version {self._api_version.rpartition('/')[2]!r} cannot be "
                f"handled as a {self._kind}: {error}"
            ) from error

    @staticmethod
    def _generation(obj: Raw, number: int) -> Raw:
        return {**obj, "metadata": {**obj["metadata"], "generation": number}}


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


def _namespace_labels(write: Write) -> Mapping[str, str] | None:
    if not write.namespace:
        return None
    namespace = write.lookup.get("namespaces", "", write.namespace)
    labels: Mapping[str, str] = get((namespace or {}).get("metadata", {}), "labels", {})
    return labels


def _without_lost_devices(claim: Raw, old: Raw) -> Raw:
    """What a claim tells of devices goes with them when they are given back."""
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
