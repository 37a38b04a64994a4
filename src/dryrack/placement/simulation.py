"""
A simulation: what would be if some pods were elsewhere, or gone.

Within it pods come to nodes with the devices of their claims, and others go with theirs, in the
same books that decisions are made on; at the end everything is as it was, whatever happened. What
turns out well is done again for real by whoever asked.

    with Simulation(cluster) as simulation:
        simulation.remove_pod(victim)
        outcome = place(pod, wanted, allocated, cluster)

Trials nest; an inner one ends first. Nothing else may change the books meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, Self, TypeVar, runtime_checkable

from msgspec.structs import replace as changed

from dryrack.placement.index.volume_matching import Unbindable, VolumeOffers
from dryrack.placement.index.volumes import SELECTED_NODE

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from dryrack.allocation import AffectedNodes
    from dryrack.kinds.core import PersistentVolumeClaim, Pod
    from dryrack.kinds.resource import AllocationResult
    from dryrack.placement.occupant import Occupant
    from dryrack.placement.place import Cluster

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@runtime_checkable
class StoresAllocations(Protocol):
    """Knows which devices claims have, as `LiveAllocator` does."""

    def allocation_of(self, claim: str) -> AllocationResult | None: ...

    def set_allocation(self, claim: str, allocation: AllocationResult | None) -> AffectedNodes: ...


@dataclass(frozen=True, slots=True)
class PodPlacement:
    """Where a pod was, with the devices of its claims."""

    key: Hashable
    occupant: Occupant
    node: str
    devices: Mapping[str, AllocationResult]


class Simulation:
    """Changes to a cluster that are taken back, the last first."""

    def __init__(self, cluster: Cluster) -> None:
        self._fleet = cluster.fleet
        assert isinstance(cluster.allocator, StoresAllocations), "the allocator holds devices"
        self._allocator: StoresAllocations = cluster.allocator
        self._undo: list[Callable[[], object]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.rewind()

    def rewind(self, steps: int = 0) -> None:
        """All but the first steps are taken back; `steps` is what `mark` said."""
        while len(self._undo) > steps:
            self._undo.pop()()

    def mark(self) -> int:
        """How far the trial has come, to rewind to it."""
        return len(self._undo)

    def add_pod(
        self,
        key: Hashable,
        occupant: Occupant,
        node: str,
        allocations: Mapping[str, AllocationResult] | None = None,
    ) -> None:
        """The pod is on the node, and these claims have these devices."""
        self._move(key, occupant, node)
        for claim, allocation in (allocations or {}).items():
            self.set_allocation(claim, allocation)

    def remove_pod(self, key: Hashable) -> PodPlacement | None:
        """
        The pod is gone; a claim that no other pod on a node has is free.

        Answers with where it was, None if it was nowhere.
        """
        occupant = self._fleet.occupant(key)
        if occupant is None:
            return None
        held = ((claim, self._allocator.allocation_of(claim)) for claim in occupant.claims)
        devices = {claim: allocation for claim, allocation in held if allocation is not None}
        place = PodPlacement(key, occupant, self._fleet.node_of(key), devices)
        self._move(key, None, "")
        for claim in occupant.claims:
            if not self._fleet.users(claim):
                self.set_allocation(claim, None)
        return place

    def put_back(self, place: PodPlacement) -> None:
        """The pod is again where it was, with what it had."""
        self.add_pod(place.key, place.occupant, place.node, place.devices)

    def set_allocation(self, claim: str, allocation: AllocationResult | None) -> None:
        """The claim has these devices, or none."""
        before = self._allocator.allocation_of(claim)
        self._undo.append(partial(self._hold, claim, before))
        self._hold(claim, allocation)

    def keep_volumes(self, pod: Pod, node: str) -> None:
        """
        Keep the volumes that the pod gets on the node from other pods.

        A claim whose volume has to be made remembers the node, as it does when the pod is bound.
        """
        volumes = self._fleet.volumes
        state = self._fleet.get(node)
        waiting = list(volumes.waiting(pod)) if pod.spec.volumes else []
        if not waiting or state is None:
            return
        found = VolumeOffers(volumes, waiting).on(state.node.metadata)
        if isinstance(found, Unbindable):
            return
        for key, volume in found.items():
            if volume:
                self._change(volumes.assumed, volume, key)
            else:
                self._change(volumes.claims, key, _made_on(node, volumes.claims[key]))

    def _change(self, entries: dict[_Key, _Value], key: _Key, value: _Value) -> None:
        if key in entries:
            self._undo.append(partial(entries.__setitem__, key, entries[key]))
        else:
            self._undo.append(partial(entries.pop, key))
        entries[key] = value

    def _hold(self, claim: str, allocation: AllocationResult | None) -> None:
        self._fleet.reopen(self._allocator.set_allocation(claim, allocation))

    def _move(self, key: Hashable, occupant: Occupant | None, node: str) -> None:
        before = self._fleet.occupant(key), self._fleet.node_of(key)
        self._undo.append(partial(self._put, key, *before))
        self._put(key, occupant, node)

    def _put(self, key: Hashable, occupant: Occupant | None, node: str) -> None:
        if occupant is None:
            self._fleet.remove_pod(key)
        else:
            self._fleet.add_pod(key, node, occupant)


def _made_on(node: str, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    annotations = {**claim.metadata.annotations, SELECTED_NODE: node}
    return changed(claim, metadata=changed(claim.metadata, annotations=annotations))
