"""
The search: depth first with backtracking, first fit; the first solution wins.

This is a walk through the same tree as Kubernetes', in the same order. Claims, requests and
subrequests come in the order given; within a request only devices after the one before are
tried; the next request begins again at the first device. A subrequest that would put a claim
over its limit of results is passed over without trying other devices, because no choice of
devices changes the count.

The tree has two kinds of leaves that end the attempt: a solution, and an error that the walk
meets (a selector that cannot be evaluated on a device it comes to, a constraint that one of
"all" devices breaks). The one that comes first in the walk is the answer. So a part of the tree
may be left out only if it has neither; a `proof` decides that. Without a `proof` nothing is left
out.

The walk keeps its own stack: claims can ask for more devices than Python has frames.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

from dryrack.allocation.demand.constraints import MISSING, initial_state
from dryrack.allocation.demand.requests import RESULTS_MAX
from dryrack.allocation.model.errors import AllocationError
from dryrack.allocation.model.reasons import Code
from dryrack.allocation.search.problem import FAILED, UNKNOWN, USABLE
from dryrack.allocation.supply.compatibility import meet

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from dryrack.allocation.demand.constraints import Constraint, ConstraintState
    from dryrack.allocation.search.problem import Problem, RequestRow
    from dryrack.allocation.supply.compatibility import Groups

_NO_DRAW: tuple[tuple[int, int], ...] = ()
_NO_END = 1 << 62


class Ending(IntEnum):
    """The result of a part of the walk."""

    FOUND = 0
    FAILED = 1
    # No choice of devices can keep the claim within its limit of results.
    EXCEEDED = 2
    # The walk has passed its limits; nothing is known yet.
    UNDECIDED = 3


class Frame:
    """A request being satisfied, or one device of it being chosen."""

    __slots__ = (
        "chosen",
        "cursor",
        "exceeded",
        "key",
        "row",
        "slot",
        "touched",
        "tried",
    )

    def __init__(self, row: RequestRow, slot: int) -> None:
        self.row = row
        # -1 for the request as a whole; then `cursor` is the next way to satisfy it.
        self.slot = slot
        self.cursor = 0
        self.chosen = -1
        self.exceeded = True
        # For the proof: the keys of devices that were tried here, and the key of this state.
        self.tried: set[Hashable] | None = None
        self.key: Hashable = None
        self.touched: dict[int, tuple[int, ...]] | None = None


class Proof(Protocol):
    """Finds parts of the tree that hold neither a solution nor an error."""

    def foresee(self, walk: Walk, frame: Frame) -> Ending | None:
        """Return how the frame that the walk is about to enter will end, if that is known."""
        ...

    def record(self, walk: Walk, frame: Frame, ending: Ending) -> None:
        """Remember that the frame was walked through without a result."""
        ...

    def twin_key(self, walk: Walk, frame: Frame, device: int) -> Hashable:
        """Return a key that is equal for devices of which only the first has to be tried."""
        ...


class Walk:
    """A depth-first search: the devices chosen so far, and what they leave."""

    def __init__(
        self,
        problem: Problem,
        proof: Proof | None = None,
        *,
        within: range | None = None,
    ) -> None:
        """`within` limits the walk to some requests that follow each other."""
        self.problem = problem
        self.stack: list[Frame] = []
        self.counts = [0] * len(problem.claims)
        # How many of the pod's claims hold a device; and, for admin access, which of them.
        self.holds = bytearray(len(problem.devices))
        self.held: set[tuple[int, int]] = set()
        # By counter number; the ledger has what there was before.
        self.drawn: dict[int, int] = {}
        # By counter set: the groups that the chosen devices have in common, the last one last.
        self._groups: dict[int, list[Groups]] = {}
        self.rooms: dict[int, list[int]] = {}
        self.shares: dict[int, int] = {}
        behaviour = problem.context.behaviour
        self.states: list[ConstraintState] = [
            initial_state(constraint, problem.columns[constraint.number], behaviour)
            for constraint in problem.constraints
        ]
        self.chosen_ways: dict[int, int] = {}
        self.steps = 0
        self.dead_ends = 0
        self.deepest: tuple[tuple[RequestRow, int], ...] = ()
        self.stuck: RequestRow | None = None
        # The last ask that would have put its claim over the limit of results.
        self.limited: RequestRow | None = None
        self._proof = proof
        self._within = within if within is not None else range(len(problem.requests))
        self._picks = 0
        # The ending that the frame on top of the stack gets when the walk goes on.
        self._last_ending: Ending | None = Ending.UNDECIDED

    def run(self, dead_ends_max: int = _NO_END, *, steps_max: int = _NO_END) -> Ending:
        """
        Walk until a solution is found, nothing is left to try, or a limit is passed.

        An undecided walk continues there when it runs again. Dead ends are counted over the whole
        walk, steps over this run.
        """
        ending = self._last_ending
        if ending is Ending.UNDECIDED:
            ending = self._enter(self._within.start)
        stack = self.stack
        end = self.steps + steps_max
        while stack and ending is not Ending.FOUND:
            if self.steps >= end or self.dead_ends > dead_ends_max:
                self._last_ending = ending
                return Ending.UNDECIDED
            self.steps += 1
            frame = stack[-1]
            if frame.slot < 0:
                ending = self._next_way(frame, ending)
                continue
            if ending is not None:
                self._release(frame)
            if ending is Ending.EXCEEDED:
                ending = self._close(frame, ending)
            else:
                ending = self._next_device(frame)
        return Ending.FOUND if ending is Ending.FOUND else Ending.FAILED

    @property
    def ongoing(self) -> int:
        """The request of which some devices are chosen and some are not, or -1."""
        top = self.stack[-1] if self.stack else None
        if top is None or top.slot < 0 or top.slot + 1 >= top.row.count:
            return -1
        return top.row.name_of

    def chosen(self) -> list[tuple[RequestRow, int]]:
        """Return the chosen devices, in the order of the results."""
        return [(frame.row, frame.chosen) for frame in self.stack if frame.chosen >= 0]

    # Frames. `None` as an ending means: continue with the frame on top of the stack.

    def _enter(self, request: int) -> Ending | None:
        """Begin a request; after the last request the walk has found a solution."""
        if request == self._within.stop:
            return Ending.FOUND
        return self._open(Frame(self.problem.requests[request][0], -1))

    def _open(self, frame: Frame) -> Ending | None:
        if self._proof is not None:
            ending = self._proof.foresee(self, frame)
            if ending is not None:
                return ending
        self.stack.append(frame)
        return None

    def _close(self, frame: Frame, ending: Ending) -> Ending:
        self.stack.pop()
        if self._proof is not None:
            self._proof.record(self, frame, ending)
        return ending

    def _next_way(self, frame: Frame, ending: Ending | None) -> Ending | None:
        """Begin the next way to satisfy a request: the request itself, or a subrequest."""
        request = frame.row.request
        ways = self.problem.requests[request]
        if ending is not None and ending is not Ending.EXCEEDED:
            frame.exceeded = False
        if frame.cursor == len(ways):
            if not frame.exceeded:
                return self._close(frame, Ending.FAILED)
            # The limit is the claim's own; earlier claims may be satisfied in another way.
            first = request and self.problem.requests[request - 1][0].claim != frame.row.claim
            return self._close(frame, Ending.FAILED if first else Ending.EXCEEDED)
        row = ways[frame.cursor]
        frame.cursor += 1
        self.chosen_ways[request] = row.sub
        if row.ask.takes_all and not row.all_devices:
            self._record_dead_end(row)
            return Ending.FAILED
        if row.count <= 0:
            return self._enter(request + 1)
        if self.counts[row.claim] + row.count > RESULTS_MAX:
            self.limited = row
            self.dead_ends += 1
            return Ending.EXCEEDED
        return self._open(Frame(row, 0))

    def _next_device(self, frame: Frame) -> Ending | None:
        """Choose the next device for a place of a request, and go on to the next place."""
        row = frame.row
        is_chosen = self._choose_of_all(frame) if row.ask.takes_all else self._choose(frame)
        if not is_chosen:
            self._record_dead_end(row)
            return self._close(frame, Ending.FAILED)
        slot = frame.slot + 1
        if slot >= row.count:
            return self._enter(row.request + 1)
        deeper = Frame(row, slot)
        deeper.cursor = frame.cursor
        return self._open(deeper)

    def _choose(self, frame: Frame) -> bool:
        """Take the first device that fits, if there is one; raise the first error on the way."""
        row = frame.row
        order = row.order
        status = row.status
        holds = self.holds
        admin = row.ask.admin
        proof = self._proof
        for position in range(frame.cursor, len(order)):
            device = order[position]
            if ((row.claim, device) in self.held) if admin else holds[device]:
                continue
            code = status[device]
            if code == UNKNOWN:
                code = self.problem.judge(row, device)
            if code != USABLE:
                if code == FAILED:
                    name = str(self.problem.devices[device].id)
                    raise AllocationError(row.failures[device], device=name)
                continue
            twin = None
            if proof is not None:
                if frame.tried is None:
                    frame.tried = set()
                twin = proof.twin_key(self, frame, device)
                if twin in frame.tried:
                    continue
            if self.refusal(row, device) is not None or not self._constrain(row, device):
                continue
            if frame.tried is not None:
                frame.tried.add(twin)
            self._take(frame, device)
            frame.cursor = position + 1
            return True
        return False

    def _choose_of_all(self, frame: Frame) -> bool:
        """Take the device that "all" has in this place, if it is available at all."""
        row = frame.row
        if frame.cursor > frame.slot:
            return False
        frame.cursor = frame.slot + 1
        device = row.all_devices[frame.slot]
        if ((row.claim, device) in self.held) if row.ask.admin else self.holds[device]:
            return False
        code = row.status[device] or self.problem.judge(row, device)
        if code != USABLE or self.is_drained(device) or self.is_incompatible(device):
            return False
        if not self._constrain(row, device):
            ask = row.ask
            name = self.problem.devices[device].id
            raise AllocationError(
                f"claim {ask.claim_name}, request {ask.name}: cannot add device {name} "
                "because a claim constraint would not be satisfied"
            )
        # Capacity is checked last.
        if self.problem.context.features.consumable_capacity and (
            self.problem.misfit(row, device) is not None
            or (device in row.needs and self.is_crowded(row, device))
        ):
            self._unconstrain(row, row.constraints)
            return False
        self._take(frame, device)
        return True

    # Checks that depend on what is chosen.

    def refusal(self, row: RequestRow, device: int) -> Code | None:
        """Return why a usable device cannot be chosen now, apart from constraints."""
        if device in self.problem.draws:
            if self.problem.groups and self.is_incompatible(device):
                return Code.INCOMPATIBLE
            if self.is_drained(device):
                return Code.COUNTER_SHORT
        if device in row.needs and self.is_crowded(row, device):
            return Code.CAPACITY_SHORT
        return None

    def is_drained(self, device: int) -> bool:
        """Return whether a counter has too little left for the device."""
        left = self.problem.ledger.left
        drawn = self.drawn
        return any(
            left[number] - drawn.get(number, 0) < amount for number, amount in self.draw(device)
        )

    def is_incompatible(self, device: int) -> bool:
        """Return whether the device has no compatibility group in common with those chosen."""
        return not all(
            meet(self._groups_left(number), own) for number, own in self._own_groups(device)
        )

    def _own_groups(self, device: int) -> tuple[tuple[int, Groups], ...]:
        groups = self.problem.groups.get(device, ())
        if groups and (self.shares.get(device) or self.problem.already_counted(device)):
            return ()
        return groups

    def _groups_left(self, number: int) -> Groups | None:
        chosen = self._groups.get(number)
        return chosen[-1] if chosen else self.problem.group_ledger.left[number]

    def draw(self, device: int) -> tuple[tuple[int, int], ...]:
        """Return what the device would draw from counters if it were chosen now."""
        draw = self.problem.draws.get(device, _NO_DRAW)
        if draw and (self.shares.get(device) or self.problem.already_counted(device)):
            return _NO_DRAW
        return draw

    def is_crowded(self, row: RequestRow, device: int) -> bool:
        """Return whether a shareable device has too little capacity left for another share."""
        for left, need in zip(self.room(device), row.needs[device], strict=True):
            if left < need:
                return True
        return False

    def room(self, device: int) -> list[int]:
        room = self.rooms.get(device)
        if room is None:
            room = self.rooms[device] = self.problem.room(device)
        return room

    def _constrain(self, row: RequestRow, device: int) -> bool:
        columns = row.columns
        states = self.states
        name = row.name_of
        for done, constraint in enumerate(row.constraints):
            number = constraint.number
            value = columns[number][device]
            if value == MISSING or not states[number].add(name, value):
                if done:
                    self._unconstrain(row, row.constraints[:done])
                return False
        return True

    def _unconstrain(self, row: RequestRow, constraints: Sequence[Constraint]) -> None:
        for constraint in reversed(constraints):
            self.states[constraint.number].remove(row.name_of)

    # Changes.

    def replay(self, choices: Iterable[tuple[RequestRow, int]]) -> None:
        """Choose the devices that another walk through the same problem chose."""
        for row, device in choices:
            frame = Frame(row, 0)
            self._constrain(row, device)
            self._take(frame, device)
            self.stack.append(frame)

    def broken(self, row: RequestRow, device: int) -> Constraint | None:
        """Return the first constraint that the device would break now."""
        for constraint in row.constraints:
            value = row.columns[constraint.number][device]
            state = self.states[constraint.number]
            if value == MISSING or not state.add(row.name_of, value):
                return constraint
            state.remove(row.name_of)
        return None

    def _take(self, frame: Frame, device: int) -> None:
        row = frame.row
        frame.chosen = device
        self.counts[row.claim] += 1
        self._picks += 1
        for number, amount in self.draw(device):
            self.drawn[number] = self.drawn.get(number, 0) + amount
        for number, own in self._own_groups(device) if self.problem.groups else ():
            left = meet(self._groups_left(number), own)
            self._groups.setdefault(number, []).append(left)
        if self.problem.shareable(device):
            self._share(row, device, 1)
        else:
            self.holds[device] += 1
            self.held.add((row.claim, device))

    def _release(self, frame: Frame) -> None:
        row = frame.row
        device = frame.chosen
        frame.chosen = -1
        self.counts[row.claim] -= 1
        self._picks -= 1
        if self.problem.shareable(device):
            self._share(row, device, -1)
        else:
            self.holds[device] -= 1
            self.held.discard((row.claim, device))
        # Only after the share is gone is it known whether it was the one that drew.
        for number, amount in self.draw(device):
            self.drawn[number] -= amount
        for number, _ in self._own_groups(device) if self.problem.groups else ():
            self._groups[number].pop()
        self._unconstrain(row, row.constraints)

    def _share(self, row: RequestRow, device: int, change: int) -> None:
        self.shares[device] = self.shares.get(device, 0) + change
        room = self.room(device)
        for index, need in enumerate(row.needs.get(device, ())):
            room[index] -= change * need

    def _record_dead_end(self, row: RequestRow) -> None:
        """Count a dead end, and remember for explanations how far the walk came."""
        self.dead_ends += 1
        if self.stuck is None or self._picks > len(self.deepest):
            self.stuck = row
            self.deepest = tuple(self.chosen())
