"""
Which devices are alike, as far as one attempt can tell.

Devices of one sort agree in everything the search looks at: what the table says about them
for every ask, their values for every constraint, the counters they draw on, whether they are
shared. Exchanging two of one sort in any choice makes no difference.

Devices that draw on common counters form a group; a shareable device is a group by itself,
unless it draws too. Groups are of one form if they are the same but for the names: the eight
partitioned GPUs of a node, say. Exchanging two untouched groups of one form makes no
difference either, nor does exchanging two in which alike devices are chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.allocation.problem import FAILED, USABLE

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from dryrack.allocation.problem import Problem, Slate
    from dryrack.allocation.search import Walk

# Keeps usable and failed, makes every refusal one and the same.
_FOLD = bytes(code if code in (USABLE, FAILED) else 0 for code in range(256))

NO_GROUP = -1


class _Numbers:
    """Gives equal things equal numbers."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}

    def of(self, thing: Hashable) -> int:
        return self._known.setdefault(thing, len(self._known))


class Likeness:
    """Sorts and groups of the devices of a problem whose table is complete."""

    def __init__(self, problem: Problem, slates: Sequence[Slate]) -> None:
        self._problem = problem
        self.rows: list[bytes] = []
        self.row_of = self._number_rows(slates)
        rows = list(zip(*self.rows, strict=True)) or [() for _ in problem.devices]
        values = list(zip(*self._values(), strict=True)) or [() for _ in problem.devices]
        self.looks: list[Hashable] = list(zip(rows, values, self._own_mark(slates), strict=True))
        numbers = _Numbers()
        self.sort = [
            numbers.of((look, problem.draws.get(device), self._alone(device)))
            for device, look in enumerate(self.looks)
        ]
        self.group = [NO_GROUP] * len(problem.devices)
        self.members: list[list[int]] = []
        self._gather_groups()
        self._counters = [self._counters_of(group) for group in self.members]
        self.local = [0] * len(problem.devices)
        self.form = self._number_forms(slates)

    def _number_rows(self, slates: Sequence[Slate]) -> dict[int, int]:
        numbers: dict[bytes, int] = {}
        row_of: dict[int, int] = {}
        for slate in slates:
            row = self._row(slate)
            if row not in numbers:
                numbers[row] = len(self.rows)
                self.rows.append(row)
            row_of[id(slate)] = numbers[row]
        return row_of

    @staticmethod
    def _row(slate: Slate) -> bytes:
        if not slate.ask.takes_all:
            return bytes(slate.status.translate(_FOLD))
        row = bytearray(len(slate.status))
        for device in slate.all_devices:
            row[device] = USABLE if slate.status[device] == USABLE else 3
        return bytes(row)

    def _values(self) -> list[list[int]]:
        devices = range(len(self._problem.devices))
        return [[column[device] for device in devices] for column in self._problem.columns]

    def _own_mark(self, slates: Sequence[Slate]) -> list[int]:
        """
        A mark of its own for each device that "all" with a constraint asks for.

        Whether a constraint breaks before a device is missing depends on their order.
        """
        marks = [-1] * len(self._problem.devices)
        for slate in slates:
            if slate.ask.takes_all and slate.constraints:
                for device in slate.all_devices:
                    marks[device] = device
        return marks

    def _alone(self, device: int) -> int:
        return device if self._problem.shareable(device) else -1

    def _gather_groups(self) -> None:
        """Put devices that draw on common counters together, by the lowest counter reached."""
        parent: dict[int, int] = {}

        def root(counter: int) -> int:
            while parent.setdefault(counter, counter) != counter:
                counter = parent[counter]
            return counter

        drawing = [d for d in range(len(self.group)) if self._problem.draws.get(d)]
        for device in drawing:
            first, *rest = (root(number) for number, _ in self._problem.draws[device])
            for other in rest:
                low, high = sorted((root(first), other))
                parent[high] = low
        numbers: dict[Hashable, int] = {}
        for device in range(len(self.group)):
            draw = self._problem.draws.get(device)
            if not draw and not self._problem.shareable(device):
                continue
            key = ("counter", root(draw[0][0])) if draw else ("device", device)
            number = numbers.setdefault(key, len(self.members))
            if number == len(self.members):
                self.members.append([])
            self.members[number].append(device)
            self.group[device] = number

    def _counters_of(self, members: Sequence[int]) -> list[int]:
        return sorted({n for device in members for n, _ in self._problem.draws.get(device, ())})

    def _number_forms(self, slates: Sequence[Slate]) -> list[int]:
        forms, locals_ = _Numbers(), _Numbers()
        numbered: list[int] = []
        for group, members in enumerate(self.members):
            place = {number: index for index, number in enumerate(self._counters[group])}
            for device in members:
                draw = self._problem.draws.get(device, ())
                drawn = tuple((place[number], amount) for number, amount in draw)
                sharing = self._sharing(device, slates)
                self.local[device] = locals_.of((self.looks[device], drawn, sharing))
            left = tuple(self._problem.ledger.left[n] for n in self._counters[group])
            numbered.append(forms.of((left, tuple(self.local[device] for device in members))))
        return numbered

    def _sharing(self, device: int, slates: Sequence[Slate]) -> Hashable:
        problem = self._problem
        if not problem.shareable(device):
            return None
        needs = tuple(slate.needs.get(device) for slate in slates)
        return tuple(problem.room(device)), needs, problem.already_counted(device)

    # What a walk has chosen, told so that choices which amount to the same read the same.

    def choices(self, walk: Walk) -> Hashable:
        """The devices chosen so far, up to exchanges that make no difference."""
        return self._told(walk, None, 0)

    def choices_from(self, walk: Walk, slate: Slate, cursor: int) -> Hashable:
        """The same with the devices before a place in the ask's order told from those after."""
        return self._told(walk, slate, cursor)

    def _told(self, walk: Walk, slate: Slate | None, cursor: int) -> Hashable:
        boundary = self._boundary(slate, cursor)
        plain: list[Hashable] = []
        grouped: dict[int, list[Hashable]] = {}
        for frame in walk.stack:
            device = frame.chosen
            if device < 0 or frame.slot < 0:
                continue
            after = device >= boundary
            group = self.group[device]
            if group == NO_GROUP:
                plain.append((self.sort[device], after, self._holder(walk, frame.slate)))
            else:
                token = (self.local[device], after, self._share(frame.slate, device))
                grouped.setdefault(group, []).append((token, self._holder(walk, frame.slate)))
        plain.sort(key=repr)
        touched = sorted(
            (
                (self.form[group], sorted(tokens, key=repr), self._rest(group, slate, cursor))
                for group, tokens in grouped.items()
            ),
            key=repr,
        )
        return repr((plain, touched))

    @staticmethod
    def _boundary(slate: Slate | None, cursor: int) -> int:
        if slate is None or cursor >= len(slate.order):
            return 1 << 60
        return slate.order[cursor]

    def _holder(self, walk: Walk, slate: Slate) -> int:
        # Only admin access looks at who holds a device.
        return slate.claim if walk.problem.has_admin else 0

    def _share(self, slate: Slate, device: int) -> Hashable:
        if not self._problem.shareable(device):
            return None
        return self.members[self.group[device]].index(device), slate.needs.get(device)

    def _rest(self, group: int, slate: Slate | None, cursor: int) -> int:
        """How many of the group's devices come at or after the place."""
        boundary = self._boundary(slate, cursor)
        return sum(device >= boundary for device in self.members[group])

    def twin_key(self, walk: Walk, slate: Slate, slot: int, device: int) -> Hashable:
        """Equal for two devices of which the second need not be tried after the first."""
        group = self.group[device]
        held = walk.holds[device] if slate.ask.admin else 0
        if group == NO_GROUP or slot > 0 or (slate.count > 1 and self._order_matters(slate)):
            return self.sort[device], held
        chosen = sorted(
            repr((self.local[f.chosen], self._share(f.slate, f.chosen), f.slate.claim))
            for f in walk.stack
            if f.slot >= 0 and f.chosen >= 0 and self.group[f.chosen] == group
        )
        share = None
        if self._problem.shareable(device):
            share = self.members[group].index(device)
        return self.form[group], self.local[device], share, tuple(chosen), held

    @staticmethod
    def _order_matters(slate: Slate) -> bool:
        return bool(slate.constraints)
