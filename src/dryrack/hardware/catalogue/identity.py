"""
Attributes that differ from node to node, such as UUIDs.

An instance type defines that its devices have UUIDs, but not their values. These follow from the
names of the node and the device, so that a node that is created again has the same devices, and two
nodes never have the same one.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dryrack.kinds.resource import DeviceAttribute

if TYPE_CHECKING:
    from dryrack.hardware.inventory import Batch, Mark
    from dryrack.kinds.resource import Device

# The placeholders whose values follow from the node.
MARKS = ("device.uuid", "device.serial", "node.uuid")
_MARK = re.compile("|".join(rf"\{{{re.escape(name)}\}}" for name in MARKS))


def is_marked(text: str) -> bool:
    """Return whether a text differs from node to node."""
    return _MARK.search(text) is not None


def devices_on(batch: Batch, node: str) -> tuple[Device, ...]:
    """Return the devices of a batch with the attributes that they have on a node."""
    if not batch.marks:
        return batch.devices
    # All partitions of a device have its UUID: a few dozen marks share one text.
    texts: dict[tuple[str, str], DeviceAttribute] = {}
    unique: dict[str, dict[str, DeviceAttribute]] = {}
    for mark in batch.marks:
        key = (mark.text, mark.seed)
        if key not in texts:
            texts[key] = DeviceAttribute(string_value=_text_on(mark, batch.driver, node))
        unique.setdefault(mark.device, {})[mark.attribute] = texts[key]
    return tuple(
        replace(device, attributes={**device.attributes, **unique[device.name]})
        if device.name in unique
        else device
        for device in batch.devices
    )


def _text_on(mark: Mark, driver: str, node: str) -> str:
    """Return the text of a mark on a node."""

    def value_of(placeholder: re.Match[str]) -> str:
        if placeholder.group() == "{node.uuid}":
            return _uuid(_digest(driver, node, ""))
        digest = _digest(driver, node, mark.seed)
        is_uuid = placeholder.group() == "{device.uuid}"
        return _uuid(digest) if is_uuid else digest[:10].upper()

    return _MARK.sub(value_of, mark.text)


def _digest(driver: str, node: str, seed: str) -> str:
    # No part can contain NUL, so that the joined text is unique.
    return hashlib.sha256("\0".join((driver, node, seed)).encode()).hexdigest()


def _uuid(digest: str) -> str:
    """Return a digest as a UUID of version 8 (RFC 9562), whose contents are free."""
    variant = "89ab"[int(digest[16], 16) % 4]
    parts = (digest[:8], digest[8:12], f"8{digest[13:16]}", variant + digest[17:20], digest[20:32])
    return "-".join(parts)
