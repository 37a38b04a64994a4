"""The scenarios that come with dryrack, by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.scenario.reading import FILE_NAME, LIBRARY, load_scenario

if TYPE_CHECKING:
    from dryrack.scenario.reading import LoadedScenario

SCHEMA = Path(__file__).parent / "schema.json"

# The scenarios of `dryrack demo`, in order.
DEMOS = (
    "karpenter-gpu",
    "karpenter-fpga",
    "karpenter-multi",
    "karpenter-cluster-wide",
    "overlay-h100",
    "fake-1",
    "fake-2",
    "fake-3",
    "fake-4",
    "fake-5",
    "file",
    "single-gpu",
    "dual-gpu",
    "gang-gpu",
    "fleet",
)


def packaged_names() -> tuple[str, ...]:
    """Return all names, the demos first."""
    found = {path.parent.name for path in LIBRARY.glob(f"*/{FILE_NAME}")}
    return (*DEMOS, *sorted(found - set(DEMOS)))


def packaged_file(name: str) -> Path | None:
    """Return the file of a scenario, or None."""
    path = LIBRARY / name / FILE_NAME
    return path if name in packaged_names() else None


def load_packaged(name: str) -> LoadedScenario:
    path = packaged_file(name)
    assert path is not None, f"unknown packaged scenario {name}"
    return load_scenario(path)
