"""
The newest generation of a pool of ResourceSlices, and whether it is complete.

Consumers read only the slices of a pool's highest generation, and use them if their number is
`resourceSliceCount`. A consumer takes that number from the first slice that it reads, so a pool is
complete for all consumers only if all slices agree.
"""

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from dryrack.kinds.resource import ResourcePool

Slice = TypeVar("Slice")


class Generation(NamedTuple, Generic[Slice]):
    """The slices of a pool's newest generation, in their order."""

    number: int
    slices: tuple[Slice, ...]
    counts: tuple[int, ...]
    """The resourceSliceCount of each slice."""

    @property
    def is_complete(self) -> bool:
        """Return whether the generation is complete for every consumer."""
        return all(count == len(self.slices) for count in self.counts)


def newest_generation(
    slices: Iterable[Slice], pool_of: Callable[[Slice], ResourcePool]
) -> Generation[Slice]:
    """Return the newest generation; `pool_of` returns the `spec.pool` of a slice."""
    number = 0
    newest = list[Slice]()
    counts = list[int]()
    for each in slices:
        pool = pool_of(each)
        if not newest or pool.generation > number:
            number = pool.generation
            newest = []
            counts = []
        if pool.generation == number:
            newest.append(each)
            counts.append(pool.resource_slice_count)
    return Generation(number, tuple(newest), tuple(counts))
