"""The packaged catalogue and its nodes, for the tests beside it."""

from __future__ import annotations

from functools import cache

from dryrack.cluster.catalogue import load_catalogue
from dryrack.hardware.catalogue import Cards, Catalogue, devices_on
from dryrack.hardware.catalogue.values import InstanceType
from dryrack.hardware.inventory import Pool, Section
from dryrack.hardware.slicing import slices_of
from dryrack.kinds.core import Node
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.resource import ResourceSlice


@cache
def catalogue() -> Catalogue:
    return load_catalogue()


def pools_of(machine: InstanceType, cards: Cards, node: str) -> tuple[Pool, ...]:
    """What a node of this type has."""
    assignment = machine.assignment(cards)
    return tuple(
        Pool(
            batch.driver,
            node,
            node,
            batch.reach,
            (Section(assignment.origin, devices_on(batch, node), batch.shared_counters),),
        )
        for batch in assignment.batches
    )


def slices_on(machine: InstanceType, cards: Cards, node: str) -> list[ResourceSlice]:
    """What a node of this type publishes."""
    return [each for pool in pools_of(machine, cards, node) for each in slices_of(pool)]


def node(name: str) -> Node:
    return Node(metadata=ObjectMeta(name=name))
