"""ResourceSlices as a table, a line for each."""

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
    """A line for each slice, as kubectl has it, and how many devices it has."""
    return [_row(each["metadata"]["name"], each["spec"]) for each in slices]


def _row(name: str, spec: Raw) -> tuple[str, ...]:
    pool = spec["pool"]
    return (
        name,
        str(spec.get("nodeName") or (_ALL_NODES if spec.get("allNodes") else _SOME_NODES)),
        spec["driver"],
        pool["name"],
        str(pool["generation"]),
        str(len(get(spec, "devices", ()))),
    )
