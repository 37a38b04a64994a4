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
    """What the slices agree on; None if they do not."""
    counts = set(pool.newest.counts)
    return counts.pop() if len(counts) == 1 else None


def _nodes(pool: Pool) -> list[str]:
    return list(dict.fromkeys(name for each in pool.current if (name := each.value.spec.node_name)))


@RULES.rule(
    "DR201",
    "pool-incomplete",
    Severity.ERROR,
    summary="A pool has fewer slices of its newest generation than it says.",
)
def incomplete(world: World) -> Iterator[Problem]:
    """
    The scheduler waits for the missing slices for ever: no device of the pool is allocated,
    and a request for all devices stops with an error. Usual causes are a count copied from
    another pool, and a generation raised on some slices only.
    """
    for pool in world.pools:
        count, have = _count(pool), len(pool.current)
        if count is not None and have < count:
            stale = len(pool.slices) - have
            also = f" ({stale} more are of an older generation and do not count)" if stale else ""
            yield Problem(
                pool.current[0],
                _COUNT,
                f"{_label(pool)} has {have} of {count} slices of generation {pool.generation}{also}"
                ", so none of its devices can be allocated",
                f"give all slices generation {pool.generation}"
                if have + stale == count
                else f"set resourceSliceCount to {have}, or add the missing {count - have}",
            )


@RULES.rule(
    "DR202",
    "pool-overfull",
    Severity.ERROR,
    summary="A pool has more slices of its newest generation than it says.",
)
def overfull(world: World) -> Iterator[Problem]:
    """
    A pool is complete only if the number of slices equals resourceSliceCount. One too many
    is as bad as one too few: no device of the pool is allocated.
    """
    for pool in world.pools:
        count, have = _count(pool), len(pool.current)
        if count is not None and have > count and len(_nodes(pool)) < 2:
            yield Problem(
                pool.current[0],
                _COUNT,
                f"{_label(pool)} has {have} slices but says {count}"
                ", so none of its devices can be allocated",
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
    A device is known by driver, pool and device name alone. Nodes that share a pool name
    share its devices: the pool has too many slices, or gpu-0 of one node is taken for gpu-0
    of the other. The usual pool name is the name of the node.
    """
    for pool in world.pools:
        nodes = _nodes(pool)
        if len(nodes) > 1:
            second = next(each for each in pool.current if each.value.spec.node_name == nodes[1])
            yield Problem(
                second,
                _NAME,
                f"{_label(pool)} is on {len(nodes)} nodes ({quoted(nodes)})"
                ", whose devices cannot be told apart",
                f"name each node's pool after the node, here {nodes[1]!r}",
            )


@RULES.rule(
    "DR204",
    "pool-counts-differ",
    Severity.ERROR,
    summary="The slices of a pool disagree about how many there are.",
)
def counts_differ(world: World) -> Iterator[Problem]:
    """
    Each slice states the size of its pool, and consumers take the number from whichever
    slice they meet first; later releases call such a pool invalid.
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
                f"{_label(pool)} has {other.value.spec.pool.resource_slice_count} slices by this"
                f" slice and {first} by slice {pool.current[0].value.metadata.name!r}",
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
    Consumers look only at the slices of a pool's highest generation. The devices of the
    others do not exist for them, which is right while a driver republishes a pool and wrong
    in a file.
    """
    for pool in world.pools:
        for entry in pool.slices:
            generation = entry.value.spec.pool.generation
            if generation < pool.generation:
                yield Problem(
                    entry,
                    _GENERATION,
                    f"generation {generation} is ignored, as {_label(pool)} has generation"
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
    The API server looks at one slice at a time and accepts this. The scheduler then calls
    the whole pool invalid and skips it.
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
    """Who has the name already, on the same node or on all of them."""
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
    An empty pool is how a driver says that it is there and has nothing; in a file it is more
    often a list that was meant to be filled.
    """
    for pool in world.pools:
        is_bare = not any(each.value.spec.devices for each in pool.current)
        if is_bare and not pool.lacks_slices:
            yield Problem(
                pool.current[0], ("spec",), f"{_label(pool)} has no device", "add devices to it"
            )
