"""
DR22x: counters that partitions of a device share.

The API server checks one slice at a time, and counter sets live in other slices than the
devices that draw on them. What does not fit together is found by the scheduler alone, which
then skips the whole pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.hardware.names import suggestion
from dryrack.linter.finding import Problem, Severity
from dryrack.linter.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.kinds.resource import CounterSet, DeviceCounterConsumption, ResourceSlice
    from dryrack.linter.finding import Path
    from dryrack.linter.world import Entry, PlacedDevice, Pool, World

RULES = Registry()


def _sets(pool: Pool) -> Iterator[tuple[Entry[ResourceSlice], int, CounterSet]]:
    for entry in pool.current:
        for index, counters in enumerate(entry.value.spec.shared_counters):
            yield entry, index, counters


def _consumptions(
    pool: Pool,
) -> Iterator[tuple[PlacedDevice, Path, DeviceCounterConsumption]]:
    for placed in pool.devices():
        for index, consumption in enumerate(placed.device.consumes_counters):
            yield placed, (*placed.path, "consumesCounters", index), consumption


def _by_name(pool: Pool) -> Mapping[str, CounterSet]:
    return {counters.name: counters for _, _, counters in reversed(list(_sets(pool)))}


@RULES.rule(
    "DR221",
    "counter-set-name-taken",
    Severity.ERROR,
    summary="Two slices of a pool have a counter set of the same name.",
)
def set_name_taken(world: World) -> Iterator[Problem]:
    """Names of counter sets must be unique in a pool; otherwise the pool is invalid."""
    for pool in world.pools:
        seen: dict[str, Entry[ResourceSlice]] = {}
        for entry, index, counters in _sets(pool):
            first = seen.setdefault(counters.name, entry)
            if first is not entry:
                yield Problem(
                    entry,
                    ("spec", "sharedCounters", index, "name"),
                    f"counter set {counters.name!r} is also in slice"
                    f" {first.value.metadata.name!r}, which makes the pool invalid",
                    "give it a name that is unique in the pool",
                )


@RULES.rule(
    "DR222",
    "counter-unknown",
    Severity.ERROR,
    summary="A device consumes a counter that its pool does not have.",
)
def unknown(world: World) -> Iterator[Problem]:
    """
    `consumesCounters` names a counter set and counters of the same pool. One wrong name makes the
    whole pool invalid: the scheduler allocates none of its devices.
    """
    for pool in world.pools:
        sets = _by_name(pool)
        told = set[tuple[str, str]]()
        for placed, path, consumption in _consumptions(pool) if not pool.lacks_slices else ():
            for problem in _unknown(sets, consumption):
                if problem.key not in told:
                    told.add(problem.key)
                    what = f"device {placed.device.name!r} consumes {problem.what}"
                    yield Problem(placed.entry, (*path, *problem.path), what, problem.fix)


@dataclass(frozen=True, slots=True)
class _Missing:
    """A missing set or counter, reported once per pool."""

    key: tuple[str, str]
    path: Path
    what: str
    fix: str


def _unknown(
    sets: Mapping[str, CounterSet], consumption: DeviceCounterConsumption
) -> Iterator[_Missing]:
    name = consumption.counter_set
    if name not in sets:
        yield _Missing(
            (name, ""),
            ("counterSet",),
            f"counter set {name!r}, which no slice of the pool has",
            suggestion(name, sets) or "add it to sharedCounters of a slice of the pool",
        )
        return
    for counter in consumption.counters:
        if counter not in sets[name].counters:
            yield _Missing(
                (name, counter),
                ("counters", counter),
                f"counter {counter!r}, which set {name!r} does not have",
                suggestion(counter, sets[name].counters) or "add the counter to the set",
            )


@RULES.rule(
    "DR223",
    "counter-too-small",
    Severity.WARNING,
    summary="A device consumes more of a counter than the counter set has.",
)
def too_small(world: World) -> Iterator[Problem]:
    """The device matches selectors, but the scheduler can never allocate it."""
    for pool in world.pools:
        sets = _by_name(pool)
        for placed, path, consumption in _consumptions(pool):
            counters = sets.get(consumption.counter_set)
            for name, wanted in consumption.counters.items():
                has = counters.counters.get(name) if counters else None
                if has is not None and has.value < wanted.value:
                    yield Problem(
                        placed.entry,
                        (*path, "counters", name, "value"),
                        f"device {placed.device.name!r} consumes {wanted.value} of counter"
                        f" {name!r}, but set {consumption.counter_set!r} has {has.value} in total",
                        "lower the value that the device consumes, or raise the counter",
                    )


@RULES.rule(
    "DR224",
    "counter-set-unused",
    Severity.INFO,
    summary="No device consumes counters of a counter set.",
)
def unused(world: World) -> Iterator[Problem]:
    """Often `consumesCounters` is missing on the devices that share the counters."""
    for pool in world.pools:
        drawn = {consumption.counter_set for _, _, consumption in _consumptions(pool)}
        if pool.lacks_slices or drawn - _by_name(pool).keys():
            # The consumers can be in missing slices, or have a wrong name, which DR222 reports.
            continue
        for entry, index, counters in _sets(pool):
            if counters.name not in drawn:
                yield Problem(
                    entry,
                    ("spec", "sharedCounters", index),
                    f"no device of the pool consumes counters of set {counters.name!r}",
                    "add consumesCounters to the devices that share it, or remove the set",
                )
