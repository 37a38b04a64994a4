"""An allocator that follows a cluster has the outcomes of one that is built anew."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.allocation.live_worlds import NODES, World, a_claim, outcome_of

from dryrack.allocation import Allocated

if TYPE_CHECKING:
    from dryrack.kinds.resource import ResourceClaim


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_following_a_cluster_is_as_good_as_building_anew(seed: int) -> None:
    """After any changes both have the same allocations or reasons."""
    world = World(Random(seed))
    for _ in range(25):
        world.change()
        world.check()


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_a_change_names_all_nodes_that_it_helps(seed: int) -> None:
    """On all other nodes, claims that did not fit still do not fit."""
    world = World(Random(seed))
    asked = [(name, a_claim(world.random)) for name in NODES for _ in range(3)]
    refused: list[tuple[str, ResourceClaim]] = []
    for _ in range(40):
        helped = world.change()
        fitting = [
            name
            for name, claim in refused
            if isinstance(outcome_of(world.live, world.node(name), claim), Allocated)
        ]
        assert helped is None or set(fitting) <= set(helped)
        refused = [
            (name, claim)
            for name, claim in asked
            if not isinstance(outcome_of(world.live, world.node(name), claim), Allocated)
        ]
