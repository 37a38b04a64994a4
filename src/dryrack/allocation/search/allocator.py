"""
One attempt: what Kubernetes' scheduler would do with these claims on this node.

`attempt` is a function of a context (classes, features, devices in use) and of the pools that a
node sees; `incremental` keeps both as a cluster changes. A search that does not end at once runs
in turns and stops at a limit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from dryrack.allocation.diagnosis import diagnose
from dryrack.allocation.model.errors import AllocationError
from dryrack.allocation.model.identity import claim_name
from dryrack.allocation.model.reasons import Code, Reason
from dryrack.allocation.proof.problem_facts import ProblemFacts
from dryrack.allocation.proof.search_memo import Conclusion, key_with_names, search_key
from dryrack.allocation.proof.search_proof import SearchProof
from dryrack.allocation.search.problem import AllocatorContext, Problem
from dryrack.allocation.search.results import assemble
from dryrack.allocation.search.walk import Ending, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Iterator, Sequence

    from dryrack.allocation.search.problem import Site
    from dryrack.allocation.supply.pools import Pool
    from dryrack.base.ports import Chance
    from dryrack.kinds.core import Node
    from dryrack.kinds.resource import AllocationResult, ResourceClaim

INVALID_POOLS = "invalid resource pools were encountered"

# A proof looks at every device for every request. This many dead ends cost about as much.
_DEAD_ENDS_MAX = 24

# A step with proof looks at every device that a request can have, for every request: some
# microseconds per look. After this many looks the search stops, which is less than a second;
# Kubernetes stops after ten. Where there are very many devices, steps count.
_LOOKS_MAX = 1 << 17
_STEPS_MIN = 512

# A turn takes a few milliseconds.
_LOOKS_A_TURN = 1 << 10

# This many steps without proof take as long as one with it.
_PLAIN_STEPS = 16

# A claim without a solution of its own mostly shows that at once.
_ALONE_DEAD_ENDS_MAX = 100


class Allocated(msgspec.Struct, frozen=True):
    """The claims fit: one result for each, in their order."""

    results: tuple[AllocationResult, ...]


@dataclass(frozen=True, slots=True)
class Unsatisfiable:
    """The claims do not fit on this node."""

    node: str
    # What Kubernetes adds when it skipped invalid pools; empty otherwise.
    error: str
    _diagnose: Callable[[], tuple[Reason, ...]] = field(repr=False, compare=False)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons, computed on demand: the request that got stuck, then its devices."""
        return self._diagnose()


