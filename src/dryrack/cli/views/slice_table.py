"""The table of ResourceSlices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.kinds.raw import Raw

SLICE_COLUMNS = ("SLICE", "NODE", "DRIVER", "POOL", "GENERATION", "DEVICES")
_ALL_NODES = "all nodes"
_SOME_NODES = "some nodes"


def slice_rows(slices: Iterable[Raw]) -> list[tuple[str, ...]]:
    """Return a row for each slice, with the number of its devices."""
    rows: list[tuple[str, ...]] = []
    for each in slices:
        spec = each["spec"]
        nodes = spec.get("nodeName") or (_ALL_NODES if spec.get("allNodes") else _SOME_NODES)
        pool = spec["pool"]
        devices = str(len(get(spec, "devices", ())))
        generation = str(pool["generation"])
        name = each["metadata"]["name"]
        rows.append((name, str(nodes), spec["driver"], pool["name"], generation, devices))
    return rows
