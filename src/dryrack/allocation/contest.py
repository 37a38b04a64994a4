"""
Whether several wants can be met side by side, as far as a flow can tell.

What is wanted flows through lanes to devices. A lane lets a want have so many of some devices:
one of each row that exclude each other, or as many as a counter could pay for. A device is for
one want; one that is shared is for as many as fit, and of those that do not fit beside each
other for one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from dryrack.allocation.flow import Flow

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from dryrack.allocation.search import Walk

_SOURCE, _SINK = "source", "sink"

# A lane, road or counter that holds nobody up.
OPEN = -1

# What a share consumes of each capacity of a device; nothing, if that does not matter.
Needs = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lanes:
    """Devices, in lanes through each of which only so many pass."""

    of: Mapping[int, int]
    widths: Mapping[int, int]
    # Lanes may lead off roads, each of which lets only so many pass, if nobody wants later.
    roads: Mapping[int, int] = field(default_factory=dict)
    road_width: int | None = None


@dataclass(frozen=True, slots=True)
class Want:
    """A number of devices out of some lanes."""

    need: int
    lanes: Lanes
    # What a share would consume, of those that are shared.
    shares: Mapping[int, Needs]
    # The road on which one of the devices comes, if there is one that must.
    once: int | None = None


class _Kind(NamedTuple):
    """Devices that are alike in what leads to them and from them."""

    entries: tuple[Hashable, ...]
    # Of these entries one only.
    rivals: tuple[Hashable, ...]
    # For how many wants each of the devices is.
    serves: int
    counter: int


class Contest:
    """Wants of which no two can have the same device, unless it is shared."""

    def __init__(self, walk: Walk, wants: Sequence[Want]) -> None:
        self._walk = walk
        self._wants = wants
        self._flow = Flow()
        self._doors: dict[int, list[tuple[int, int]]] = {}

    def starves(self) -> bool:
        """Whether some of the wants cannot be met."""
        for index, want in enumerate(self._wants):
            self._lay_lanes(index, want)
            for device, lane in want.lanes.of.items():
                self._doors.setdefault(device, []).append((index, lane))
        self._lay_devices()
        total = sum(want.need for want in self._wants)
        return not self._flow.carries(_SOURCE, _SINK, total)

    def _lay_lanes(self, index: int, want: Want) -> None:
        pipe, lanes, need = self._flow.pipe, want.lanes, want.need
        if want.once is not None:
            need -= 1
            pipe(_SOURCE, ("to", index, want.once), 1)
        pipe(_SOURCE, ("all", index), need)
        roads = {lane: lanes.roads.get(lane, OPEN) for lane in dict.fromkeys(lanes.of.values())}
        is_last = index == len(self._wants) - 1
        for road in dict.fromkeys(roads.values()):
            pipe(("all", index), ("to", index, road), need)
            width = lanes.road_width if is_last else None
            pipe(("to", index, road), ("on", index, road), width or want.need)
        for lane, road in roads.items():
            pipe(("on", index, road), (index, lane), lanes.widths[lane])

    def _lay_devices(self) -> None:
        counters = by_counter(self._walk, list(self._doors))
        kinds = [self._kind(device, counters.of[device]) for device in self._doors]
        for kind, number in Counter(kinds).items():
            self._lay_kind(kind, number)
        for counter, width in counters.widths.items():
            served = sorted((k.serves for k in kinds if k.counter == counter), reverse=True)
            self._flow.pipe(("counter", counter), _SINK, sum(served[:width]))

    def _lay_kind(self, kind: _Kind, number: int) -> None:
        pipe, rivals = self._flow.pipe, ("rivals", kind)
        for entry in kind.entries:
            pipe(entry, rivals if entry in kind.rivals else kind, number)
        pipe(rivals, kind, number)
        pipe(kind, ("counter", kind.counter), number * kind.serves)

    def _kind(self, device: int, counter: int) -> _Kind:
        entries = tuple(self._doors[device])
        if not self._walk.problem.shareable(device):
            return _Kind(entries, (), 1, counter)
        room = self._walk.room(device)
        needs: dict[Hashable, Needs] = {
            (index, lane): self._wants[index].shares.get(device, ()) for index, lane in entries
        }
        serves = [_fitting(needs, place, left) for place, left in enumerate(room)]
        rivals = [_rivals(needs, place, left) for place, left in enumerate(room)]
        return _Kind(
            entries,
            max(rivals, key=len, default=()),
            min(serves, default=len(entries)),
            counter,
        )


def by_counter(walk: Walk, devices: Sequence[int]) -> Lanes:
    """Devices by the counter that lets the fewest of them pass."""
    draws: dict[int, list[int]] = {}
    for device in devices:
        for number, amount in walk.draw(device):
            if amount:
                draws.setdefault(number, []).append(amount)
    left = walk.problem.ledger.left
    widths = {
        number: _most(amounts, left[number] - walk.drawn.get(number, 0))
        for number, amounts in draws.items()
    }
    lanes: dict[int, int] = {}
    for device in devices:
        drawn = [number for number, amount in walk.draw(device) if amount]
        tight = [(widths[n], n) for n in drawn if widths[n] < len(draws[n])]
        lanes[device] = min(tight)[1] if tight else OPEN
    return Lanes(lanes, {OPEN: len(devices), **widths})


def _most(amounts: Iterable[int], left: int) -> int:
    """How many of the amounts can be taken at most."""
    number = 0
    for amount in sorted(amounts):
        left -= amount
        if left < 0:
            break
        number += 1
    return number


def _fitting(needs: Mapping[Hashable, Needs], place: int, left: int) -> int:
    """For how many shares there is enough of a capacity."""
    return _most((need[place] if need else 0 for need in needs.values()), left)


def _rivals(needs: Mapping[Hashable, Needs], place: int, left: int) -> tuple[Hashable, ...]:
    """Entries of which no two get enough of a capacity together."""
    asked = [(need[place], entry) for entry, need in needs.items() if need]
    asked.sort(key=lambda each: each[0], reverse=True)
    rivals: list[Hashable] = []
    before = left
    for amount, entry in asked:
        if before + amount <= left:
            break
        rivals.append(entry)
        before = amount
    return tuple(rivals)
