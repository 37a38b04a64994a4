"""The devices that a driver publishes in ResourceSlices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.cel import (
    CompileError,
    Device,
    Environment,
    EvaluationError,
    Program,
    compile_expression,
)
from dryrack.kinds import resource
from dryrack.kinds.decode import decode
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.kinds.raw import Raw

_ENVIRONMENT = Environment(
    consumable_capacity=True, list_type_attributes=False, new_expressions=False
)


@dataclass(frozen=True, slots=True)
class Pool:
    """The slices of a pool that have its newest generation."""

    name: str
    generation: int
    slices: tuple[Raw, ...]

    @property
    def problem(self) -> str:
        """The reason why consumers ignore the pool; "" if they do not."""
        counts = sorted({each["spec"]["pool"]["resourceSliceCount"] for each in self.slices})
        if counts != [len(self.slices)]:
            return (
                f"{len(self.slices)} slices of generation {self.generation} state the counts "
                f"{counts}"
            )
        names = [each["name"] for each in self.devices]
        twice = sorted({each for each in names if names.count(each) > 1})
        return f"several devices have the names {', '.join(twice)}" if twice else ""

    @property
    def devices(self) -> tuple[Raw, ...]:
        return tuple(device for each in self.slices for device in get(each, "spec.devices", ()))


def pools_of(slices: Sequence[Raw]) -> tuple[Pool, ...]:
    """Return the pools of the slices of a driver, by name."""
    by_name: dict[str, list[Raw]] = {}
    for each in slices:
        by_name.setdefault(each["spec"]["pool"]["name"], []).append(each)
    pools = []
    for name, members in sorted(by_name.items()):
        newest = max(each["spec"]["pool"].get("generation", 0) for each in members)
        current = [e for e in members if e["spec"]["pool"].get("generation", 0) == newest]
        pools.append(Pool(name, newest, tuple(current)))
    return tuple(pools)


def published_devices(
    slices: Sequence[Raw], selectors: Sequence[str] = ()
) -> Mapping[tuple[str, str], Raw]:
    """Return the devices of complete pools that the CEL selectors select, by pool and name."""
    return {
        (pool.name, device["name"]): device
        for pool in pools_of(slices)
        if not pool.problem
        for device in _select(pool, selectors)
    }


def independent(devices: Mapping[tuple[str, str], Raw]) -> list[tuple[str, str]]:
    """Return devices that can be allocated together: no partitions that overlap."""
    plain = [key for key, each in devices.items() if not each.get("consumesCounters")]
    # Each of these takes another counter set, so they do not overlap.
    sets: dict[tuple[str, str], tuple[str, str]] = {}
    for key, each in devices.items():
        for consumption in each.get("consumesCounters", ()):
            sets.setdefault((key[0], consumption["counterSet"]), key)
    return plain or list(dict.fromkeys(sets.values()))


def _select(pool: Pool, selectors: Sequence[str]) -> Iterator[Raw]:
    programs = [compile_expression(each, _ENVIRONMENT) for each in selectors]
    driver = pool.slices[0]["spec"]["driver"]
    for each in pool.devices:
        typed = decode(each, resource.Device)
        shape = Device(driver, typed.attributes, typed.capacity, typed.allow_multiple_allocations)
        if all(_matches(program, shape) for program in programs):
            yield each


def _matches(program: Program | CompileError, device: Device) -> bool:
    try:
        # The API server accepts no DeviceClass that does not compile.
        return not isinstance(program, CompileError) and program.matches(device)
    except EvaluationError:
        return False
