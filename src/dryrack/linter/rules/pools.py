"""
DR2xx: pools that a consumer could never use.

A pool is the slices of one driver that share a pool name. Consumers look only at its
highest generation, and only if exactly as many slices of it exist as each says there are;
otherwise none of its devices can be allocated, and nothing says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.hardware.names import quoted
from dryrack.linter.finding import Problem, Severity
from dryrack.linter.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.resource import ResourceSlice
    from dryrack.linter.finding import Path
    from dryrack.linter.world import Entry, Pool, World

RULES = Registry()

_NAME: Path = ("spec", "pool", "name")
_COUNT: Path = ("spec", "pool", "resourceSliceCount")
_GENERATION: Path = ("spec", "pool", "generation")


def _label(pool: Pool) -> str:
    return f"pool {pool.driver}/{pool.name}"


def _count(pool: Pool) -> int | None:
    """Return the resourceSliceCount that all slices have, or None if they differ."""
    counts = set(pool.newest.counts)
    return counts.pop() if len(counts) == 1 else None


def _nodes(pool: Pool) -> list[str]:
    return list(dict.fromkeys(name for each in pool.current if (name := each.value.spec.node_name)))


@RULES.rule(
    "DR201",
    "pool-incomplete",
    Severity.ERROR,
    summary="A pool has fewer slices of its newest generation than resourceSliceCount.",
)
def incomplete(world: World) -> Iterator[Problem]:
    """
    The scheduler allocates no device of an incomplete pool, and a request for all devices fails
    with an error. Usual causes are a count copied from another pool, and a generation that was
    raised in some of the slices only.
    """
    for pool in world.pools:
        count = _count(pool)
        have = len(pool.current)
        if count is not None and have < count:
            stale = len(pool.slices) - have
            also = f" ({stale} more have an older generation)" if stale else ""
            yield Problem(
                pool.current[0],
                _COUNT,
                f"{_label(pool)} has {have} of {count} slices of generation {pool.generation}{also}"
                ", so the scheduler allocates none of its devices",
                f"set generation {pool.generation} in all slices"
                if have + stale == count
                else f"set resourceSliceCount to {have}, or add the missing {count - have}",
            )


@RULES.rule(
    "DR202",
    "pool-overfull",
    Severity.ERROR,
    summary="A pool has more slices of its newest generation than resourceSliceCount.",
)
def overfull(world: World) -> Iterator[Problem]:
    """
    A pool is complete only if the number of slices equals resourceSliceCount. If it has one slice
    too many, the scheduler allocates none of its devices.
    """
    for pool in world.pools:
        count = _count(pool)
        have = len(pool.current)
        if count is not None and have > count and len(_nodes(pool)) < 2:
            yield Problem(
                pool.current[0],
                _COUNT,
                f"{_label(pool)} has {have} slices, but resourceSliceCount is {count}"
                ", so the scheduler allocates none of its devices",
                f"set resourceSliceCount to {have} in each of them",
            )


@RULES.rule(
    "DR203",
    "pool-on-several-nodes",
    Severity.ERROR,
    summary="One pool name is used on several nodes.",
)
def several_nodes(world: World) -> Iterator[Problem]:
    """
    Driver, pool and name identify a device. Nodes with the same pool name share its devices: the
    pool has too many slices, or gpu-0 of one node is confused with gpu-0 of the other. Use the
    name of the node as the name of the pool.
    """
    for pool in world.pools:
        nodes = _nodes(pool)
        if len(nodes) > 1:
            second = next(each for each in pool.current if each.value.spec.node_name == nodes[1])
            yield Problem(
                second,
                _NAME,
                f"{_label(pool)} is on {len(nodes)} nodes ({quoted(nodes)})"
                ", so their devices are not distinguishable",
                f"give each pool the name of its node, here {nodes[1]!r}",
            )


@RULES.rule(
    "DR204",
    "pool-counts-differ",
    Severity.ERROR,
    summary="The slices of a pool have different values of resourceSliceCount.",
)
def counts_differ(world: World) -> Iterator[Problem]:
    """
    Each slice contains the number of slices of its pool, and consumers use the number of the slice
    that they read first. In later releases such a pool is invalid.
    """
    for pool in world.pools:
        if _count(pool) is None:
            first = pool.current[0].value.spec.pool.resource_slice_count
            other = next(
                each for each in pool.current if each.value.spec.pool.resource_slice_count != first
            )
            yield Problem(
                other,
                _COUNT,
                f"resourceSliceCount of {_label(pool)} is"
                f" {other.value.spec.pool.resource_slice_count} in this slice, but {first} in slice"
                f" {pool.current[0].value.metadata.name!r}",
                f"set resourceSliceCount to {len(pool.current)} in each of them",
            )


@RULES.rule(
    "DR205",
    "slice-of-old-generation",
    Severity.WARNING,
    summary="A slice is of an older generation than its pool.",
)
def old_generation(world: World) -> Iterator[Problem]:
    """
    Consumers read only the slices of the highest generation of a pool and ignore the devices of
    the others. This is correct while a driver publishes a pool again, but not in a file.
    """
    for pool in world.pools:
        for entry in pool.slices:
            generation = entry.value.spec.pool.generation
            if generation < pool.generation:
                yield Problem(
                    entry,
                    _GENERATION,
                    f"generation {generation} is ignored, because {_label(pool)} has generation"
                    f" {pool.generation}",
                    f"set generation to {pool.generation}, or remove the slice",
                )


@RULES.rule(
    "DR206",
    "device-name-taken",
    Severity.ERROR,
    summary="Two slices of a pool have a device of the same name.",
)
def device_name_taken(world: World) -> Iterator[Problem]:
    """
    The API server validates each slice separately and accepts this. For the scheduler, the whole
    pool is invalid.
    """
    for pool in world.pools:
        seen: dict[str, dict[str | None, Entry[ResourceSlice]]] = {}
        for placed in pool.devices():
            node = placed.node_name
            holders = seen.setdefault(placed.device.name, {})
            rival = _rival(holders, node)
            holders.setdefault(node, placed.entry)
            if rival is not None and rival is not placed.entry:
                yield Problem(
                    placed.entry,
                    (*placed.path, "name"),
                    f"device {placed.device.name!r} of {_label(pool)} is also in slice"
                    f" {rival.value.metadata.name!r}, which makes the pool invalid",
                    "give it a name that is unique in the pool",
                )


def _rival(
    holders: dict[str | None, Entry[ResourceSlice]], node: str | None
) -> Entry[ResourceSlice] | None:
    """Return the slice that has the name already, on the same node or on all nodes."""
    if node is None:
        return next(iter(holders.values()), None)
    return holders.get(node) or holders.get(None)


@RULES.rule(
    "DR207",
    "pool-empty",
    Severity.INFO,
    summary="A pool has no device.",
)
def empty(world: World) -> Iterator[Problem]:
    """
    A driver without devices publishes an empty pool. In a file, the list of devices is more often
    missing by mistake.
    """
    for pool in world.pools:
        is_bare = not any(each.value.spec.devices for each in pool.current)
        if is_bare and not pool.lacks_slices:
            yield Problem(
                pool.current[0], ("spec",), f"{_label(pool)} has no device", "add devices to it"
            )
