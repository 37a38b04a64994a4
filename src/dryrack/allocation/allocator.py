"""
The allocator: what Kubernetes' scheduler would do with these claims on this node.

`Allocator` is built once for a cluster's slices and classes and can be asked about any number
of nodes and claims; `with_allocated` gives one for another state of use that shares all that
was worked out about slices and selectors. Asking changes nothing: give the result to
`AllocatedState.allocate` to make it so.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dryrack.allocation.assemble import assemble
from dryrack.allocation.candidates import CelCompiler, SelectorCompiler, SelectorTable
from dryrack.allocation.diagnosis import diagnose
from dryrack.allocation.endings import Endings, facts_of
from dryrack.allocation.features import Features, Release
from dryrack.allocation.identity import claim_name
from dryrack.allocation.pools import Inventory
from dryrack.allocation.problem import Problem, Surroundings
from dryrack.allocation.proof import SearchProof
from dryrack.allocation.reasons import Code, Reason
from dryrack.allocation.search import Ending, Walk
from dryrack.allocation.state import AllocatedState
from dryrack.allocation.survey import Survey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dryrack.allocation.pools import Pool
    from dryrack.base.ports import Chance
    from dryrack.kinds.core import Node
    from dryrack.kinds.resource import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice


@dataclass(frozen=True, slots=True)
class Allocated:
    """The claims fit: one result for each, in their order."""

    results: tuple[AllocationResult, ...]


@dataclass(frozen=True, slots=True)
class Unsatisfiable:
    """The claims do not fit on this node."""

    node: str
    # What Kubernetes adds when it skipped pools that make no sense; empty otherwise.
    error: str
    _walk: Walk = field(repr=False, compare=False)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why not, worked out when asked: the request that got stuck, then its devices."""
        return diagnose(self._walk)


@dataclass(frozen=True, slots=True)
class Undecided:
    """Whether the claims fit on this node is not known: the search was given up."""

    node: str
    error: str
    _claims: tuple[str, ...]

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Of each claim that nothing is known."""
        return tuple(
            Reason(
                claim=claim,
                request="",
                device="",
                code=Code.UNDECIDED,
                fact="the search was given up before all combinations of devices were tried",
                remedy="ask for fewer devices at once, or say more about which",
            )
            for claim in self._claims
        )


Outcome = Allocated | Unsatisfiable | Undecided

INVALID_POOLS = "invalid resource pools were encountered"

# A proof costs a look at every device for every request. So many dead ends cost about as much.
_DEAD_ENDS_MAX = 24

# How long a turn is with proof, and how long without. A step with proof takes as long as
# some ten to thirty without; most proofs need a single turn.
_PROVING_STEPS = 512
_PLAIN_STEPS = 16 * _PROVING_STEPS

# What takes longer may be proved by looking at cases, before it is walked through.
_FIRST_STEPS = 64

# After so many turns of each the search is given up. Kubernetes gives up after ten seconds.
_ROUNDS_MAX = 100


class Allocator:
    """Answers for one state of the cluster."""

    def __init__(
        self,
        slices: Sequence[ResourceSlice],
        classes: Iterable[DeviceClass],
        *,
        features: Features | None = None,
        release: Release = Release.V1_36,
        allocated: AllocatedState | None = None,
        chance: Chance,
        compiler: SelectorCompiler | None = None,
        endings: Endings | None = None,
    ) -> None:
        """`endings` are those of other allocators of the same release and features."""
        features = features if features is not None else Features.defaults(release)
        by_name: dict[str, DeviceClass] = {}
        for each in classes:
            by_name.setdefault(each.metadata.name, each)
        self._inventory = Inventory(slices, features, release)
        self._chance = chance
        self._surroundings = Surroundings(
            features=features,
            release=release,
            classes=by_name,
            allocated=allocated or AllocatedState(),
            selectors=SelectorTable(compiler or CelCompiler(features, release)),
            endings=endings if endings is not None else Endings(),
        )

    def allocate(self, node: Node, claims: Sequence[ResourceClaim]) -> Outcome:
        """
        Devices for all claims together on the node, or why there are none.

        Raises `AllocationError` where Kubernetes would stop trying altogether.
        """
        pools = self._inventory.pools(node)
        return attempt(self._surroundings, pools, node=node, claims=claims, chance=self._chance)

    def with_allocated(self, allocated: AllocatedState) -> Allocator:
        """The same cluster with other devices in use; cheap."""
        other = object.__new__(Allocator)
        other._inventory = self._inventory
        other._chance = self._chance
        other._surroundings = replace(self._surroundings, allocated=allocated)
        return other


def attempt(
    surroundings: Surroundings,
    pools: Sequence[Pool],
    *,
    node: Node,
    claims: Sequence[ResourceClaim],
    chance: Chance,
) -> Outcome:
    """What comes of trying claims on a node that sees these pools."""
    problem = Problem(surroundings, node, pools, claims)
    walk, ending = _search(problem)
    if ending is Ending.FOUND:
        return Allocated(assemble(problem, walk.chosen(), walk.chosen_ways, chance))
    error = INVALID_POOLS if any(pool.invalid for pool in pools) else ""
    if ending is Ending.UNDECIDED:
        return Undecided(node.metadata.name, error, tuple(map(claim_name, claims)))
    return Unsatisfiable(node.metadata.name, error, walk)


def _search(problem: Problem) -> tuple[Walk, Ending]:
    """Most attempts need no proof; those that do begin again with one, unless that was done."""
    first = Walk(problem)
    ending = first.run(_DEAD_ENDS_MAX)
    if ending is not Ending.UNDECIDED:
        return first, ending
    survey, endings = Survey(problem), problem.surroundings.endings
    facts = facts_of(problem)
    known = endings.get(facts)
    if known is not None:
        return first, known
    proof = SearchProof(survey)
    if proof.refuted():
        return first, Ending.FAILED
    found, ending = _search_with_proof(problem, proof)
    if found is None:
        endings.keep(facts, ending)
    return found or first, ending


def _search_with_proof(problem: Problem, proof: SearchProof) -> tuple[Walk | None, Ending]:
    """
    The walk that found something, if one did, and how the search ended.

    Both walks, with proof and without, give the same answer; nobody knows beforehand which of
    them ends first. So they take turns, which costs at most twice what the better of them would.
    """
    for turn, (walk, steps) in enumerate(_turns(problem, proof)):
        ending = walk.run(steps_max=steps)
        if ending is not Ending.UNDECIDED:
            return (walk if ending is Ending.FOUND else None), ending
        if turn == 0 and proof.refuted_in_cases():
            return None, Ending.FAILED
    return None, Ending.UNDECIDED


def _turns(problem: Problem, proof: SearchProof) -> Iterator[tuple[Walk, int]]:
    """Which walk goes on, and for how many steps; the first turn is short."""
    plain, proving = Walk(problem), Walk(problem, proof)
    if proof.cuts:
        yield proving, _FIRST_STEPS
    for _ in range(_ROUNDS_MAX):
        if proof.cuts:
            yield proving, _PROVING_STEPS
        yield plain, _PLAIN_STEPS
