"""
The newest generation of a pool of ResourceSlices, and whether it is complete.

Consumers look at the slices of a pool's highest generation and at no others, and use them when
there are as many as `resourceSliceCount` says. Slices may disagree about that number: a consumer
goes by the slice that it meets first, so only a pool in which all agree is complete for everybody.
"""

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from dryrack.kinds.resource import ResourcePool

Slice = TypeVar("Slice")


class Generation(NamedTuple, Generic[Slice]):
    """The slices of a pool that count, in their order."""

    number: int
    slices: tuple[Slice, ...]
    counts: tuple[int, ...]
    """How many there are, by what each of them says."""

    @property
    def is_complete(self) -> bool:
        """Whether every consumer finds all slices there, whichever of them it meets first."""
        return all(count == len(self.slices) for count in self.counts)


def newest_generation(
    slices: Iterable[Slice], pool_of: Callable[[Slice], ResourcePool]
) -> Generation[Slice]:
    """What consumers look at; `pool_of` gives the `spec.pool` of a slice in any form."""
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
