"""
A search that is not done at once: a turn at a time, and given up after so many.

Nobody knows beforehand whether a walk with proof ends first or one without; both give the same
answer. So they take turns, which costs at most twice what the better of them would. A turn is
short: whoever has other work does it in between.

A search sees the problem as it was when the search began, and changes nothing but the memory:
what it came to is kept by all that it looked at, and whoever asks again, about a node where that
is so, is answered at once. So it does not matter what happened meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.allocation.model.errors import AllocationError
from dryrack.allocation.proof.problem_facts import Survey
from dryrack.allocation.proof.search_memo import Conclusion, facts_of, names_of
from dryrack.allocation.proof.search_proof import SearchProof
from dryrack.allocation.search.walk import Ending, Walk

if TYPE_CHECKING:
    from collections.abc import Generator, Hashable, Iterator

    from dryrack.allocation.search.problem import Problem

# What a step with proof costs is a look at every device that a request can have, for every
# request: some microseconds each. After so many looks the search is given up, which is less than
# a second; Kubernetes gives up after ten. Where there are very many devices, steps count.
_LOOKS_MAX = 1 << 17
_STEPS_MIN = 512

# A turn is a few milliseconds.
_LOOKS_A_TURN = 1 << 10

# So many steps without proof take as long as one with it.
_PLAIN_STEPS = 16

# A claim that is hopeless by itself mostly is so at once.
_ALONE_DEAD_ENDS_MAX = 100


class Search:
    """See the module's docstring."""

    def __init__(self, problem: Problem, proof: SearchProof, facts: Hashable) -> None:
        # Equal for searches that will come to the same.
        self.facts = facts
        self._problem = problem
        # Each goes on with the search; after the last it has ended.
        self.turns = self._turns(proof)

    def finish(self) -> None:
        """Go on to the end."""
        for _ in self.turns:
            continue

    def _turns(self, proof: SearchProof) -> Iterator[None]:
        """A turn of one walk, then of the other, until one has ended or none may go on."""
        looks = sum(len(way.order) for ways in self._problem.requests for way in ways) or 1
        steps = max(1, _LOOKS_A_TURN // looks)
        if (yield from _hopeless_alone(proof, steps)):
            self._keep(Conclusion(Ending.FAILED))
            return
        walks = [(Walk(self._problem), _PLAIN_STEPS * steps)]
        if proof.cuts:
            walks.insert(0, (Walk(self._problem, proof), steps))
        for _ in range(0, max(_STEPS_MIN, _LOOKS_MAX // looks), steps):
            for walk, steps_max in walks:
                conclusion = _gone_on(walk, steps_max)
                if conclusion is not None:
                    self._keep(conclusion)
                    return
                yield
        self._keep(Conclusion(Ending.UNDECIDED))

    def _keep(self, conclusion: Conclusion) -> None:
        # An error speaks of claims and devices by their names.
        known_by = names_of(self._problem, self.facts) if conclusion.error else self.facts
        self._problem.surroundings.endings.keep(known_by, conclusion)


def _hopeless_alone(proof: SearchProof, steps: int) -> Generator[None, None, bool]:
    """Whether one of the claims cannot be had even by itself; in turns."""
    for walk in proof.claims_alone():
        while walk.dead_ends <= _ALONE_DEAD_ENDS_MAX and walk.steps < _STEPS_MIN:
            ending = walk.run(_ALONE_DEAD_ENDS_MAX, steps_max=steps)
            if ending is Ending.FAILED:
                return True
            if ending is Ending.FOUND:
                break
            yield
    return False


def _gone_on(walk: Walk, steps_max: int) -> Conclusion | None:
    """What the walk has come to after so many further steps, if it has ended."""
    try:
        ending = walk.run(steps_max=steps_max)
    except AllocationError as error:
        return Conclusion(Ending.FAILED, error=str(error))
    return None if ending is Ending.UNDECIDED else Conclusion.of(walk, ending)


def look_further(problem: Problem) -> Conclusion | Search:
    """What is known of a problem that a short walk did not decide, or the search for it."""
    survey = Survey(problem)
    problem.freeze()
    facts = facts_of(problem)
    endings = problem.surroundings.endings
    known = endings.get(facts) or endings.get(names_of(problem, facts))
    if known is not None:
        return known
    proof = SearchProof(survey)
    if proof.refuted():
        return Conclusion(Ending.FAILED)
    return Search(problem, proof, facts)
