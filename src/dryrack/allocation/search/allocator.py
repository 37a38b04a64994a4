"""
The allocator: what Kubernetes' scheduler would do with these claims on this node.

`Allocator` is built once for a cluster's slices and classes and can be asked about any number
of nodes and claims; `with_allocated` gives one for another state of use that shares all that
was worked out about slices and selectors. Asking changes nothing: give the result to
`AllocatedState.allocate` to make it so.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from dryrack.allocation.diagnosis import diagnose
from dryrack.allocation.model.errors import AllocationError
from dryrack.allocation.model.features import Features, Release
from dryrack.allocation.model.identity import claim_name
from dryrack.allocation.model.reasons import Code, Reason
from dryrack.allocation.proof.search_memo import SearchMemo
from dryrack.allocation.search.candidates import CelCompiler
from dryrack.allocation.search.long_search import Search, look_further
from dryrack.allocation.search.problem import AllocatorContext, Problem
from dryrack.allocation.search.results import assemble
from dryrack.allocation.search.walk import Ending, Walk
from dryrack.allocation.supply.pools import Inventory
from dryrack.allocation.supply.usage import AllocatedState
from dryrack.cel.selectors import SelectorTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dryrack.allocation.search.problem import Site
    from dryrack.allocation.supply.pools import Pool
    from dryrack.base.ports import Chance
    from dryrack.cel.selectors import SelectorCompiler
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
        endings: SearchMemo | None = None,
    ) -> None:
        """`endings` are those of other allocators of the same release and features."""
        features = features if features is not None else Features.defaults(release)
        by_name: dict[str, DeviceClass] = {}
        for each in classes:
            by_name.setdefault(each.metadata.name, each)
        self._inventory = Inventory(slices, features, release)
        self._chance = chance
        self._surroundings = AllocatorContext(
            features=features,
            release=release,
            classes=by_name,
            allocated=allocated or AllocatedState(),
            selectors=SelectorTable(compiler or CelCompiler(features, release)),
            endings=endings if endings is not None else SearchMemo(),
        )

    def allocate(self, node: Node, claims: Sequence[ResourceClaim]) -> Outcome:
        """
        Devices for all claims together on the node, or why there are none.

        Raises `AllocationError` where Kubernetes would stop trying altogether.
        """
        pools = self._inventory.pools(node)
        return attempt(self._surroundings, pools, node=node, claims=claims, chance=self._chance)

    def begin(self, node: Node, claims: Sequence[ResourceClaim]) -> Outcome | Search:
        """The same, or a long search: when it has ended, whoever begins again is answered."""
        pools = self._inventory.pools(node)
        return begin(self._surroundings, pools, node=node, claims=claims, chance=self._chance)

    def with_allocated(self, allocated: AllocatedState) -> Allocator:
        """The same cluster with other devices in use; cheap."""
        other = object.__new__(Allocator)
        other._inventory = self._inventory
        other._chance = self._chance
        other._surroundings = replace(self._surroundings, allocated=allocated)
        return other


def attempt(
    surroundings: AllocatorContext,
    pools: Sequence[Pool],
    *,
    node: Node,
    claims: Sequence[ResourceClaim],
    chance: Chance,
) -> Outcome:
    """What comes of trying claims on a node that sees these pools, however long that takes."""
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
