"""
Fields of disabled feature gates, which the API server drops.

The API server does not refuse such a field: it stores the object without the field, unless the
stored object uses the feature already. `drop_disabled` does the same and lists the fields, so that
a caller can report them. With the default gates of 1.36 these are, in slices, lists in attributes
(DRAListTypeAttributes) and the mapping to node allocatable resources (DRANodeAllocatableResources).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from dryrack.kinds.meta import KubernetesObject
from dryrack.kinds.resource import Device, DeviceAttribute, ResourceSlice

T = TypeVar("T", bound=KubernetesObject)

_MAPPINGS = "nodeAllocatableResourceMappings"
# By the name of the field: that in JSON.
_LISTS = {f"{kind}_values": f"{kind}s" for kind in ("bool", "int", "string", "version")}


@dataclass(frozen=True, slots=True)
class Dropped(Generic[T]):
    """An object as it would be stored, and the paths of what it lost."""

    obj: T
    fields: tuple[str, ...]


def drop_disabled(obj: T, old: T | None = None) -> Dropped[T]:
    """Leave out what a server of the reference release would not store."""
    if not isinstance(obj, ResourceSlice):
        return Dropped(obj, ())
    before = old.spec.devices if isinstance(old, ResourceSlice) else ()
    gone: list[str] = []
    devices = obj.spec.devices
    if not any(each.node_allocatable_resource_mappings for each in before):
        devices = tuple(_unmapped(each, at, gone) for at, each in enumerate(devices))
    if not any(_is_list(value) for each in before for value in each.attributes.values()):
        devices = tuple(_unlisted(each, at, gone) for at, each in enumerate(devices))
    if not gone:
        return Dropped(obj, ())
    spec = msgspec.structs.replace(obj.spec, devices=devices)
    return Dropped(msgspec.structs.replace(obj, spec=spec), tuple(gone))


def gate_of(field: str) -> str:
    """Return the feature gate of a field that `drop_disabled` names."""
    if field.endswith(f".{_MAPPINGS}"):
        return "DRANodeAllocatableResources"
    return "DRAListTypeAttributes"


def _unmapped(device: Device, at: int, gone: list[str]) -> Device:
    if not device.node_allocatable_resource_mappings:
        return device
    gone.append(f"spec.devices[{at}].{_MAPPINGS}")
    return msgspec.structs.replace(device, node_allocatable_resource_mappings={})


def _unlisted(device: Device, at: int, gone: list[str]) -> Device:
    listed = {name: value for name, value in device.attributes.items() if _is_list(value)}
    if not listed:
        return device
    for name, value in listed.items():
        place = f"spec.devices[{at}].attributes[{name}]"
        gone += [f"{place}.{_LISTS[field]}" for field in _lists(value)]
    plain = {
        name: msgspec.structs.replace(value, **dict.fromkeys(_LISTS))
        for name, value in listed.items()
    }
    return msgspec.structs.replace(device, attributes={**device.attributes, **plain})


def _is_list(attribute: DeviceAttribute) -> bool:
    # Asked of every attribute of a fleet, and hardly ever so.
    return not (
        attribute.bool_values is None
        and attribute.int_values is None
        and attribute.string_values is None
        and attribute.version_values is None
    )


def _lists(attribute: DeviceAttribute) -> Iterator[str]:
    """The fields for lists that are set."""
    return (field for field in _LISTS if getattr(attribute, field) is not None)
