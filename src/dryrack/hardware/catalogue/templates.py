"""
Placeholders in the values of device models, for values that depend on the slot of a device.

The instance type must set `{pci}`; it may set `{root?}`, and otherwise the value that contains the
placeholder is left out. If the API expects a number or a boolean, a placeholder that is the whole
value is replaced by the value with its type; otherwise it is replaced by text. `{pci_dashed}`, and
in decimal `{pci_bus}` and `{pci_slot}`, follow from the PCI address.
`identity` replaces marks such as `{device.uuid}`, which depend on the node.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dryrack.hardware.catalogue.identity import MARKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PCI_ADDRESS = re.compile(r"[0-9a-f]{4}:([0-9a-f]{2}):([01][0-9a-f])\.[0-7]")
# Placeholders that every device has without a value in the file.
GIVEN = ("index", "type")

_PLACEHOLDER = re.compile(r"\{([a-z][A-Za-z0-9_.]*)(\??)\}")
_FROM_PCI = ("pci_dashed", "pci_bus", "pci_slot")
_NOT_TEXT = ("int", "ints", "bool", "bools", "value")
_SAMPLES = {"pci": "0000:01:00.0", "root": "pci0000:00"}


class _OmittedError(Exception):
    """An optional placeholder has no value; caught in this module."""


def variables(value: Any) -> Iterator[tuple[str, bool]]:
    """Yield the placeholders that an instance type sets, and whether they are required."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from variables(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from variables(inner)
    elif isinstance(value, str):
        for name, optional in _PLACEHOLDER.findall(value):
            if name not in (*GIVEN, *MARKS):
                yield "pci" if name in _FROM_PCI else name, not optional


def add_pci_values(slot: Mapping[str, Any]) -> dict[str, Any]:
    """Return a slot with the values that follow from its PCI address."""
    address = slot.get("pci")
    match = PCI_ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if match is None:
        return dict(slot)
    bus, pci_slot = (int(digits, 16) for digits in match.groups())
    dashed = re.sub("[:.]", "-", match.group())
    return {**slot, "pci_dashed": dashed, "pci_bus": bus, "pci_slot": pci_slot}


def make_sample_slot(names: Mapping[str, bool]) -> dict[str, Any]:
    """Return a slot with sample values for these placeholders."""
    values = {name: _SAMPLES.get(name, 0) for name in ("index", *names)}
    return add_pci_values(values | {"type": "any"})


def fill(value: Any, slot: Mapping[str, Any]) -> Any:
    """Replace the placeholders of a value; return None if an optional one has no value."""
    try:
        return _fill(value, slot)
    except _OmittedError:
        return None


def fill_entries(values: Mapping[str, Any], slot: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the placeholders of a map, without entries that are left out, sorted by name."""
    pairs = ((name, fill(values[name], slot)) for name in sorted(values))
    return {name: value for name, value in pairs if value is not None}


def _fill(value: Any, slot: Mapping[str, Any], field: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _fill(inner, slot, key) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_fill(inner, slot, field) for inner in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    whole = _PLACEHOLDER.fullmatch(value)
    if whole is not None and field in _NOT_TEXT:
        return _look_up(whole, slot)
    return _PLACEHOLDER.sub(lambda match: str(_look_up(match, slot)), value)


def _look_up(placeholder: re.Match[str], slot: Mapping[str, Any]) -> Any:
    name = placeholder[1]
    if name in MARKS:
        return placeholder.group()
    if name not in slot:
        raise _OmittedError
    return slot[name]
