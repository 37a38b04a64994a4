"""
An allocator for a cluster that changes.

Slices, classes, taint rules and allocations come and go one at a time, and the cost of a change is
that of the objects it concerns. An outcome is that of an allocator which was built for the current
cluster; a query changes nothing. Read the reasons for a refusal before the next change. Every
change returns the nodes that it may help: on all others, claims that did not fit still do not fit.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dryrack.allocation.model.errors import AllocationError
from dryrack.allocation.model.features import Features
from dryrack.allocation.model.identity import DeviceId, PoolId
from dryrack.allocation.proof.problem_facts import ProblemFacts
from dryrack.allocation.proof.search_memo import SearchMemo, search_key
from dryrack.allocation.search.allocator import (
    INVALID_POOLS,
    Allocated,
    Unsatisfiable,
    attempt,
    begin,
)
from dryrack.allocation.search.device_books import DeviceBooks
from dryrack.allocation.search.doubts import Doubts, chains_of
from dryrack.allocation.search.problem import (
    AllocatorContext,
    Problem,
    selector_compiler,
    stored_environment,
)
from dryrack.allocation.supply.node_pools import NodePool
from dryrack.allocation.supply.pools import Inventory
from dryrack.allocation.supply.taints import apply_taint_rules
from dryrack.allocation.supply.usage import UsageTable
from dryrack.cel import DerivedTable
from dryrack.cel.selectors import SelectorTable
from dryrack.kinds.releases import DEFAULT_RELEASE, Release

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from dryrack.allocation.model.reasons import Reason
    from dryrack.allocation.search.allocator import Outcome, Search
    from dryrack.allocation.search.device_books import DeviceBook, Suitable
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
        release: Release = DEFAULT_RELEASE,
        chance: Chance,
        memo: SearchMemo | None = None,
    ) -> None:
        """`memo` can be shared by allocators of the same release and features."""
        features = features if features is not None else Features.defaults(release)
        self._chance = chance
        self._inventory = Inventory((), features, release)
        self._slices: dict[str, tuple[Entry, ResourceSlice]] = {}
        self._rules: dict[str, DeviceTaintRule] = {}
        self._classes: dict[str, DeviceClass] = {}
        self._allocations: dict[str, AllocationResult] = {}
        self._usage = UsageTable(features)
        self._context = AllocatorContext(
            features=features,
            release=release,
            classes=self._classes,
            allocated=self._usage,
            selectors=SelectorTable(selector_compiler(features, release)),
            derived=DerivedTable(stored_environment(features, release)),
            memo=memo if memo is not None else SearchMemo(),
        )
        self._doubts = Doubts(self._context.selectors, self._context.derived, self._inventory.pools)
        self._books = DeviceBooks(self._context, self._inventory)
        # Counts the changes of slices and classes.
        self._version = 0

    def allocate(self, node: Node, claims: Sequence[ResourceClaim]) -> Outcome:
        """
        Return devices for all claims together on the node, or why there are none.

        Raises `AllocationError` where Kubernetes would stop trying altogether.
        """
        pools = self._inventory.pools(node)
        return attempt(self._context, pools, node=node, claims=claims, chance=self._chance)

    def begin(self, node: Node, claims: Sequence[ResourceClaim]) -> Outcome | Search:
        """Return the outcome, or a long search; call again when it has ended."""
        pools = self._inventory.pools(node)
        if self.lacks(node, claims):
            error = INVALID_POOLS if any(pool.invalid for pool in pools) else ""
            return Unsatisfiable(node.metadata.name, error, partial(self._diagnose, node, claims))
        return begin(self._context, pools, node=node, claims=claims, chance=self._chance)

    def _diagnose(self, node: Node, claims: Sequence[ResourceClaim]) -> tuple[Reason, ...]:
        """Return why claims do not fit for which too few devices are left."""
        outcome = self.allocate(node, claims)
        assert not isinstance(outcome, Allocated), "too few devices are left"
        return outcome.reasons

    def suitable(self, node: Node, claims: Sequence[ResourceClaim]) -> Suitable | None:
        """
        Return the devices of the node that claims could have if nothing were in use.

        It is None if the search has to decide. Raises `AllocationError`.
        """
        return self._books.suitable(node, claims)

    def lacks(self, node: Node, claims: Sequence[ResourceClaim]) -> bool:
        """
        Return True if obviously too few devices are left on the node for the claims.

        Raises `AllocationError`.
        """
        suitable = self.suitable(node, claims)
        return suitable is not None and self._books.on(node).lacks(suitable)

    def book_on(self, node: Node) -> DeviceBook:
        """Return what is left of the devices of the node, until the next change."""
        return self._books.on(node)

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
        key = chains_of(claims, self._classes, self._context.features, self._context.behaviour)
        if not key:
            return ()
        versions = (version, self._version, enough)
        return self._doubts.doubtful_nodes(key, nodes, enough=enough, version=versions)

    def begin_apart(
        self, claims: Sequence[ResourceClaim], sites: Sequence[Site]
    ) -> Outcome | Search:
        """
        Begin an allocation for claims of which each has its own site.

        A claim whose site is open gets devices of any of its nodes. Its result shows only that
        there are enough devices, and cannot be used as an allocation.
        """
        nodes = {node.metadata.name: node for site in sites for node in site.nodes}
        every = tuple(nodes.values())
        exact: list[Site] = []
        for site in sites:
            seen = frozenset(p.id for node in site.nodes for p in self._inventory.pools(node))
            exact.append(replace(site, pools=seen))
        return begin(
            self._context,
            self._inventory.pools_of(every),
            node=every[0],
            claims=claims,
            chance=self._chance,
            sites=exact,
        )

    def is_local(self, node: Node) -> bool:
        """Return whether the node shares no pool with other nodes."""
        return self._inventory.is_local(node)

    def symmetry_key(self, node: Node, claims: Sequence[ResourceClaim]) -> Hashable:
        """
        Return a key that is equal for nodes on which these claims have the same results.

        Pools that other nodes see, too, are the same for such nodes; their own are alike.
        """
        pools = self._inventory.pools(node)
        try:
            problem = Problem(self._context, node, pools, claims)
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
        """Add or replace a slice."""
        self._version += 1
        before = self.drop_slice(each.metadata.name)
        entry = self._inventory.add(self._with_taints(each), rank=each.metadata.name)
        self._slices[each.metadata.name] = (entry, each)
        return _both(before, self._nodes_of(each))

    def drop_slice(self, name: str) -> AffectedNodes:
        known = self._slices.pop(name, None)
        if known is None:
            return NO_NODES
        self._version += 1
        # The rest of its pool may make sense without it.
        helped = self._nodes_of(known[1])
        self._inventory.remove(known[0])
        return helped

    def _nodes_of(self, each: ResourceSlice) -> AffectedNodes:
        pool = PoolId(each.spec.driver, each.spec.pool.name)
        return self._inventory.nodes_of((pool,))

    def put_rule(self, rule: DeviceTaintRule) -> AffectedNodes:
        """Add or replace a taint rule."""
        self._rules[rule.metadata.name] = rule
        self._taint_again()
        return ALL_NODES

    def drop_rule(self, name: str) -> AffectedNodes:
        if self._rules.pop(name, None) is not None:
            self._taint_again()
        return ALL_NODES

    def put_class(self, each: DeviceClass) -> AffectedNodes:
        self._classes[each.metadata.name] = each
        self._books.forget_all()
        return ALL_NODES

    def drop_class(self, name: str) -> AffectedNodes:
        self._classes.pop(name, None)
        self._books.forget_all()
        return ALL_NODES

    def forget_node(self, name: str) -> None:
        """Drop what is remembered about a deleted node."""
        self._inventory.forget(name)
        self._books.forget_node(name)

    def pools_on(self, node: Node) -> tuple[NodePool, ...]:
        """Return the pools of the node, and the devices in use."""
        return tuple(
            NodePool(
                pool.id,
                tuple(each for each in pool.devices if each.is_for(node)),
                self._usage.in_use(pool.id),
                pool.counter_sets or {},
            )
            for pool in self._inventory.pools(node)
            if pool.devices
        )

    def allocation_of(self, claim: str) -> AllocationResult | None:
        """Return the allocation of a claim."""
        return self._allocations.get(claim)

    def is_in_use(self, result: DeviceRequestAllocationResult) -> bool:
        """Return whether a claim uses the device exclusively."""
        device = DeviceId(result.driver, result.pool, result.device)
        return result.share_id is None and device in self._usage.devices

    def set_allocation(self, claim: str, allocation: AllocationResult | None) -> AffectedNodes:
        """Set or remove the allocation of a claim."""
        before = self._allocations.get(claim)
        after = allocation
        if _results(before) == _results(after):
            return NO_NODES
        if before is not None:
            del self._allocations[claim]
            self._usage.release(before, claim)
        if after is not None:
            self._allocations[claim] = after
            self._usage.allocate(after, claim)
        results = (*_results(before), *_results(after))
        pools = {PoolId(each.driver, each.pool): None for each in results}
        # The devices in use of a pool do not matter to nodes that see only its counters.
        nodes = self._inventory.nodes_offered(pools)
        self._books.forget_use(nodes)
        if before is not None:
            return nodes
        shared = {
            PoolId(each.driver, each.pool): None
            for each in _results(after)
            if each.share_id is not None
        }
        if not self._helps_others:
            # A first share pays for the counters that a device draws; those after it need not.
            shared = {pool: None for pool in shared if self._inventory.draws_counters(pool)}
        return self._inventory.nodes_offered(shared) if shared else NO_NODES

    @property
    def _helps_others(self) -> bool:
        """
        Return whether a share could help claims that did not fit, without counters.

        A request for all devices leaves out those without enough capacity, in some releases. So a
        share can remove the device that did not fit the request for another reason.
        """
        return self._books.asked_for_all and not self._context.behaviour.all_includes_full

    def _with_taints(self, each: ResourceSlice) -> ResourceSlice:
        if not self._rules:
            return each
        rules = [self._rules[name] for name in sorted(self._rules)]
        return apply_taint_rules((each,), rules)[0]

    def _taint_again(self) -> None:
        """Apply the taint rules to all slices again. Rules are few and seldom change."""
        for _, each in tuple(self._slices.values()):
            self.put_slice(each)


def _results(allocation: AllocationResult | None) -> Sequence[DeviceRequestAllocationResult]:
    """Return the results of an allocation, which name the devices in use."""
    return allocation.devices.results if allocation is not None else ()


def _both(one: AffectedNodes, other: AffectedNodes) -> AffectedNodes:
    return None if one is None or other is None else (*one, *other)
