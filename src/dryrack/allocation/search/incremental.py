"""
An allocator for a cluster that changes while it is asked.

Slices, classes, taint rules and allocations come and go one at a time, and a change costs what it
changes. An answer is that of an allocator which was built for the cluster as it is now; asking
changes nothing. Reasons for a refusal are to be read before the next change. Every change answers
with the nodes that it may help: on all others, what did not fit before does not fit now either.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dryrack.allocation.model.errors import AllocationError
from dryrack.allocation.model.features import Features, Release
from dryrack.allocation.model.identity import DeviceId, PoolId
from dryrack.allocation.proof.problem_facts import ProblemFacts
from dryrack.allocation.proof.search_memo import SearchMemo, search_key
from dryrack.allocation.search.allocator import attempt, begin
from dryrack.allocation.search.doubts import Doubts, chains_of
from dryrack.allocation.search.problem import AllocatorContext, Problem, selector_compiler
from dryrack.allocation.supply.node_pools import NodePool
from dryrack.allocation.supply.pools import Inventory
from dryrack.allocation.supply.taints import apply_taint_rules
from dryrack.allocation.supply.usage import UsageTable
from dryrack.cel.selectors import SelectorTable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from dryrack.allocation.search.allocator import Outcome, Search
    from dryrack.allocation.search.problem import Site
    from dryrack.allocation.supply.pools import Entry
    from dryrack.base.ports import Chance
    from dryrack.kinds.core import Node
    from dryrack.kinds.resource import (
        AllocationResult,
        DeviceClass,
        DeviceRequestAllocationResult,
        DeviceTaintRule,
        ResourceClaim,
        ResourceSlice,
    )


# Nodes by name; None is all of them.
AffectedNodes = tuple[str, ...] | None
NO_NODES: AffectedNodes = ()
ALL_NODES: AffectedNodes = None


class LiveAllocator:
    """See the module's docstring."""

    def __init__(
        self,
        *,
        features: Features | None = None,
        release: Release = Release.V1_36,
        chance: Chance,
        memo: SearchMemo | None = None,
    ) -> None:
        """`memo` are those of other allocators of the same release and features."""
        features = features if features is not None else Features.defaults(release)
        self._chance = chance
        self._inventory = Inventory((), features, release)
        self._slices: dict[str, tuple[Entry, ResourceSlice]] = {}
        self._rules: dict[str, DeviceTaintRule] = {}
        self._classes: dict[str, DeviceClass] = {}
        self._held: dict[str, AllocationResult] = {}
        self._books = UsageTable(features)
        self._surroundings = AllocatorContext(
            features=features,
            release=release,
            classes=self._classes,
            allocated=self._books,
            selectors=SelectorTable(selector_compiler(features, release)),
            memo=memo if memo is not None else SearchMemo(),
        )
        self._doubts = Doubts(self._surroundings.selectors, self._inventory.pools)
        # Counts the changes of slices and classes.
        self._version = 0

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

    def doubtful_nodes(
        self,
        claims: Sequence[ResourceClaim],
        nodes: Callable[[], Iterable[Node]],
        *,
        enough: int,
        version: int,
    ) -> tuple[Node, ...]:
        """
        Return the nodes on which `begin` may raise an error that it does not raise on others.

        It is empty if `enough` nodes are free of doubt. `version` is that of the nodes.
        """
        around = self._surroundings
        key = chains_of(claims, self._classes, around.features)
        if not key:
            return ()
        versions = (version, self._version, enough)
        return self._doubts.doubtful_nodes(key, nodes, enough=enough, version=versions)

    def begin_apart(
        self, claims: Sequence[ResourceClaim], sites: Sequence[Site]
    ) -> Outcome | Search:
        """
        The same for claims of which each has its own site.

        A claim whose site is open gets devices of any of its nodes, which says no more than that
        there are so many: the result of such a claim is of no use.
        """
        nodes = {node.metadata.name: node for site in sites for node in site.nodes}
        every = tuple(nodes.values())
        exact = [replace(site, pools=self._pools_seen(site)) for site in sites]
        pools = self._inventory.pools_of(every)
        around = self._surroundings
        chance = self._chance
        return begin(around, pools, node=every[0], claims=claims, chance=chance, sites=exact)

    def _pools_seen(self, site: Site) -> frozenset[PoolId]:
        return frozenset(p.id for node in site.nodes for p in self._inventory.pools(node))

    def is_local(self, node: Node) -> bool:
        """Whether what is given on the node takes nothing from others, nor the other way round."""
        return self._inventory.is_local(node)

    def likeness(self, node: Node, claims: Sequence[ResourceClaim]) -> Hashable:
        """
        Equal for nodes that can stand in for each other: the claims fare alike on both.

        What other nodes see, too, is the same on both; what is their own is alike.
        """
        pools = self._inventory.pools(node)
        try:
            problem = Problem(self._surroundings, node, pools, claims)
            ProblemFacts(problem)
        except AllocationError as error:
            return str(error)
        own = ((), (node.metadata.name,))
        shared = {p.id for p in pools if self._inventory.nodes_offered((p.id,)) not in own}
        seen = tuple(
            pooled.id if pool.id in shared else None
            for pool, pooled in zip(problem.pool_of, problem.devices, strict=True)
        )
        return search_key(problem), seen

    def put_slice(self, each: ResourceSlice) -> AffectedNodes:
        """The slice is there, and is so from now on, whatever it was before."""
        self._version += 1
        before = self.drop_slice(each.metadata.name)
        entry = self._inventory.add(self._tainted(each), rank=each.metadata.name)
        self._slices[each.metadata.name] = (entry, each)
        return _both(before, self._seeing(each))

    def drop_slice(self, name: str) -> AffectedNodes:
        known = self._slices.pop(name, None)
        if known is None:
            return NO_NODES
        self._version += 1
        # The rest of its pool may make sense without it.
        helped = self._seeing(known[1])
        self._inventory.remove(known[0])
        return helped

    def _seeing(self, each: ResourceSlice) -> AffectedNodes:
        pool = PoolId(each.spec.driver, each.spec.pool.name)
        return self._inventory.nodes_of((pool,))

    def put_rule(self, rule: DeviceTaintRule) -> AffectedNodes:
        """The rule taints what it selects from now on."""
        self._rules[rule.metadata.name] = rule
        self._taint_again()
        return ALL_NODES

    def drop_rule(self, name: str) -> AffectedNodes:
        if self._rules.pop(name, None) is not None:
            self._taint_again()
        return ALL_NODES

    def put_class(self, each: DeviceClass) -> AffectedNodes:
        self._classes[each.metadata.name] = each
        return ALL_NODES

    def drop_class(self, name: str) -> AffectedNodes:
        self._classes.pop(name, None)
        return ALL_NODES

    def forget_node(self, name: str) -> None:
        """Nobody will ask about the node again."""
        self._inventory.forget(name)

    def pools_on(self, node: Node) -> tuple[NodePool, ...]:
        """What the node is offered, and what of it is in use."""
        return tuple(
            NodePool(
                pool.id,
                tuple(each for each in pool.devices if each.is_for(node)),
                self._books.in_use(pool.id),
                pool.counter_sets or {},
            )
            for pool in self._inventory.pools(node)
            if pool.devices
        )

    def allocation_of(self, claim: str) -> AllocationResult | None:
        """What a claim has."""
        return self._held.get(claim)

    def is_in_use(self, result: DeviceRequestAllocationResult) -> bool:
        """Whether a claim has the device for itself."""
        device = DeviceId(result.driver, result.pool, result.device)
        return result.share_id is None and device in self._books.devices

    def set_allocation(self, claim: str, allocation: AllocationResult | None) -> AffectedNodes:
        """What a claim has from now on."""
        before = self._held.get(claim)
        after = allocation
        if _results(before) == _results(after):
            return NO_NODES
        if before is not None:
            del self._held[claim]
            self._books.release(before, claim)
        if after is not None:
            self._held[claim] = after
            self._books.allocate(after, claim)
        # A first share pays for the counters that a device draws; those after it need not.
        shared = [each for each in _results(after) if each.share_id is not None]
        if before is None and not shared:
            return NO_NODES
        pools = {PoolId(each.driver, each.pool): None for each in (*_results(before), *shared)}
        # What is used of a pool matters to nobody who sees no more of it than counters.
        return self._inventory.nodes_offered(pools)

    def _tainted(self, each: ResourceSlice) -> ResourceSlice:
        if not self._rules:
            return each
        rules = [self._rules[name] for name in sorted(self._rules)]
        return apply_taint_rules((each,), rules)[0]

    def _taint_again(self) -> None:
        """Rules are few and seldom change, so every slice is looked at."""
        for _, each in tuple(self._slices.values()):
            self.put_slice(each)


def _results(allocation: AllocationResult | None) -> Sequence[DeviceRequestAllocationResult]:
    """All of an allocation that says which devices are in use."""
    return allocation.devices.results if allocation is not None else ()


def _both(one: AffectedNodes, other: AffectedNodes) -> AffectedNodes:
    return None if one is None or other is None else (*one, *other)
