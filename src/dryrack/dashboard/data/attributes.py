"""Attributes of devices, by which the map can group them: their names, values and columns."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dryrack.dashboard.data.fleet import PoolRow
    from dryrack.kinds.raw import Raw

Document = dict[str, Any]
_Id = tuple[str, str, str]
# An attribute with more distinct values is probably different for each device.
_VALUES_MAX = 50


def attribute_documents(slices: Iterable[Raw]) -> list[Document]:
    """Return every attribute with the number of devices by value, sorted by name."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for _, device in _devices(slices):
        for name, value in get(device, "attributes", {}).items():
            counts[name][_text(value)] += 1
    return [
        {
            "name": name,
            "devices": values.total(),
            "distinct": len(values),
            "values": dict(sorted(values.items())) if len(values) <= _VALUES_MAX else {},
        }
        for name, values in sorted(counts.items())
    ]


def attribute_columns(
    pools: Sequence[PoolRow], slices: Iterable[Raw], names: Sequence[str]
) -> Document:
    """Return, by attribute, its values and a column of indexes into them; -1 means no value."""
    attributes = {key: get(device, "attributes", {}) for key, device in _devices(slices)}
    rows = [(pool.driver, pool.name, each.name) for pool in pools for each in pool.devices]
    return {name: _column(name, rows, attributes) for name in names}


def _column(
    name: str, rows: Sequence[_Id], attributes: Mapping[_Id, Mapping[str, Raw]]
) -> Document:
    values: dict[str, int] = {}
    column = []
    for key in rows:
        value = attributes.get(key, {}).get(name)
        column.append(-1 if value is None else values.setdefault(_text(value), len(values)))
    return {"values": list(values), "column": column}


def _devices(slices: Iterable[Raw]) -> Iterator[tuple[_Id, Raw]]:
    """Yield devices with their names; those of newer generations come last."""
    ordered = sorted(slices, key=lambda each: each["spec"]["pool"].get("generation", 0))
    for each in ordered:
        spec = each["spec"]
        for device in get(spec, "devices", ()):
            yield (spec["driver"], spec["pool"]["name"], device["name"]), device


def _text(value: Mapping[str, Any]) -> str:
    """Return the value as `dryrack devices` writes it."""
    [only] = value.values()
    if isinstance(only, bool):
        return str(only).lower()
    return ",".join(map(str, only)) if isinstance(only, list) else str(only)
