"""
Reservations: capacity that is kept for a waiting gang, or for a pod that preempted others.

They exist in the scheduler alone: no other client sees devices of a gang that does not run. A
reservation is a plan, which may name devices that are still in use; it holds those that are free,
and the others as soon as they become free. It binds pods that come later in the queue. Pods that
come earlier, and pods that may be preempted (backfill), are decided as if it did not exist. So
while there are reservations, the fleet and the allocator are adjusted before each decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace as changed

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from dryrack.allocation import LiveAllocator
    from dryrack.kinds.resource import AllocationResult
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.occupant import Occupant

# A reservation is no pod, so that it cannot be preempted.
_NEVER_PREEMPTED = 2**31
# The lesser comes first.
Order = tuple[int, str]


class Planned(Protocol):
    """A pod with its planned node and the planned allocations of its claims."""

    @property
    def node(self) -> str: ...

    @property
    def occupant(self) -> Occupant: ...

    @property
    def given(self) -> Mapping[str, AllocationResult]: ...


@dataclass(frozen=True, slots=True)
class Reservation:
    """The capacity that is kept for an owner, until a time on the caller's clock."""

    owner: Hashable
    order: Order
    plan: Sequence[Planned]
    expires: float

    def entries(self) -> Iterator[tuple[Hashable, Planned, str]]:
        """Yield the pods of the plan, each with the key and the claim that stand for it."""
        for number, planned in enumerate(self.plan):
            yield ("reserved", self.owner, number), planned, f"reserved/{self.owner}/{number}"


class Reservations:
    """The reservations of one scheduler, which holds them in its fleet and its allocator."""

    def __init__(self, fleet: Fleet, allocator: LiveAllocator) -> None:
        self._fleet = fleet
        self._allocator = allocator
        self._all: dict[Hashable, Reservation] = {}

    def __len__(self) -> int:
        return len(self._all)

    def of(self, owner: Hashable) -> Reservation | None:
        return self._all.get(owner)

    def put(self, reservation: Reservation) -> None:
        """Hold the reservation from the next decision on, instead of another of its owner."""
        self.drop(reservation.owner)
        self._all[reservation.owner] = reservation

    def drop(self, owner: Hashable) -> bool:
        """Release the reservation of the owner; return True if there was one."""
        reservation = self._all.pop(owner, None)
        if reservation is None:
            return False
        self._release(reservation)
        return True

    def expire(self, now: float) -> Sequence[Hashable]:
        """Release expired reservations; return their owners."""
        owners = [owner for owner, each in self._all.items() if each.expires <= now]
        for owner in owners:
            self.drop(owner)
        return owners

    def bind(self, owner: Hashable, order: Order, *, may_go_again: bool = False) -> None:
        """
        Hold exactly the reservations that bind a decision about this owner.

        A reservation holds the devices that are free now; earlier ones in the queue come first.
        """
        for each in self._all.values():
            self._release(each)
        if may_go_again:
            return
        for each in sorted(self._all.values(), key=lambda reservation: reservation.order):
            if each.owner != owner and each.order <= order:
                for key, planned, claim in each.entries():
                    stand_in = changed(planned.occupant, claims=(), priority=_NEVER_PREEMPTED)
                    self._fleet.add_pod(key, planned.node, stand_in)
                    self._allocator.set_allocation(claim, self._free(planned))

    def _free(self, planned: Planned) -> AllocationResult | None:
        """Return the planned devices of all claims of a pod that are not in use."""
        allocations = list(planned.given.values())
        results = [
            result
            for allocation in allocations
            for result in allocation.devices.results
            if not self._allocator.is_in_use(result)
        ]
        if not results:
            return None
        devices = changed(allocations[0].devices, results=tuple(results))
        return changed(allocations[0], devices=devices)

    def _release(self, reservation: Reservation) -> None:
        for key, _, claim in reservation.entries():
            self._fleet.remove_pod(key)
            self._fleet.reopen(self._allocator.set_allocation(claim, None))
