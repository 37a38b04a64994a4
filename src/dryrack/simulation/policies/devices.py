"""
Devices as policies see them: how much is left of each device of a node, in thousandths.

Policies look at the devices that some pod of the workload could have; network cards beside GPUs
do not count. They score the state after the allocator's own choice, which is the first device that
fits, so that score and placement agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dryrack.allocation import WHOLE, AllocationError

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from dryrack.allocation import DeviceBook, Suitable, Way
    from dryrack.kinds.resource import Device, ResourceClaim
    from dryrack.placement import Fleet, NodeState
    from dryrack.simulation.workload import Shape

Left = tuple[int, ...]


class Need(NamedTuple):
    """One request: so many devices, and what it takes of each that is suitable, by position."""

    number: int
    milli: tuple[tuple[int, int], ...]


class Ask(NamedTuple):
    """The needs of claims, in terms of the devices of a node."""

    needs: tuple[Need, ...]

    @property
    def devices(self) -> int:
        """Return the number of devices."""
        return sum(each.number for each in self.needs)

    @property
    def milli(self) -> int:
        """Return how much of a device the first request takes."""
        need = next((each for each in self.needs if each.milli), None)
        return 0 if need is None else need.milli[0][1]

    @property
    def total(self) -> int:
        """Return how much of all devices together it takes."""
        return sum(each.number * each.milli[0][1] for each in self.needs if each.milli)

    def fits(self, left: Left) -> bool:
        """Return whether each request by itself has enough devices."""
        return all(
            sum(left[place] >= amount for place, amount in need.milli) >= need.number
            for need in self.needs
        )

    def unusable(self, left: Left) -> int:
        """Return how much is left of devices that it cannot use."""
        usable = {
            place for need in self.needs for place, amount in need.milli if left[place] >= amount
        }
        return sum(amount for place, amount in enumerate(left) if place not in usable)

    def after(self, left: Left) -> Left:
        """Return what is left after the first devices that fit have been taken."""
        remaining = list(left)
        for need in self.needs:
            missing = need.number
            for place, amount in need.milli:
                if not missing:
                    break
                if remaining[place] >= amount:
                    remaining[place] -= amount
                    missing -= 1
        return tuple(remaining)


NO_DEVICES_NEEDED = Ask(())
_UNSUITABLE = Ask((Need(1, ()),))


class Seen(NamedTuple):
    """The devices of a node that count, and how much is left of each, in thousandths."""

    book: DeviceBook
    # Equal for nodes with equal devices.
    hardware: Hashable
    left: Left


class DeviceSight:
    """The devices that count, on every node of a fleet."""

    def __init__(self, fleet: Fleet, shapes: Sequence[Shape]) -> None:
        self._fleet = fleet
        # One shape for each set of claims that differ.
        self._claims = [each.claims for each in shapes if each.claims]
        # By the hardware of a node: the indices of the devices that count.
        self._counting: dict[object, tuple[int, ...]] = {}
        self._asks: dict[int, tuple[Suitable, Ask]] = {}
        self._seen: dict[str, Seen] = {}

    def _book(self, node: NodeState) -> DeviceBook:
        assert self._fleet.books is not None, "the allocator keeps books"
        return self._fleet.books.book_on(node.node)

    def see(self, node: NodeState) -> Seen:
        """Return the devices that count on a node."""
        book = self._book(node)
        seen = self._seen.get(node.node.metadata.name)
        if seen is None or seen.book is not book:
            fractions = book.fractions
            left = tuple([fractions[each] for each in self._places(node, book)])
            seen = self._seen[node.name] = Seen(book, book.hardware, left)
        return seen

    def devices(self, node: NodeState) -> Sequence[Device]:
        """Return the devices that count, in the order of `left`."""
        book = self._book(node)
        devices = book.devices
        return [devices[each] for each in self._places(node, book)]

    def ask(self, node: NodeState, claims: Sequence[ResourceClaim]) -> Ask:
        """Return what the claims of a shape need of the devices of this node."""
        if not claims:
            return NO_DEVICES_NEEDED
        suitable = self._suitable(node, claims)
        if suitable is None:
            return _UNSUITABLE
        known = self._asks.get(id(suitable))
        if known is None:
            ask = self._find_ask(node, self._book(node), suitable)
            known = self._asks[id(suitable)] = suitable, ask
        return known[1]

    def _suitable(self, node: NodeState, claims: Sequence[ResourceClaim]) -> Suitable | None:
        assert self._fleet.books is not None, "the allocator keeps books"
        try:
            return self._fleet.books.suitable(node.node, claims)
        except AllocationError:
            return None

    def _places(self, node: NodeState, book: DeviceBook) -> tuple[int, ...]:
        places = self._counting.get(book.hardware)
        if places is None:
            found = (self._suitable(node, claims) for claims in self._claims)
            ways = [way for each in found if each for way in first_ways(each)]
            indices = {index for way in ways for index, _ in way.devices}
            places = self._counting[book.hardware] = tuple(sorted(indices))
        return places

    def _find_ask(self, node: NodeState, book: DeviceBook, suitable: Suitable) -> Ask:
        places = {index: place for place, index in enumerate(self._places(node, book))}
        needs = []
        for way in first_ways(suitable):
            milli = []
            for index, need in way.devices:
                totals = [each.value.nanos for each in book.devices[index].capacity.values()]
                parts = (
                    -(-WHOLE * amount // total)
                    for amount, total in zip(need or (), totals, strict=False)
                    if total
                )
                amount = WHOLE if need is None else max(parts, default=WHOLE)
                if index in places:
                    milli.append((places[index], amount))
            needs.append(Need(way.number, tuple(milli)))
        return Ask(tuple(needs))


def first_ways(suitable: Suitable) -> Sequence[Way]:
    """Return the first alternative of each request, which stands for the others."""
    return [ways[0] for ways in suitable.requests]
