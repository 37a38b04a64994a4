"""
What a server forgets: fields behind feature gates that are off.

A field that belongs to a disabled feature is not refused, it is dropped without a word, unless
the stored object uses the feature already. `drop_disabled` does the same and tells what went, so
that somebody can be warned. With the default gates of 1.36 that is lists in attributes and the
mapping to node allocatable resources.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from dryrack.kinds.meta import KubernetesObject
from dryrack.kinds.resource import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)

Fields: TypeAlias = Mapping[str, tuple[str, ...]]
T = TypeVar("T", bound=KubernetesObject)

# By upstream's names; a gate that is not here has no field in these kinds, or is off.
ENABLED_IN_1_36 = frozenset(
    {
        "DRAAdminAccess",
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRADeviceTaints",
        "DRAExtendedResource",
        "DRAPartitionableDevices",
        "DRAPrioritizedList",
        "DRAResourceClaimDeviceStatus",
    }
)

# `*` is every entry of a list or a map.
_DEVICE = "spec.devices.*"
_SLICE: Fields = {
    "DRADeviceTaints": (f"{_DEVICE}.taints",),
    "DRAPartitionableDevices": (
        "spec.shared_counters",
        "spec.per_device_node_selection",
        f"{_DEVICE}.consumes_counters",
        f"{_DEVICE}.node_name",
        f"{_DEVICE}.node_selector",
        f"{_DEVICE}.all_nodes",
    ),
    "DRADeviceBindingConditions": (
        f"{_DEVICE}.binding_conditions",
        f"{_DEVICE}.binding_failure_conditions",
        f"{_DEVICE}.binds_to_node",
    ),
    "DRAConsumableCapacity": (
        f"{_DEVICE}.allow_multiple_allocations",
        f"{_DEVICE}.capacity.*.request_policy",
    ),
    "DRANodeAllocatableResources": (f"{_DEVICE}.node_allocatable_resource_mappings",),
    "DRAListTypeAttributes": tuple(
        f"{_DEVICE}.attributes.*.{kind}_values" for kind in ("bool", "int", "string", "version")
    ),
}
_CLASS: Fields = {"DRAExtendedResource": ("spec.extended_resource_name",)}
_CLAIM_SPEC: Fields = {
    "DRAPrioritizedList": ("requests.*.first_available",),
    "DRADeviceTaints": (
        "requests.*.exactly.tolerations",
        "requests.*.first_available.*.tolerations",
    ),
    "DRAAdminAccess": ("requests.*.exactly.admin_access",),
    "DRAConsumableCapacity": (
        "constraints.*.distinct_attribute",
        "requests.*.exactly.capacity",
        "requests.*.first_available.*.capacity",
    ),
}
_RESULT = "status.allocation.devices.results.*"
_CLAIM_STATUS: Fields = {
    "DRAResourceClaimDeviceStatus": ("status.devices",),
    "DRAAdminAccess": (f"{_RESULT}.admin_access",),
    "DRAConsumableCapacity": (
        f"{_RESULT}.share_id",
        f"{_RESULT}.consumed_capacity",
        "status.devices.*.share_id",
    ),
    "DRADeviceBindingConditions": (
        f"{_RESULT}.binding_conditions",
        f"{_RESULT}.binding_failure_conditions",
    ),
}
# A gate of the left does nothing without that of the right.
_NEEDS = {"DRADeviceBindingConditions": "DRAResourceClaimDeviceStatus"}


@dataclass(frozen=True, slots=True)
class Dropped(Generic[T]):
    """An object as it would be stored, and the paths of what it lost."""

    obj: T
    fields: tuple[str, ...]


def drop_disabled(
    obj: T,
    old: T | None = None,
    *,
    subresource: str = "",
    enabled: frozenset[str] = ENABLED_IN_1_36,
) -> Dropped[T]:
    """Leave out what a server with these gates would not store."""
    kept, gone = obj, list[str]()
    for gate, paths in _fields(obj, subresource).items():
        if not _is_on(gate, enabled) and not _in_use(gate, old):
            for path in paths:
                kept = _without(kept, path.split("."), "", gone)
    return Dropped(kept, tuple(gone))


def _is_on(gate: str, enabled: frozenset[str]) -> bool:
    return gate in enabled and _NEEDS.get(gate, gate) in enabled


def _fields(obj: KubernetesObject, subresource: str) -> Fields:
    match obj:
        case ResourceSlice():
            return _SLICE
        case ResourceClaim():
            return _CLAIM_STATUS if subresource == "status" else _below("spec.devices")
        case ResourceClaimTemplate():
            return _below("spec.spec.devices")
        case DeviceClass():
            return _CLASS
        case _:
            return {}


def _below(prefix: str) -> Fields:
    return {gate: tuple(f"{prefix}.{p}" for p in paths) for gate, paths in _CLAIM_SPEC.items()}


def _in_use(gate: str, old: KubernetesObject | None) -> bool:
    """Whether what is stored has any field of the feature, in its spec or its status."""
    if old is None:
        return False
    paths = (*_fields(old, "").get(gate, ()), *_fields(old, "status").get(gate, ()))
    return any(_is_set(old, path.split(".")) for path in paths)


def _is_set(value: Any, path: Sequence[str]) -> bool:
    """Whether a path leads to anything that is set."""
    return value is not None and _seeker(tuple(path))(value)


# A fleet's slices have a thousand attributes, and all but none of them any such field; so what a
# path means is worked out once, and walking it is all that is left.
@cache
def _seeker(path: tuple[str, ...]) -> Callable[[Any], bool]:
    head, rest = path[0], path[1:]
    if head == "*":
        return _among(_seeker(rest))
    return _below_field(head, _seeker(rest)) if rest else _at_field(head)


def _among(is_set: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def among(value: Any) -> bool:
        for each in value.values() if isinstance(value, dict) else value:  # noqa: SIM110 - quicker
            if is_set(each):
                return True
        return False

    return among


def _below_field(name: str, is_set: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def below(value: Any) -> bool:
        found = getattr(value, name)
        return found is not None and is_set(found)

    return below


def _at_field(name: str) -> Callable[[Any], bool]:
    def differs(value: Any) -> bool:
        found = getattr(value, name, None)
        return found is not None and found != _default(value, name)

    return differs


def _without(value: Any, path: list[str], at: str, gone: list[str]) -> Any:
    """The same without what the path leads to; `gone` gets the places."""
    if not _is_set(value, path):
        return value
    head, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        return {key: _without(value[key], rest, f"{at}[{key}]", gone) for key in value}
    if isinstance(value, tuple):
        return tuple(_without(each, rest, f"{at}[{i}]", gone) for i, each in enumerate(value))
    here = f"{at}.{_json_name(value, head)}".lstrip(".")
    if rest:
        return msgspec.structs.replace(
            value, **{head: _without(getattr(value, head), rest, here, gone)}
        )
    gone.append(here)
    return msgspec.structs.replace(value, **{head: _default(value, head)})


def _json_name(value: msgspec.Struct, name: str) -> str:
    position = value.__struct_fields__.index(name)
    return value.__struct_encode_fields__[position]


def _default(value: msgspec.Struct, name: str) -> object:
    """What the field is in a fresh object."""
    return _default_of(type(value), name)


@cache
def _default_of(model: type[msgspec.Struct], name: str) -> object:
    return getattr(model(), name)
