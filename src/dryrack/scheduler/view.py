"""
The cluster as the scheduler sees it: what the caches say, and what it has promised itself.

A promise is an assumption between the decision and the moment when the caches show it. It is
kept in the same books as the facts, so that the next pod cannot be given the same device or the
same memory, and it is taken back when a write fails.

Invariant: each pod stands in the books of at most one node, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.allocation import AllocatedState, Allocator, Features, claim_name
from dryrack.client.endpoints import CLAIMS, CLASSES, NODES, PODS, SLICES
from dryrack.client.informer import Name, name_of
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from dryrack.placement import Cluster, Room
from dryrack.placement.demand import Amounts, demand

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dryrack.base.ports import Chance
    from dryrack.client.informer import Informers

Raw = dict[str, Any]

_DONE = ("Succeeded", "Failed")


class View:
    """Facts from the informers, promises from the scheduler."""

    def __init__(self, informers: Informers, chance: Chance, woken: Callable[[], None]) -> None:
        self.pods = informers.of(PODS)
        self.claims = informers.of(CLAIMS)
        self.reads = (
            self.pods,
            self.claims,
            informers.of(NODES),
            informers.of(SLICES),
            informers.of(CLASSES),
        )
        self._chance = chance
        self._woken = woken
        self._features = Features.defaults()
        self._rooms: dict[str, Room] = {}
        self._places: dict[Name, tuple[str, Amounts]] = {}
        self._slices: dict[Name, ResourceSlice] = {}
        self._classes: dict[Name, DeviceClass] = {}
        self._promised: dict[str, AllocationResult] = {}
        self._state = AllocatedState()
        self._held: dict[str, AllocationResult] = {}
        self._allocator: Allocator | None = None
        listeners = (self._pod, self._claim, self._node, self._slice, self._class)
        for informer, listener in zip(self.reads, listeners, strict=True):
            informer.listen(listener)

    def cluster(self) -> Cluster:
        """Everything as of now."""
        if self._allocator is None:
            self._allocator = Allocator(
                tuple(self._slices[name] for name in sorted(self._slices)),
                tuple(self._classes[name] for name in sorted(self._classes)),
                features=self._features,
                allocated=self._state,
                chance=self._chance,
            )
        # Rooms whose node is gone stay as long as pods stand in their books.
        rooms = [room for room in self._rooms.values() if room.node.metadata.uid]
        return Cluster(rooms, self._allocator.with_allocated(self._state))

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """A claim, with the allocation that it is promised."""
        raw = self.claims.get(namespace, name)
        if raw is None:
            return None
        claim = decode(raw, ResourceClaim)
        promised = self._promised.get(claim_name(claim))
        return claim if promised is None else _with_allocation(raw, promised)

    def promise(
        self, pod: Name, node: str, amounts: Amounts, given: Mapping[str, AllocationResult]
    ) -> None:
        """The pod will be there, and the claims will have these."""
        self._stand(pod, node, amounts)
        for claim, allocation in given.items():
            self._promised[claim] = allocation
            self._hold(claim, allocation)

    def take_back(self, pod: Name, claims: Sequence[str]) -> None:
        """It came to nothing: the books show again what the caches say."""
        self._leave(pod)
        raw = self.pods.get(pod.namespace, pod.name)
        if raw is not None:
            self._pod(None, raw)
        for claim in claims:
            self._promised.pop(claim, None)
            namespace, _, name = claim.rpartition("/")
            known = self.claims.get(namespace, name)
            self._hold(claim, _allocation(known) if known else None)
        self._woken()

    def _pod(self, old: Raw | None, new: Raw | None) -> None:
        name = name_of(new or old or {})
        if new is None or new.get("status", {}).get("phase") in _DONE:
            self._leave(name)
            self._woken()
        elif new["spec"].get("nodeName"):
            self._stand(name, new["spec"]["nodeName"], demand(decode(new, Pod)))

    def _stand(self, pod: Name, node: str, amounts: Amounts) -> None:
        self._leave(pod)
        self._room(node).take(amounts)
        self._places[pod] = (node, amounts)

    def _leave(self, pod: Name) -> None:
        node, amounts = self._places.pop(pod, ("", {}))
        if node:
            self._room(node).give_back(amounts)

    def _room(self, node: str) -> Room:
        return self._rooms.setdefault(node, Room(Node()))

    def _claim(self, old: Raw | None, new: Raw | None) -> None:
        name = "/".join(name_of(new or old or {}))
        allocation = _allocation(new) if new else None
        if new is None or allocation is not None:
            self._promised.pop(name, None)
        if name not in self._promised:
            self._hold(name, allocation)
        # A claim that is new may be waited for; one that got devices helps nobody else.
        if old is None or new is None or (allocation is None and _allocation(old) is not None):
            self._woken()

    def _hold(self, claim: str, allocation: AllocationResult | None) -> None:
        before = self._held.pop(claim, None)
        if before == allocation:
            if allocation is not None:
                self._held[claim] = allocation
            return
        if before is not None:
            self._state = self._state.release(before, self._features)
        if allocation is not None:
            self._held[claim] = allocation
            self._state = self._state.allocate(allocation, self._features, claim=claim)

    def _node(self, old: Raw | None, new: Raw | None) -> None:
        room = self._room(name_of(new or old or {}).name)
        before, room.node = room.node, decode(new, Node) if new else Node()
        # A heartbeat changes nothing for anybody who waits.
        if _offer(before) != _offer(room.node):
            self._woken()

    def _slice(self, old: Raw | None, new: Raw | None) -> None:
        _keep(self._slices, old, decode(new, ResourceSlice) if new else None)
        self._renewed()

    def _class(self, old: Raw | None, new: Raw | None) -> None:
        _keep(self._classes, old, decode(new, DeviceClass) if new else None)
        self._renewed()

    def _renewed(self) -> None:
        self._allocator = None
        self._woken()


def _keep(known: dict[Name, Any], old: Raw | None, new: Any) -> None:
    if new is None:
        known.pop(name_of(old or {}), None)
    else:
        known[Name("", new.metadata.name)] = new


def _offer(node: Node) -> tuple[object, ...]:
    """What decides which pods a node takes."""
    return node.metadata.uid, node.metadata.labels, node.spec, node.status.allocatable


def _allocation(claim: Raw) -> AllocationResult | None:
    raw = claim.get("status", {}).get("allocation")
    return None if raw is None else decode(raw, AllocationResult)


def _with_allocation(raw: Raw, allocation: AllocationResult) -> ResourceClaim:
    from dryrack.kinds.decode import to_builtins

    status = {**raw.get("status", {}), "allocation": to_builtins(allocation)}
    return decode({**raw, "status": status}, ResourceClaim)
