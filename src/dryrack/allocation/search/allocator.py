"""
One attempt: what Kubernetes' scheduler would do with these claims on this node.

`attempt` is a function of a context (classes, features, what is in use) and of the pools that a
node sees; `incremental` keeps both as a cluster changes.
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
from dryrack.allocation.search.long_search import Search, look_further
from dryrack.allocation.search.problem import AllocatorContext, Problem
from dryrack.allocation.search.results import assemble
from dryrack.allocation.search.walk import Ending, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.allocation.search.problem import Site
    from dryrack.allocation.supply.pools import Pool
    from dryrack.base.ports import Chance
    from dryrack.kinds.core import Node
    from dryrack.kinds.resource import AllocationResult, ResourceClaim


class Allocated(msgspec.Struct, frozen=True):
    """The claims fit: one result for each, in their order."""

    results: tuple[AllocationResult, ...]


@dataclass(frozen=True, slots=True)
class Unsatisfiable:
    """The claims do not fit on this node."""

    node: str
    # What Kubernetes adds when it skipped pools that make no sense; empty otherwise.
    error: str
    _diagnose: Callable[[], tuple[Reason, ...]] = field(repr=False, compare=False)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why not, worked out when asked: the request that got stuck, then its devices."""
        return self._diagnose()


@dataclass(frozen=True, slots=True)
class Undecided:
    """Whether the claims fit on this node is not known: the search was given up."""

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

INVALID_POOLS = "invalid resource pools were encountered"

# A proof costs a look at every device for every request. So many dead ends cost about as much.
_DEAD_ENDS_MAX = 24


def attempt(
    surroundings: AllocatorContext,
    pools: Sequence[Pool],
    *,
    node: Node,
    claims: Sequence[ResourceClaim],
    chance: Chance,
) -> Outcome:
    """
    Devices for all claims together on a node that sees these pools, or why there are none.

    Raises `AllocationError` where Kubernetes would stop trying altogether.
    """
    begun = begin(surroundings, pools, node=node, claims=claims, chance=chance)
    while isinstance(begun, Search):
        begun.finish()
        begun = begin(surroundings, pools, node=node, claims=claims, chance=chance)
    return begun


def begin(
    surroundings: AllocatorContext,
    pools: Sequence[Pool],
    *,
    node: Node,
    claims: Sequence[ResourceClaim],
    chance: Chance,
    sites: Sequence[Site] = (),
) -> Outcome | Search:
    """
    The same if that is known soon, or the search that has to end before it is.

    Claims with sites are used there, and the pools are those that any of the sites sees.
    """
    problem = Problem(surroundings, node, pools, claims, sites)
    walk = Walk(problem)
    ending = walk.run(_DEAD_ENDS_MAX)
    if ending is Ending.FOUND:
        return Allocated(assemble(problem, walk.chosen(), walk.chosen_ways, chance))
    if ending is Ending.UNDECIDED:
        known = look_further(problem)
        if isinstance(known, Search):
            return known
        if known.error:
            raise AllocationError(known.error)
        ending = known.ending
        if ending is Ending.FOUND:
            return Allocated(assemble(problem, known.choices(problem), dict(known.ways), chance))
    error = INVALID_POOLS if any(pool.invalid for pool in pools) else ""
    if ending is Ending.UNDECIDED:
        return Undecided(node.metadata.name, error, tuple(map(claim_name, claims)))
    return Unsatisfiable(node.metadata.name, error, partial(diagnose, walk))
