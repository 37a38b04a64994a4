"""
The cluster as the scheduler sees it: what the caches say, and what it has promised itself.

A promise is an assumption between the decision and the moment when it is known what came of it.
It is kept in the same books as the facts, so that the next pod cannot be given the same device
or the same memory. While it stands, caches that are behind cannot undo it; then the claim is
settled as it was last read, and what the caches show of older revisions does not count.

Invariant: each pod stands in the books of at most one node, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.allocation import AllocatedState, Allocator, Features
from dryrack.client.endpoints import CLAIMS, CLASSES, NODES, PODS, SLICES
from dryrack.client.informer import Name, name_of
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from dryrack.placement import Cluster, Room
from dryrack.placement.demand import Amounts, demand

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
        # Claims as they were last read, until the caches are as far.
        self._settled: dict[str, Raw] = {}
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
        full = f"{namespace}/{name}"
        raw = self._settled.get(full) or self.claims.get(namespace, name)
        if raw is None:
            return None
        promised = self._promised.get(full)
        return _with_allocation(raw, promised) if promised else decode(raw, ResourceClaim)

    def promise(
        self, pod: Name, node: str, amounts: Amounts, given: Mapping[str, AllocationResult]
    ) -> None:
        """The pod will be there, and the claims will have these."""
        self._stand(pod, node, amounts)
        for claim, allocation in given.items():
            self._promised[claim] = allocation
            self._hold(claim, allocation)

    def take_back(self, pod: Name) -> None:
        """The pod did not get there: the books show again what the caches say."""
        self._leave(pod)
        raw = self.pods.get(*pod)
        if raw is not None:
            self._pod(None, raw)
        self._woken()

    def settle(self, claim: str, raw: Raw | None) -> None:
        """What came of a promise: the claim as it was read just now, None if it is gone."""
        self._promised.pop(claim, None)
        if raw is not None:
            self._settled[claim] = raw
            self._hold(claim, _allocation(raw))
        known = self.claims.get(*claim.split("/"))
        self._claim_seen(claim, known)
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
        self._claim_seen("/".join(name_of(new or old or {})), new)
        # A claim that is new may be waited for; one that got devices helps nobody else.
        if old is None or new is None or (_allocation(old) and not _allocation(new)):
            self._woken()

    def _claim_seen(self, name: str, new: Raw | None) -> None:
        """What the caches show of a claim, unless more is known."""
        settled = self._settled.get(name)
        if name in self._promised or (settled and new and _revision(new) < _revision(settled)):
            return
        self._settled.pop(name, None)
        self._hold(name, _allocation(new) if new else None)

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


def _revision(obj: Raw) -> int:
    return int(obj["metadata"]["resourceVersion"])


def _allocation(claim: Raw) -> AllocationResult | None:
    raw = claim.get("status", {}).get("allocation")
    return None if raw is None else decode(raw, AllocationResult)


def _with_allocation(raw: Raw, allocation: AllocationResult) -> ResourceClaim:
    from dryrack.kinds.decode import to_builtins

    status = {**raw.get("status", {}), "allocation": to_builtins(allocation)}
    return decode({**raw, "status": status}, ResourceClaim)
