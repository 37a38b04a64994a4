"""
Short ways to write the objects that an allocation is about.

Everything is made from the JSON shape of the API, so a test reads like the YAML it stands for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.allocation import (
    Allocated,
    Features,
    LiveAllocator,
    Release,
    Unsatisfiable,
)
from dryrack.kinds.core import Node
from dryrack.kinds.decode import decode
from dryrack.kinds.releases import DEFAULT_RELEASE
from dryrack.kinds.resource import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.allocation import Outcome, SearchMemo
    from dryrack.base.ports import Chance

DRIVER = "gpu.example.com"
NODE = "node-1"


class Counting:
    """Identifiers that count up instead of random ones."""

    def __init__(self) -> None:
        self._made = 0

    def uuid(self) -> str:
        self._made += 1
        return f"00000000-0000-4000-8000-{self._made:012}"


def value(of: object) -> dict[str, object]:
    kind = "bool" if isinstance(of, bool) else "int" if isinstance(of, int) else "string"
    return {kind: of}


def device(name: str, *, more: dict[str, Any] | None = None, **attributes: object) -> Any:
    """A device with attributes; `more` are its other fields."""
    return {
        "name": name,
        "attributes": {key: value(each) for key, each in attributes.items()},
        **(more or {}),
    }


def devices(count: int) -> list[Any]:
    """Devices that differ in nothing but their names."""
    return [device(f"gpu-{number}") for number in range(count)]


def drawing(name: str, counter_set: str = "gpu", **counters: int) -> Any:
    """A device that draws on counters."""
    drawn = {counter: {"value": str(amount)} for counter, amount in counters.items()}
    return device(name, more={"consumesCounters": [{"counterSet": counter_set, "counters": drawn}]})


def counters(name: str = "gpu", **values: int) -> Any:
    return {"name": name, "counters": {c: {"value": str(v)} for c, v in values.items()}}


def pool(
    offered: Sequence[Any],
    *,
    sets: Sequence[Any] = (),
    name: str = "pool",
    node: str | None = NODE,
) -> list[ResourceSlice]:
    """A complete pool: one slice with devices, and one with counter sets if there are any."""
    place = {"allNodes": True} if node is None else {"nodeName": node}
    parts: list[Any] = [{"devices": list(offered)}]
    if sets:
        parts.append({"sharedCounters": list(sets)})
    of_pool = {"name": name, "generation": 1, "resourceSliceCount": len(parts)}
    return [
        slice_(f"{name}-{number}", {"driver": DRIVER, "pool": of_pool, **place, **part})
        for number, part in enumerate(parts)
    ]


def slice_(name: str, spec: Any) -> ResourceSlice:
    return decode({"metadata": {"name": name}, "spec": spec}, ResourceSlice)


def request(name: str, count: int = 1, *, select: str = "", **fields: Any) -> Any:
    """An exact request for some devices of class "gpu"."""
    return {"name": name, "exactly": way(count, select=select, **fields)}


def way(count: int = 1, *, select: str = "", **fields: Any) -> Any:
    selectors = [{"cel": {"expression": select}}] if select else []
    return {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": selectors,
        **fields,
    }


def all_devices(name: str) -> Any:
    return {"name": name, "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}


def claim(*requests: Any, name: str = "claim", **devices_: Any) -> ResourceClaim:
    spec = {"devices": {"requests": list(requests), **devices_}}
    return decode({"metadata": {"name": name}, "spec": spec}, ResourceClaim)


def device_class(name: str = "gpu", *, select: str = "") -> DeviceClass:
    selectors = [{"cel": {"expression": select}}] if select else []
    return decode({"metadata": {"name": name}, "spec": {"selectors": selectors}}, DeviceClass)


def node(name: str = NODE, **labels: str) -> Node:
    return decode({"metadata": {"name": name, "labels": labels}}, Node)


def used(*devices_: str, pool: str = "pool", **fields: Any) -> AllocationResult:
    """Return the allocation of a claim."""
    of_claim = {"request": "r", "driver": DRIVER, "pool": pool, **fields}
    results = [{**of_claim, "device": each} for each in devices_]
    return decode({"devices": {"results": results}}, AllocationResult)


def allocator(
    slices: Iterable[ResourceSlice],
    *,
    held: Mapping[str, AllocationResult] | None = None,
    classes: Iterable[DeviceClass] = (),
    features: Features | None = None,
    release: Release = DEFAULT_RELEASE,
    chance: Chance | None = None,
    memo: SearchMemo | None = None,
) -> LiveAllocator:
    """Return an allocator with slices, classes (by default "gpu"), and allocations of claims."""
    made = LiveAllocator(features=features, release=release, chance=chance or Counting(), memo=memo)
    for each in tuple(classes) or (device_class(),):
        made.put_class(each)
    for offered in slices:
        made.put_slice(offered)
    for claim_, allocation in (held or {}).items():
        made.set_allocation(claim_, allocation)
    return made


def given(outcome: Outcome) -> list[list[str]]:
    """The names of the devices that each claim got."""
    assert isinstance(outcome, Allocated), [r.message for r in refused(outcome).reasons]
    return [[each.device for each in result.devices.results] for result in outcome.results]


def refused(outcome: Outcome) -> Unsatisfiable:
    assert not isinstance(outcome, Allocated), given(outcome)
    assert isinstance(outcome, Unsatisfiable), "the search was given up"
    return outcome
