"""
A simulation: try what happens if some pods are elsewhere, or deleted.

It adds pods to nodes with the devices of their claims, and removes others with theirs, in the same
fleet and allocator that decisions use. At the end it undoes all changes, whatever happened. The
caller repeats what succeeded.

    with Simulation(cluster) as simulation:
        simulation.remove_pod(victim)
        outcome = place(pod, wanted, allocated, cluster)

Simulations nest; an inner one ends first. Nothing else may change the cluster meanwhile.
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
    from dryrack.kinds.core import Pod
    from dryrack.kinds.resource import AllocationResult
    from dryrack.placement.occupant import Occupant
    from dryrack.placement.place import Cluster

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@runtime_checkable
class StoresAllocations(Protocol):
    """Keeps the allocations of claims, as `LiveAllocator` does."""

    def allocation_of(self, claim: str) -> AllocationResult | None: ...

    def set_allocation(self, claim: str, allocation: AllocationResult | None) -> AffectedNodes: ...


@dataclass(frozen=True, slots=True)
class PodPlacement:
    """The node of a pod, and the devices of its claims."""

    key: Hashable
    occupant: Occupant
    node: str
    devices: Mapping[str, AllocationResult]


class Simulation:
    """Changes to a cluster that are undone at the end, the last first."""

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
        """Undo all but the first steps; `steps` is a value of `mark`."""
        while len(self._undo) > steps:
            self._undo.pop()()

    def mark(self) -> int:
        """Return the number of steps so far, to rewind to it."""
        return len(self._undo)

    def add_pod(
        self,
        key: Hashable,
        occupant: Occupant,
        node: str,
        allocations: Mapping[str, AllocationResult] | None = None,
    ) -> None:
        """Put the pod on the node, and allocate these devices to these claims."""
        self._move(key, occupant, node)
        for claim, allocation in (allocations or {}).items():
            self.set_allocation(claim, allocation)

    def remove_pod(self, key: Hashable) -> PodPlacement | None:
        """
        Remove the pod from its node, and deallocate claims that no other pod on a node uses.

        Return its placement, None if it was on no node.
        """
        occupant = self._fleet.occupant(key)
        if occupant is None:
            return None
        devices = {
            claim: allocation
            for claim in occupant.claims
            if (allocation := self._allocator.allocation_of(claim)) is not None
        }
        placement = PodPlacement(key, occupant, self._fleet.node_of(key), devices)
        self._move(key, None, "")
        for claim in occupant.claims:
            if not self._fleet.users(claim):
                self.set_allocation(claim, None)
        return placement

    def put_back(self, pod: PodPlacement) -> None:
        """Put a removed pod back on its node, with its devices."""
        self.add_pod(pod.key, pod.occupant, pod.node, pod.devices)

    def set_allocation(self, claim: str, allocation: AllocationResult | None) -> None:
        """Allocate these devices to the claim, or deallocate it."""
        before = self._allocator.allocation_of(claim)
        self._undo.append(partial(self._allocate, claim, before))
        self._allocate(claim, allocation)

    def keep_volumes(self, pod: Pod, node: str) -> None:
        """
        Reserve the volumes that the pod gets on the node.

        A claim whose volume has to be provisioned gets the annotation of the selected node, as it
        does when the pod is bound.
        """
        volumes = self._fleet.volumes
        state = self._fleet.get(node)
        waiting = list(volumes.waiting(pod)) if pod.spec.volumes else []
        if not waiting or state is None:
            return
        offered = VolumeOffers(volumes, waiting).on(state.node.metadata)
        if isinstance(offered, Unbindable):
            return
        for key, volume in offered.items():
            if volume:
                self._change_entry(volumes.assumed, volume, key)
            else:
                claim = volumes.claims[key]
                annotations = {**claim.metadata.annotations, SELECTED_NODE: node}
                metadata = changed(claim.metadata, annotations=annotations)
                self._change_entry(volumes.claims, key, changed(claim, metadata=metadata))

    def _change_entry(self, entries: dict[_Key, _Value], key: _Key, value: _Value) -> None:
        if key in entries:
            self._undo.append(partial(entries.__setitem__, key, entries[key]))
        else:
            self._undo.append(partial(entries.pop, key))
        entries[key] = value

    def _allocate(self, claim: str, allocation: AllocationResult | None) -> None:
        self._fleet.reopen(self._allocator.set_allocation(claim, allocation))

    def _move(self, key: Hashable, occupant: Occupant | None, node: str) -> None:
        before = self._fleet.occupant(key)
        self._undo.append(partial(self._put, key, before, self._fleet.node_of(key)))
        self._put(key, occupant, node)

    def _put(self, key: Hashable, occupant: Occupant | None, node: str) -> None:
        if occupant is None:
            self._fleet.remove_pod(key)
        else:
            self._fleet.add_pod(key, node, occupant)
