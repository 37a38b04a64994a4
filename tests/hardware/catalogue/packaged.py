"""The packaged catalogue and its nodes, for the tests beside it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tests.allocation import builders

from dryrack.cluster.catalogue import load_catalogue
from dryrack.hardware.catalogue import Cards, Catalogue, devices_on
from dryrack.hardware.inventory import Pool, Section
from dryrack.hardware.slicing import slices_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.allocation import LiveAllocator
    from dryrack.hardware.catalogue import InstanceType
    from dryrack.kinds.resource import DeviceClass, ResourceSlice

NODE = "node-1"


@cache
def catalogue() -> Catalogue:
    return load_catalogue()


def classes() -> tuple[DeviceClass, ...]:
    """Those that come with the drivers."""
    return tuple(catalogue().device_classes.values())


def slices_on(machine: InstanceType, cards: Cards, node: str = NODE) -> list[ResourceSlice]:
    """Return the slices that a node of this type publishes."""
    assignment = machine.assignment(cards)
    pools = (
        Pool(
            batch.driver,
            node,
            node,
            batch.reach,
            (Section(assignment.origin, devices_on(batch, node), batch.shared_counters),),
        )
        for batch in assignment.batches
    )
    return [each for pool in pools for each in slices_of(pool)]


def allocator(slices: Sequence[ResourceSlice]) -> LiveAllocator:
    return builders.allocator(slices, classes=classes())
