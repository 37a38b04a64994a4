"""
The search: one device after the other, first fit, back when stuck; the first solution wins.

This is a walk through the same tree as Kubernetes', in the same order. Claims, requests and
subrequests come in the order given; within a request only devices after the one before are
tried; the next request begins again at the first device. A subrequest that would put a claim
over its limit of results is passed over without trying other devices, because no choice of
devices changes the count.

The tree has two kinds of leaves that end the attempt: a solution, and an error that the walk
meets (a selector that cannot be evaluated on a device it comes to, a constraint that one of
"all" devices breaks). Whichever comes first in the walk is the answer. So a part of the tree
may be left out only if it is known to hold neither; `proof` says when that is so. Without a
`proof` nothing is left out.

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

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from dryrack.allocation.demand.constraints import Constraint, ConstraintState
    from dryrack.allocation.search.problem import Problem, RequestRow

_NO_DRAW: tuple[tuple[int, int], ...] = ()
_NO_END = 1 << 62


class Ending(IntEnum):
    """How a part of the walk ended."""

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
        "slate",
        "slot",
        "touched",
        "tried",
    )

    def __init__(self, slate: RequestRow, slot: int) -> None:
        self.slate = slate
        # -1 for the request as a whole; then `cursor` is the next way to satisfy it.
        self.slot = slot
        self.cursor = 0
        self.chosen = -1
        self.exceeded = True
        # For the proof: what has been tried here, and how to remember that it failed.
        self.tried: set[Hashable] | None = None
        self.key: Hashable = None
        self.touched: dict[int, tuple[int, ...]] | None = None


class Proof(Protocol):
    """Knows of parts of the tree that hold neither a solution nor an error."""

    def foreseen(self, walk: Walk, frame: Frame) -> Ending | None:
        """How the frame that the walk is about to enter will end, if that is in vain."""
        ...

    def ended(self, walk: Walk, frame: Frame, ending: Ending) -> None:
        """The frame was walked through and nothing came of it."""
        ...

    def twin_key(self, walk: Walk, frame: Frame, device: int) -> Hashable:
        """Equal for two devices of which the second need not be tried after the first."""
        ...


class Walk:
    """The state of the walk: what is chosen, and what that leaves."""

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
        # How many of the pod's claims hold a device; and which, for admin access.
        self.holds = bytearray(len(problem.devices))
        self.held: set[tuple[int, int]] = set()
        # By counter number; the ledger has what there was before.
        self.drawn: dict[int, int] = {}
        self.rooms: dict[int, list[int]] = {}
        self.shares: dict[int, int] = {}
        release = problem.surroundings.release
        self.states: list[ConstraintState] = [
            initial_state(constraint, problem.columns[constraint.number], release)
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
        # What the frame on top of the stack has to be told when the walk goes on.
        self._news: Ending | None = Ending.UNDECIDED

    def run(self, dead_ends_max: int = _NO_END, *, steps_max: int = _NO_END) -> Ending:
        """
        Walk until something is found, nothing is left, or one of the limits is passed.

        A walk that is undecided goes on from there when it is run again; dead ends are those
        of the whole walk, steps those of this run.
        """
        ending = self._news
        if ending is Ending.UNDECIDED:
            ending = self._enter(self._within.start)
        stack = self.stack
        end = self.steps + steps_max
        while stack and ending is not Ending.FOUND:
            if self.steps >= end or self.dead_ends > dead_ends_max:
                self._news = ending
                return Ending.UNDECIDED
            self.steps += 1
            ending = self._resume(stack[-1], ending)
        return Ending.FOUND if ending is Ending.FOUND else Ending.FAILED

    @property
    def ongoing(self) -> int:
        """The request of which some devices are chosen and some are not; -1 if there is none."""
        top = self.stack[-1] if self.stack else None
        if top is None or top.slot < 0 or top.slot + 1 >= top.slate.count:
            return -1
        return top.slate.name_of

    def chosen(self) -> list[tuple[RequestRow, int]]:
        """What is chosen, in the order of the results."""
        return [(frame.slate, frame.chosen) for frame in self.stack if frame.chosen >= 0]

    # Frames. `None` as an ending means: the frame on top of the stack goes on.

    def _enter(self, request: int) -> Ending | None:
        problem = self.problem
        if request == self._within.stop:
            return Ending.FOUND
        frame = Frame(problem.requests[request][0], -1)
        return self._open(frame)

    def _resume(self, frame: Frame, ending: Ending | None) -> Ending | None:
        if frame.slot < 0:
            return self._next_way(frame, ending)
        if ending is not None:
            self._release(frame)
            if ending is Ending.EXCEEDED:
                return self._close(frame, ending)
        return self._next_device(frame)

    def _next_way(self, frame: Frame, ending: Ending | None) -> Ending | None:
        """Begin the next way to satisfy a request, or be done with it."""
        ways = self.problem.requests[frame.slate.request]
        if ending is not None and ending is not Ending.EXCEEDED:
            frame.exceeded = False
        if frame.cursor < len(ways):
            slate = ways[frame.cursor]
            frame.cursor += 1
            self.chosen_ways[slate.request] = slate.sub
            return self._begin(slate)
        if not frame.exceeded:
            return self._close(frame, Ending.FAILED)
        # The limit is the claim's own; what went before the claim may be chosen otherwise.
        request = frame.slate.request
        first = request and self.problem.requests[request - 1][0].claim != frame.slate.claim
        return self._close(frame, Ending.FAILED if first else Ending.EXCEEDED)

    def _begin(self, slate: RequestRow) -> Ending | None:
        if slate.ask.takes_all and not slate.all_devices:
            self._note(slate)
            return Ending.FAILED
        if slate.count <= 0:
            return self._enter(slate.request + 1)
        if self.counts[slate.claim] + slate.count > RESULTS_MAX:
            self.limited = slate
            self.dead_ends += 1
            return Ending.EXCEEDED
        return self._open(Frame(slate, 0))

    def _open(self, frame: Frame) -> Ending | None:
        if self._proof is not None:
            ending = self._proof.foreseen(self, frame)
            if ending is not None:
                return ending
        self.stack.append(frame)
        return None

    def _close(self, frame: Frame, ending: Ending) -> Ending:
        self.stack.pop()
        if self._proof is not None:
            self._proof.ended(self, frame, ending)
        return ending

    def _next_device(self, frame: Frame) -> Ending | None:
        slate = frame.slate
        found = self._choose_all(frame) if slate.ask.takes_all else self._choose(frame)
        if not found:
            self._note(slate)
            return self._close(frame, Ending.FAILED)
        slot = frame.slot + 1
        if slot >= slate.count:
            return self._enter(slate.request + 1)
        deeper = Frame(slate, slot)
        deeper.cursor = frame.cursor
        return self._open(deeper)

    def _choose(self, frame: Frame) -> bool:
        """Take the next device that fits; raises if the walk meets an error first."""
        slate = frame.slate
        order = frame.slate.order
        status = slate.status
        holds = self.holds
        admin = slate.ask.admin
        for position in range(frame.cursor, len(order)):
            device = order[position]
            if ((slate.claim, device) in self.held) if admin else holds[device]:
                continue
            code = status[device]
            # Above these are the codes of refusals.
            if code > FAILED or (code != USABLE and self._settle(slate, device, code) != USABLE):
                continue
            if self._try(frame, device):
                frame.cursor = position + 1
                return True
        return False

    def _settle(self, slate: RequestRow, device: int, code: int) -> int:
        if code == UNKNOWN:
            code = self.problem.judge(slate, device)
        if code == FAILED:
            raise AllocationError(
                slate.failures[device], device=str(self.problem.devices[device].id)
            )
        return code

    def _try(self, frame: Frame, device: int) -> bool:
        slate = frame.slate
        tried = frame.tried
        twin = None
        if self._proof is not None:
            if tried is None:
                tried = frame.tried = set()
            twin = self._proof.twin_key(self, frame, device)
            if twin in tried:
                return False
        if self.refusal(slate, device) is not None or not self._constrain(slate, device):
            return False
        if tried is not None:
            tried.add(twin)
        self._take(frame, device)
        return True

    def _choose_all(self, frame: Frame) -> bool:
        """Take the device that "all" has in this place, if it can be had at all."""
        slate = frame.slate
        if frame.cursor > frame.slot:
            return False
        frame.cursor = frame.slot + 1
        device = slate.all_devices[frame.slot]
        if ((slate.claim, device) in self.held) if slate.ask.admin else self.holds[device]:
            return False
        code = slate.status[device] or self.problem.judge(slate, device)
        if code != USABLE or self.drained(device):
            return False
        if not self._constrain(slate, device):
            ask = slate.ask
            name = self.problem.devices[device].id
            raise AllocationError(
                f"claim {ask.claim_name}, request {ask.name}: cannot add device {name} "
                "because a claim constraint would not be satisfied"
            )
        if self._unfit(slate, device):
            self._unconstrain(slate, slate.constraints)
            return False
        self._take(frame, device)
        return True

    # Checks that depend on what is chosen.

    def refusal(self, slate: RequestRow, device: int) -> Code | None:
        """Why a usable device cannot be chosen now, constraints aside."""
        if device in self.problem.draws and self.drained(device):
            return Code.COUNTER_SHORT
        if device in slate.needs and self.crowded(slate, device):
            return Code.CAPACITY_SHORT
        return None

    def drained(self, device: int) -> bool:
        """Whether a counter has not enough left for the device."""
        left = self.problem.ledger.left
        drawn = self.drawn
        return any(
            left[number] - drawn.get(number, 0) < amount for number, amount in self.draw(device)
        )

    def draw(self, device: int) -> tuple[tuple[int, int], ...]:
        """What choosing the device now would draw from counters."""
        draw = self.problem.draws.get(device, _NO_DRAW)
        if draw and (self.shares.get(device) or self.problem.already_counted(device)):
            return _NO_DRAW
        return draw

    def crowded(self, slate: RequestRow, device: int) -> bool:
        """Whether a shareable device has not enough capacity left for another share."""
        for left, need in zip(self.room(device), slate.needs[device], strict=True):
            if left < need:
                return True
        return False

    def room(self, device: int) -> list[int]:
        room = self.rooms.get(device)
        if room is None:
            room = self.rooms[device] = self.problem.room(device)
        return room

    def _unfit(self, slate: RequestRow, device: int) -> bool:
        """Whether "all" is denied the device by its capacity, which is looked at last."""
        if not self.problem.surroundings.features.consumable_capacity:
            return False
        if self.problem.misfit(slate, device) is not None:
            return True
        return device in slate.needs and self.crowded(slate, device)

    def _constrain(self, slate: RequestRow, device: int) -> bool:
        columns = self.problem.columns
        states = self.states
        name = slate.name_of
        for done, constraint in enumerate(slate.constraints):
            number = constraint.number
            value = columns[number][device]
            if value == MISSING or not states[number].add(name, value):
                if done:
                    self._unconstrain(slate, slate.constraints[:done])
                return False
        return True

    def _unconstrain(self, slate: RequestRow, constraints: Sequence[Constraint]) -> None:
        for constraint in reversed(constraints):
            self.states[constraint.number].remove(slate.name_of)

    # Changes.

    def replay(self, choices: Iterable[tuple[RequestRow, int]]) -> None:
        """Choose what another walk through the same problem chose."""
        for slate, device in choices:
            frame = Frame(slate, 0)
            self._constrain(slate, device)
            self._take(frame, device)
            self.stack.append(frame)

    def broken(self, slate: RequestRow, device: int) -> Constraint | None:
        """The first constraint that the device would break now."""
        for constraint in slate.constraints:
            value = self.problem.columns[constraint.number][device]
            state = self.states[constraint.number]
            if value == MISSING or not state.add(slate.name_of, value):
                return constraint
            state.remove(slate.name_of)
        return None

    def _take(self, frame: Frame, device: int) -> None:
        slate = frame.slate
        frame.chosen = device
        self.counts[slate.claim] += 1
        self._picks += 1
        for number, amount in self.draw(device):
            self.drawn[number] = self.drawn.get(number, 0) + amount
        if self.problem.shareable(device):
            self._share(slate, device, 1)
        else:
            self.holds[device] += 1
            self.held.add((slate.claim, device))

    def _release(self, frame: Frame) -> None:
        slate = frame.slate
        device = frame.chosen
        frame.chosen = -1
        self.counts[slate.claim] -= 1
        self._picks -= 1
        if self.problem.shareable(device):
            self._share(slate, device, -1)
        else:
            self.holds[device] -= 1
            self.held.discard((slate.claim, device))
        # Only after the share is gone is it known whether it was the one that drew.
        for number, amount in self.draw(device):
            self.drawn[number] -= amount
        self._unconstrain(slate, slate.constraints)

    def _share(self, slate: RequestRow, device: int, change: int) -> None:
        self.shares[device] = self.shares.get(device, 0) + change
        room = self.room(device)
        for index, need in enumerate(slate.needs.get(device, ())):
            room[index] -= change * need

    def _note(self, slate: RequestRow) -> None:
        """Remember how far the walk came, for explanations."""
        self.dead_ends += 1
        if self.stuck is None or self._picks > len(self.deepest):
            self.stuck = slate
            self.deepest = tuple(self.chosen())