@dataclass(frozen=True, slots=True)
class Undecided:
    """The search stopped at its limit: the claims may or may not fit on this node."""

    node: str
    error: str
    _claims: tuple[str, ...]

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Return a reason for each claim: its result is unknown."""
        return tuple(
            Reason(
                claim=claim,
                request="",
                device="",
                code=Code.UNDECIDED,
                fact="the search stopped at its limit before it tried all combinations of devices",
                remedy="request fewer devices at once, or add selectors",
            )
            for claim in self._claims
        )


Outcome = Allocated | Unsatisfiable | Undecided


def attempt(
    context: AllocatorContext,
    pools: Sequence[Pool],
    *,
    node: Node,
    claims: Sequence[ResourceClaim],
    chance: Chance,
) -> Outcome:
    """
    Return devices for all claims together on a node that sees these pools, or why there are none.

    Raises `AllocationError` where Kubernetes would stop trying altogether.
    """
    begun = begin(context, pools, node=node, claims=claims, chance=chance)
    while isinstance(begun, Search):
        begun.finish()
        begun = begin(context, pools, node=node, claims=claims, chance=chance)
    return begun


def begin(
    context: AllocatorContext,
    pools: Sequence[Pool],
    *,
    node: Node,
    claims: Sequence[ResourceClaim],
    chance: Chance,
    sites: Sequence[Site] = (),
) -> Outcome | Search:
    """
    Return the outcome if a short search finds it, or the long search that has to end first.

    The order: a short walk without proofs, the memo of earlier searches, a proof without a search,
    and then the long search, which leaves its result in the memo. Claims with sites are used
    there, and the pools are those that any of the sites sees.
    """
    problem = Problem(context, node, pools, claims, sites)
    walk = Walk(problem)
    ending = walk.run(_DEAD_ENDS_MAX)
    if ending is Ending.FOUND:
        return Allocated(assemble(problem, walk.chosen(), walk.chosen_ways, chance))
    if ending is Ending.UNDECIDED:
        facts = ProblemFacts(problem)
        problem.freeze()
        key = search_key(problem)
        conclusion = context.memo.get(key) or context.memo.get(key_with_names(problem, key))
        if conclusion is None:
            proof = SearchProof(facts)
            if not proof.is_refuted():
                return Search(problem, proof, key)
            conclusion = Conclusion(Ending.FAILED)
        if conclusion.error:
            raise AllocationError(conclusion.error)
        ending = conclusion.ending
        if ending is Ending.FOUND:
            choices = conclusion.choices(problem)
            return Allocated(assemble(problem, choices, dict(conclusion.ways), chance))
    error = INVALID_POOLS if any(pool.invalid for pool in pools) else ""
    if ending is Ending.UNDECIDED:
        return Undecided(node.metadata.name, error, tuple(map(claim_name, claims)))
    return Unsatisfiable(node.metadata.name, error, partial(diagnose, walk))


class Search:
    """
    A long search, which runs in turns and stops after a number of steps.

    A walk with proofs can end before one without, or after it; both have the same result. So they
    alternate, which takes at most twice the time of the shorter one. Between turns the caller can
    do other work: a search sees the problem as it was at its beginning, and changes only the memo,
    where everyone finds the result who asks about a node with the same facts.
    """

    def __init__(self, problem: Problem, proof: SearchProof, key: Hashable) -> None:
        # Equal for searches that end alike.
        self.key = key
        self._problem = problem
        # Each turn continues the search; after the last turn it has ended.
        self.turns = self._turns(proof)

    def finish(self) -> None:
        """Run all turns that are left."""
        for _ in self.turns:
            continue

    def _turns(self, proof: SearchProof) -> Iterator[None]:
        looks = sum(len(way.order) for ways in self._problem.requests for way in ways) or 1
        steps = max(1, _LOOKS_A_TURN // looks)
        if (yield from _fails_alone(proof, steps)):
            self._keep(Conclusion(Ending.FAILED))
            return
        walks = [(Walk(self._problem), _PLAIN_STEPS * steps)]
        if proof.cuts:
            walks.insert(0, (Walk(self._problem, proof), steps))
        for _ in range(0, max(_STEPS_MIN, _LOOKS_MAX // looks), steps):
            for walk, steps_max in walks:
                try:
                    ending = walk.run(steps_max=steps_max)
                except AllocationError as error:
                    self._keep(Conclusion(Ending.FAILED, error=str(error)))
                    return
                if ending is not Ending.UNDECIDED:
                    self._keep(Conclusion.of(walk, ending))
                    return
                yield
        self._keep(Conclusion(Ending.UNDECIDED))

    def _keep(self, conclusion: Conclusion) -> None:
        # An error has names of claims and devices in it.
        key = key_with_names(self._problem, self.key) if conclusion.error else self.key
        self._problem.context.memo.keep(key, conclusion)


def _fails_alone(proof: SearchProof, steps: int) -> Generator[None, None, bool]:
    """Return, after some turns, whether one of the claims has no solution even by itself."""
    for walk in proof.claims_alone():
        while walk.dead_ends <= _ALONE_DEAD_ENDS_MAX and walk.steps < _STEPS_MIN:
            ending = walk.run(_ALONE_DEAD_ENDS_MAX, steps_max=steps)
            if ending is Ending.FAILED:
                return True
            if ending is Ending.FOUND:
                break
            yield
    return False
