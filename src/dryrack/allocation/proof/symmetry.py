"""
Groups of devices that are alike for one attempt.

Devices of one sort agree in everything the search looks at: what the table says about them
for every ask, their values for every constraint, the counters they draw on, whether they are
shared. Exchanging two of one sort in any choice makes no difference.

Devices that draw on common counters form a group; a shareable device is a group by itself,
unless it draws too. Groups are of one form if they are the same but for the names: the eight
partitioned GPUs of a node, say. Exchanging two untouched groups of one form makes no
difference either, nor does exchanging two in which alike devices are chosen.

Where the order of devices decides, a device is at most like its neighbours.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from dryrack.allocation.search.problem import FOLD, USABLE

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence
    from collections.abc import Set as AbstractSet

    from dryrack.allocation.search.problem import Problem, RequestRow
    from dryrack.allocation.search.walk import Frame, Walk

NO_GROUP = -1
# Past every device.
_NOWHERE = 1 << 60


class _Numbers:
    """Gives equal things equal numbers."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}

    def of(self, thing: Hashable) -> int:
        return self._known.setdefault(thing, len(self._known))


class DeviceSymmetry:
    """Sorts and groups of the devices of a problem whose table is complete."""

    def __init__(
        self,
        problem: Problem,
        rows: Sequence[RequestRow],
        ordered: AbstractSet[int] = frozenset(),
    ) -> None:
        """The order matters for the devices in `ordered`."""
        self._problem = problem
        self._ordered = sorted(ordered)
        self.statuses: list[bytes] = []
        self.status_of = self._number_statuses(rows)
        statuses = list(zip(*self.statuses, strict=True)) or [() for _ in problem.devices]
        values = list(zip(*self._values(), strict=True)) or [() for _ in problem.devices]
        looks = list(zip(statuses, values, strict=True))
        self.looks: list[Hashable] = list(zip(looks, self._marks(rows, looks), strict=True))
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
        self.form = self._number_forms(rows)
        self._tokens = _Numbers()
        self._shareable = [problem.shareable(device) for device in range(len(problem.devices))]
        self._place = {d: place for group in self.members for place, d in enumerate(group)}
        self._nothing = bytes(len(problem.devices))
        self._wanted = self._wanted_from_each()

    def _number_statuses(self, rows: Sequence[RequestRow]) -> dict[int, int]:
        numbers: dict[bytes, int] = {}
        status_of: dict[int, int] = {}
        for row in rows:
            status = self._status(row)
            if status not in numbers:
                numbers[status] = len(self.statuses)
                self.statuses.append(status)
            status_of[id(row)] = numbers[status]
        return status_of

    @staticmethod
    def _status(row: RequestRow) -> bytes:
        if not row.ask.takes_all:
            return bytes(row.status.translate(FOLD))
        status = bytearray(len(row.status))
        for device in row.all_devices:
            status[device] = USABLE if row.status[device] == USABLE else 3
        return bytes(status)

    def _values(self) -> list[list[int]]:
        devices = range(len(self._problem.devices))
        return [[column[device] for device in devices] for column in self._problem.columns]

    def _wanted_from_each(self) -> list[tuple[bytes, frozenset[int]]]:
        """By request: which devices, and groups of them, it or a later one could want."""
        wanted = [(self._nothing, frozenset[int]())]
        for ways in reversed(self._problem.requests):
            statuses = [self.statuses[self.status_of[id(way)]] for way in ways]
            devices = bytes(map(any, zip(wanted[-1][0], *statuses, strict=True)))
            groups = {group for device, group in enumerate(self.group) if devices[device]}
            wanted.append((devices, frozenset(groups)))
        return wanted[::-1]

    def _marks(self, rows: Sequence[RequestRow], looks: Sequence[Hashable]) -> list[int]:
        """
        A mark for each device whose place in the order can matter.

        That is so for "all" under a constraint, where a device may be missing before or after
        the constraint breaks: there each device has a mark of its own. And it is so for several
        devices of one request that must differ, as long as each is only compared with the one
        before it. There those that look alike and follow each other share a mark. Exchanging
        two of them leaves the devices that are free looking the same, in order; and after the
        one was tried in vain so is the other, for the first would not have let it follow.
        """
        marks = [-1] * len(looks)
        before = -1
        for device in self._ordered:
            follows = before >= 0 and looks[device] == looks[before] and self._is_whole(device)
            marks[device] = marks[before] if follows else device
            before = device if self._is_whole(device) else -1
        for row in rows:
            if row.constraints and row.ask.takes_all:
                for device in row.order:
                    marks[device] = device
        return marks

    def _is_whole(self, device: int) -> bool:
        return not self._problem.shareable(device) and not self._problem.draws.get(device)

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

    def _number_forms(self, rows: Sequence[RequestRow]) -> list[int]:
        forms = _Numbers()
        locals_ = _Numbers()
        numbered: list[int] = []
        for group, members in enumerate(self.members):
            place = {number: index for index, number in enumerate(self._counters[group])}
            for device in members:
                draw = self._problem.draws.get(device, ())
                drawn = tuple((place[number], amount) for number, amount in draw)
                sharing = self._sharing_key(device, rows)
                self.local[device] = locals_.of((self.looks[device], drawn, sharing))
            left = tuple(self._problem.ledger.left[n] for n in self._counters[group])
            numbered.append(forms.of((left, tuple(self.local[device] for device in members))))
        return numbered

    def _sharing_key(self, device: int, rows: Sequence[RequestRow]) -> Hashable:
        problem = self._problem
        if not problem.shareable(device):
            return None
        needs = tuple(row.needs.get(device) for row in rows)
        return tuple(problem.room(device)), needs, problem.already_counted(device)

    # Keys for the choices of a walk, equal for choices that can be exchanged.

    def choices(self, walk: Walk, request: int) -> Hashable:
        """
        Return a key for the chosen devices that this request or a later one could want, too.

        It is equal for choices whose exchange makes no difference.
        """
        return self._choices_key(walk, request, self._nothing, _NOWHERE)

    def choices_from(self, walk: Walk, row: RequestRow, cursor: int) -> Hashable:
        """
        Return such a key for the rest of an ask, from a place in its order on, and what follows.

        Devices before that place differ from those after it where the ask could want them.
        """
        boundary = row.order[cursor] if cursor < len(row.order) else _NOWHERE
        return self._choices_key(
            walk, row.request + 1, self.statuses[self.status_of[id(row)]], boundary
        )

    def _choices_key(self, walk: Walk, request: int, present: bytes, boundary: int) -> Hashable:
        wanted, groups = self._wanted[request]
        plain: list[int] = []
        grouped: dict[int, list[int]] = {}
        for row, device in walk.chosen():
            group = self.group[device]
            ahead = bool(present[device]) and device >= boundary
            if group == NO_GROUP:
                if ahead or wanted[device]:
                    plain.append(self._held_by(row, 2 * self.sort[device] + ahead))
            elif group in groups or present is not self._nothing:
                grouped.setdefault(group, []).append(self._token(row, device, boundary))
        plain.sort()
        touched = sorted(
            (self.form[group], self._rest(group, boundary), *sorted(tokens))
            for group, tokens in grouped.items()
        )
        return tuple(plain), tuple(touched)

    def _token(self, row: RequestRow, device: int, boundary: int) -> int:
        """Return a number for a chosen device, equal where an exchange makes no difference."""
        place = self._place[device] if self._shareable[device] else -1
        need = row.needs.get(device) if self._shareable[device] else None
        claim = row.claim if self._problem.has_admin else 0
        return self._tokens.of((self.local[device], device >= boundary, place, need, claim))

    def _held_by(self, row: RequestRow, token: int) -> int:
        # Only admin access depends on the claim that holds a device.
        return token * len(self._problem.claims) + row.claim if self._problem.has_admin else token

    def _rest(self, group: int, boundary: int) -> int:
        """Return the number of the group's devices at or after the boundary."""
        members = self.members[group]
        return len(members) - bisect_left(members, boundary)

    def twin_key(self, walk: Walk, frame: Frame, device: int) -> Hashable:
        """Return a key that is equal for devices of which only the first has to be tried."""
        row = frame.row
        group = self.group[device]
        held = walk.holds[device] if row.ask.admin else 0
        if group == NO_GROUP or frame.slot > 0 or (row.count > 1 and row.constraints):
            return self.sort[device], held
        if frame.touched is None:
            # Nothing changes while a frame goes through its devices.
            frame.touched = self._tokens_by_group(walk)
        place = self._place[device] if self._shareable[device] else -1
        chosen = frame.touched.get(group, ())
        return self.form[group], self.local[device], place, chosen, held

    def _tokens_by_group(self, walk: Walk) -> dict[int, tuple[int, ...]]:
        grouped: dict[int, list[int]] = {}
        for row, device in walk.chosen():
            if self.group[device] != NO_GROUP:
                token = self._token(row, device, _NOWHERE)
                grouped.setdefault(self.group[device], []).append(token)
        return {group: tuple(sorted(tokens)) for group, tokens in grouped.items()}
