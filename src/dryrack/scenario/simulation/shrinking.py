"""
Delta debugging: find the smallest part of a scenario that still fails in the same way.

Steps are left out, large parts first and single ones last, as long as the rest still fails. Steps
of a random world have times of their own, so the remaining steps do not move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.kinds.raw import Raw


def shrunk(document: Raw, fails: Callable[[Raw], bool], *, trials_max: int = 400) -> Raw:
    """Return the scenario with as few steps as `fails` needs; the given one fails."""
    steps: list[Raw] = list(document["steps"])
    size = max(1, len(steps) // 2)
    trials = 0
    while True:
        is_smaller = False
        place = 0
        while place < len(steps) and trials < trials_max:
            rest = steps[:place] + steps[place + size :]
            trials += 1
            if rest and fails(document | {"steps": rest}):
                steps = rest
                is_smaller = True
            else:
                place += size
        if trials >= trials_max or (size == 1 and not is_smaller):
            return document | {"steps": _simplest(document, steps, fails)}
        if size > 1:
            size //= 2


def _simplest(document: Raw, steps: Sequence[Raw], fails: Callable[[Raw], bool]) -> list[Raw]:
    """Return the steps that apply several objects, with as few of them as needed."""
    found = list(steps)
    for place, step in enumerate(found):
        for obj in step.get("apply", ()):
            smaller = [each for each in found[place]["apply"] if each is not obj]
            trial = [*found[:place], {**step, "apply": smaller}, *found[place + 1 :]]
            if smaller and fails(document | {"steps": trial}):
                found = trial
    return found
