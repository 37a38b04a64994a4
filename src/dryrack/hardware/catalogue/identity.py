"""
What tells the devices of one node from those of another.

A type of machine says that its cards have UUIDs, and not which. They follow from the name of
the node and of the card, so that a node that is made again has the same cards, and two nodes
never share one.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dryrack.kinds.resource import DeviceAttribute

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.hardware.inventory import Batch, Mark
    from dryrack.kinds.resource import Device

# What may stand between braces, and what of the digest it is.
MARKS = ("device.uuid", "device.serial", "node.uuid")
_MARK = re.compile("|".join(rf"\{{{re.escape(name)}\}}" for name in MARKS))


def is_marked(text: str) -> bool:
    """Whether a text differs from node to node."""
    return _MARK.search(text) is not None


def devices_on(batch: Batch, node: str) -> tuple[Device, ...]:
    """The devices of a batch as this node has them."""
    if not batch.marks:
        return batch.devices
    # The partitions of a card all name the card: one text for a few dozen marks.
    texts: dict[tuple[str, str], DeviceAttribute] = {}
    filled: dict[str, dict[str, DeviceAttribute]] = {}
    for mark in batch.marks:
        known = (mark.text, mark.seed)
        if known not in texts:
            texts[known] = DeviceAttribute(string_value=text_on(mark, batch.driver, node))
        filled.setdefault(mark.device, {})[mark.attribute] = texts[known]
    return tuple(_with(device, filled.get(device.name, {})) for device in batch.devices)


def text_on(mark: Mark, driver: str, node: str) -> str:
    """The text of a mark as this node has it."""
    return _MARK.sub(lambda found: _filled(found.group(), (driver, node, mark.seed)), mark.text)


def _with(device: Device, filled: Mapping[str, DeviceAttribute]) -> Device:
    return replace(device, attributes={**device.attributes, **filled}) if filled else device


def _filled(name: str, whose: tuple[str, str, str]) -> str:
    driver, node, seed = whose
    if name == "{node.uuid}":
        return _uuid(_digest(driver, node, ""))
    digest = _digest(driver, node, seed)
    return _uuid(digest) if name == "{device.uuid}" else digest[:10].upper()


def _digest(driver: str, node: str, seed: str) -> str:
    # No part can hold a NUL, so different parts never make one text.
    return hashlib.sha256("\0".join((driver, node, seed)).encode()).hexdigest()


def _uuid(digest: str) -> str:
    """The form of a name-based UUID (RFC 9562, version 8: the maker decides what is in it)."""
    variant = "89ab"[int(digest[16], 16) % 4]
    parts = (digest[:8], digest[8:12], f"8{digest[13:16]}", variant + digest[17:20], digest[20:32])
    return "-".join(parts)
