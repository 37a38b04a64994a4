"""
Fields of disabled feature gates, which the API server drops.

The API server does not refuse such a field: it stores the object without the field, unless the
stored object uses the feature already. With the default gates of 1.36 these are, in slices, lists
in attributes (DRAListTypeAttributes) and the mapping to node allocatable resources
(DRANodeAllocatableResources).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

_MAPPINGS = "nodeAllocatableResourceMappings"
_LISTS = ("bools", "ints", "strings", "versions")
_LIST_NAMES = frozenset(_LISTS)


@dataclass(frozen=True, slots=True)
class Dropped:
    """An object as the API server stores it, and the paths of the fields that it drops."""

    document: Raw
    fields: tuple[str, ...]


def drop_disabled(document: Raw, old: Raw | None = None) -> Dropped:
    """Drop the fields that a server of the reference release does not store; all are in v1."""
    if document.get("kind") != "ResourceSlice":
        return Dropped(document, ())
    stored: Sequence[Raw] = get(old, "spec.devices", ())
    fields: list[str] = []
    devices: Sequence[Raw] = get(document, "spec.devices", ())
    if not any(get(each, _MAPPINGS) for each in stored):
        for position, device in enumerate(devices):
            if get(device, _MAPPINGS):
                fields.append(f"spec.devices[{position}].{_MAPPINGS}")
        if fields:
            devices = [
                {key: value for key, value in (each or {}).items() if key != _MAPPINGS or not value}
                for each in devices
            ]
    if not any(_has_lists(each) for each in stored):
        devices = [_without_lists(each, position, fields) for position, each in enumerate(devices)]
    if not fields:
        return Dropped(document, ())
    return Dropped({**document, "spec": {**document["spec"], "devices": devices}}, tuple(fields))


def _has_lists(device: Raw) -> bool:
    return any(_lists_of(each) for each in get(device, "attributes", {}).values())


def _lists_of(attribute: Mapping[str, Any] | None) -> list[str]:
    # This runs for every attribute of every slice, and hardly any has a list.
    if not attribute or _LIST_NAMES.isdisjoint(attribute):
        return []
    return [name for name in _LISTS if attribute.get(name) is not None]


def _without_lists(device: Raw, position: int, fields: list[str]) -> Raw:
    """Return the device without lists in attributes; add the paths of the lists to `fields`."""
    attributes: Raw = get(device, "attributes", {})
    plain = {}
    for name, attribute in attributes.items():
        lists = _lists_of(attribute)
        if lists:
            place = f"spec.devices[{position}].attributes[{name}]"
            fields += [f"{place}.{each}" for each in lists]
            plain[name] = {key: value for key, value in attribute.items() if key not in _LISTS}
    return {**device, "attributes": {**attributes, **plain}} if plain else device
