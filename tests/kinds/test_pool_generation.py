"""Which slices of a pool count, and whether they are all there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dryrack.kinds.pool_generation import newest_generation
from dryrack.kinds.resource import ResourcePool

POOLS = st.builds(
    ResourcePool, generation=st.integers(0, 3), resource_slice_count=st.integers(1, 3)
)


@given(st.lists(POOLS, max_size=6))
def test_only_slices_of_the_highest_generation_count(pools: list[ResourcePool]) -> None:
    """In their order; they are complete when each of them says how many they are."""
    found = newest_generation(range(len(pools)), pools.__getitem__)
    numbers = [pool.generation for pool in pools]
    newest = [index for index, number in enumerate(numbers) if number == max(numbers)]
    counts = [pools[index].resource_slice_count for index in newest]

    assert found.number == max(numbers, default=0)
    assert list(found.slices) == newest
    assert list(found.counts) == counts
    assert found.is_complete == (set(counts) <= {len(newest)})
