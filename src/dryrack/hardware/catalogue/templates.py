"""
Placeholders: what of a device depends on where it sits.

`{pci}` must be given by the instance type; `{root?}` may be, and what holds it is left out where
it is not. Where the API wants a number or a truth, a placeholder that stands alone becomes what
was given; elsewhere it becomes text. From a PCI address more follows: `{pci_dashed}`, and in
decimal `{pci_bus}` and `{pci_slot}`.
Marks such as `{device.uuid}` are left for `identity`, which knows the node.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dryrack.hardware.catalogue.identity import MARKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PCI_ADDRESS = re.compile(r"[0-9a-f]{4}:([0-9a-f]{2}):([01][0-9a-f])\.[0-7]")
# Known of every device, without being given.
GIVEN = ("index", "type")

_PLACEHOLDER = re.compile(r"\{([a-z][A-Za-z0-9_.]*)(\??)\}")
_FROM_PCI = ("pci_dashed", "pci_bus", "pci_slot")
_NOT_TEXT = ("int", "ints", "bool", "bools", "value")
_SAMPLES = {"pci": "0000:01:00.0", "root": "pci0000:00"}


class _OmittedError(Exception):
    """An optional placeholder was not given; never leaves this module."""


def variables(value: Any) -> Iterator[tuple[str, bool]]:
    """The placeholders that an instance type gives, and whether it must."""
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


def completed(slot: Mapping[str, Any]) -> dict[str, Any]:
    """All that is known of a slot: what was given, and what follows from it."""
    address = slot.get("pci")
    found = PCI_ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if found is None:
        return dict(slot)
    bus, place = (int(digits, 16) for digits in found.groups())
    dashed = re.sub("[:.]", "-", found.group())
    return {**slot, "pci_dashed": dashed, "pci_bus": bus, "pci_slot": place}


def sample(names: Mapping[str, bool]) -> dict[str, Any]:
    """A slot in which all these are given."""
    return completed({name: _SAMPLES.get(name, 0) for name in ("index", *names)} | {"type": "any"})


def filled(value: Any, slot: Mapping[str, Any]) -> Any:
    """The value with its placeholders filled; None where it is left out."""
    try:
        return _filled(value, slot)
    except _OmittedError:
        return None


def filled_each(values: Mapping[str, Any], slot: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of a map, those left out missing, in the order in which the API has them."""
    pairs = ((name, filled(values[name], slot)) for name in sorted(values))
    return {name: value for name, value in pairs if value is not None}


def _filled(value: Any, slot: Mapping[str, Any], field: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner, slot, key) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(inner, slot, field) for inner in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    whole = _PLACEHOLDER.fullmatch(value)
    if whole is not None and field in _NOT_TEXT:
        return _looked_up(whole, slot)
    return _PLACEHOLDER.sub(lambda found: str(_looked_up(found, slot)), value)


def _looked_up(found: re.Match[str], slot: Mapping[str, Any]) -> Any:
    name = found[1]
    if name in MARKS:
        return found.group()
    if name not in slot:
        raise _OmittedError
    return slot[name]
