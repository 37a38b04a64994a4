"""
A search by looser rules, to learn where one by the rules of 1.36 cannot succeed.

Up to 1.36 some constraints depend on the order of devices, and on what was tried in vain. There
little can be left out, because little can be exchanged. A relaxed walk asks less: whatever the
other can choose, it can choose too, and meets at least the errors that the other meets. What it
asks depends on the choices alone, so all cuts apply. If it finds nothing below some choices,
then nothing is there; if it finds something, that proves nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.allocation.errors import AllocationError
from dryrack.allocation.search import Ending, Frame, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from dryrack.allocation.problem import Slate
    from dryrack.allocation.search import Proof
    from dryrack.allocation.survey import Survey

# A question that takes longer is left open; the next one below it may be easier.
_STEPS_MAX = 500

# As many as dead ends are remembered.
_ALIVE_MAX = 300_000


class RelaxedWalk(Walk):
    """Comes wherever the walk that it stands for does, and further."""

    def __init__(self, survey: Survey, proof: Proof, *, within: range | None = None) -> None:
        super().__init__(survey.problem, proof, within=within, relaxed=True)
        self._mined_claims = survey.mined_claims
        self._safe = survey.safe

    def _over_the_limit(self, slate: Slate) -> Ending:
        # What is skipped may hide an error that the other walk, stuck earlier, comes to.
        return Ending.FAILED if slate.claim in self._mined_claims else Ending.EXCEEDED

    def _choose_all(self, frame: Frame) -> bool:
        slate = frame.slate
        if frame.slot >= self._safe[id(slate)]:
            raise AllocationError("a claim constraint may not be satisfied")
        return super()._choose_all(frame)


class Relaxation:
    """Answers whether anything can be found below a frame of another walk."""

    def __init__(self, survey: Survey, proof: Proof) -> None:
        self._walk = RelaxedWalk(survey, proof)
        self._alive: set[Hashable] = set()

    def barren(self, walk: Walk, frame: Frame, key: Callable[[Walk, Frame], Hashable]) -> bool:
        """Whether neither a solution nor an error is below the frame."""
        own = self._walk
        own.follow(walk)
        begin = Frame(frame.slate, frame.slot)
        begin.cursor = frame.cursor
        begin.key = key(own, begin)
        if begin.key in self._alive:
            return False
        depth, before = len(own.stack), own.steps
        try:
            ending = own.explore(begin, _STEPS_MAX)
        except AllocationError:
            ending = Ending.FOUND
        walk.steps += own.steps - before
        if ending is Ending.FAILED:
            return True
        if len(self._alive) < _ALIVE_MAX:
            self._alive.add(begin.key)
            # What was found is below all of these.
            self._alive.update(each.key for each in own.stack[depth:] if ending is Ending.FOUND)
        own.back_to(depth)
        return False
