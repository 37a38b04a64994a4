"""
Reservations: room that is kept for a gang that waits, or a pod that others make way for.

They are in the books of the scheduler alone: no other client sees devices of a gang that does not
run. A reservation is a plan, which may name what is still in use; of that it holds what is free,
and the rest as soon as it becomes so. It binds those who come later in the queue. Whoever comes
before, and whoever may be sent away again (backfill), is decided as if it were not there. So the
books are made right for each decision, as long as anything is reserved.
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

# Room that is kept is no pod, so nobody can send it away.
_NEVER_PREEMPTED = 2**31
# Whoever has the lesser one comes first.
Order = tuple[int, str]


class Planned(Protocol):
    """A pod, where it is to go, and what its claims are to have."""

    @property
    def node(self) -> str: ...

    @property
    def occupant(self) -> Occupant: ...

    @property
    def given(self) -> Mapping[str, AllocationResult]: ...


@dataclass(frozen=True, slots=True)
class Reservation:
    """What is kept for whom, and how long, in seconds of the caller's clock."""

    owner: Hashable
    order: Order
    plan: Sequence[Planned]
    expires: float

    def entries(self) -> Iterator[tuple[Hashable, Planned, str]]:
        """The pods of the plan, each with a key and a claim that stand for it in the books."""
        for number, planned in enumerate(self.plan):
            yield ("reserved", self.owner, number), planned, f"reserved/{self.owner}/{number}"


class Reservations:
    """Those of one scheduler, in its books."""

    def __init__(self, fleet: Fleet, allocator: LiveAllocator) -> None:
        self._fleet = fleet
        self._allocator = allocator
        self._all: dict[Hashable, Reservation] = {}

    def __len__(self) -> int:
        return len(self._all)

    def of(self, owner: Hashable) -> Reservation | None:
        return self._all.get(owner)

    def put(self, reservation: Reservation) -> None:
        """It is kept from the next decision on, and no other of its owner."""
        self.drop(reservation.owner)
        self._all[reservation.owner] = reservation

    def drop(self, owner: Hashable) -> bool:
        """It is kept no longer; whether it was."""
        reservation = self._all.pop(owner, None)
        if reservation is None:
            return False
        self._release(reservation)
        return True

    def expire(self, now: float) -> Sequence[Hashable]:
        """Drops what has run out; whose it was."""
        owners = [owner for owner, each in self._all.items() if each.expires <= now]
        for owner in owners:
            self.drop(owner)
        return owners

    def bind(self, owner: Hashable, order: Order, *, may_go_again: bool = False) -> None:
        """
        Makes the books right for a decision about this one: with what binds it, and no more.

        Of what is reserved only that is held which is free now, those first who come first.
        """
        for each in self._all.values():
            self._release(each)
        if may_go_again:
            return
        for each in sorted(self._all.values(), key=lambda reservation: reservation.order):
            if each.owner != owner and each.order <= order:
                self._hold(each)

    def _hold(self, reservation: Reservation) -> None:
        for key, planned, claim in reservation.entries():
            stand_in = changed(planned.occupant, claims=(), priority=_NEVER_PREEMPTED)
            self._fleet.add_pod(key, planned.node, stand_in)
            self._allocator.set_allocation(claim, self._free(planned))

    def _free(self, planned: Planned) -> AllocationResult | None:
        """What is planned for all claims of a pod, as far as nobody has it."""
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
