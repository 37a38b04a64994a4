"""
The cluster as a decision sees it: with the nodes that are being created, without those that go.

Until a NodeClaim is initialized, its node counts as it will be: with the devices that it will have,
and not also with those that are published already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.client.endpoints import CLAIMS, NODE_CLAIMS, NODE_POOLS, NODES, SLICES
from dryrack.controllers.objects import has_condition, is_deleted, labels_of, node_names
from dryrack.controllers.provisioning.decision import PoolState, put_node
from dryrack.controllers.provisioning.devices import FutureDevices
from dryrack.controllers.provisioning.future_nodes import FutureNodes
from dryrack.controllers.provisioning.lifecycle import INITIALIZED_CONDITION
from dryrack.controllers.provisioning.node_claims import drivers_with_pools
from dryrack.controllers.provisioning.node_pools import (
    InvalidPoolError,
    read_pool,
    resources_of,
)
from dryrack.controllers.provisioning.observing import Observed
from dryrack.controllers.provisioning.offers import choose
from dryrack.controllers.slices import PublisherSettings
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.provisioning import NODE_POOL, NodeClaim, NodePool
from dryrack.kinds.quantity import Quantity
from dryrack.placement import World, with_only_pending
from dryrack.planning import case_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from dryrack.client.informer import Informer
    from dryrack.controllers.provisioning import ProvisionerSettings
    from dryrack.controllers.writes import EngineContext
    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.raw import Raw
    from dryrack.planning import Case, NewNode


@dataclass(frozen=True, slots=True)
class View:
    """The input of a decision."""

    case: Case
    pools: Sequence[PoolState]
    future: FutureNodes


class ClusterView:
    """Builds the input of decisions from shared caches."""

    def __init__(
        self,
        context: EngineContext,
        settings: ProvisionerSettings,
        on_change: Callable[[], None],
        reads_pool: Callable[[Raw], NodePool] = read_pool,
    ) -> None:
        """`reads_pool` returns a NodePool, or raises `InvalidPoolError` if it cannot be used."""
        self._settings = settings
        self._reads_pool = reads_pool
        self._chance = context.chance
        publisher = settings.publisher or PublisherSettings()
        self._devices = FutureDevices(context, publisher, settings.devices, on_change)
        self._observed = Observed(context, on_change)
        self.claims = context.informers.of(NODE_CLAIMS)
        self.pools = context.informers.of(NODE_POOLS)
        self.nodes = context.informers.of(NODES)
        self.resource_claims = context.informers.of(CLAIMS)
        self._claims_by_pool = self.claims.index("pool", _pool_names)
        self._slices_by_node = context.informers.of(SLICES).index("node", node_names)
        self.informers: tuple[Informer, ...] = (
            *self._observed.informers,
            self._devices.informer,
            self.claims,
            self.pools,
        )

    def of_pending(
        self,
        pending: Collection[str],
        *,
        without: Collection[str] = (),
        replaced: Mapping[str, KubernetesObject | None] | None = None,
        expected: Callable[[FutureNodes], Sequence[NewNode]] | None = None,
    ) -> View:
        """
        Return the view of a decision about these pods, by namespace/name.

        The nodes of the NodeClaims in `without` are left out; objects are `replaced` by their UID.
        `expected` returns the nodes that are being created; by default, those of NodeClaims.
        """
        future = self.future_nodes()
        coming = (
            expected(future)
            if expected is not None
            else [
                new
                for each in self.claims.all()
                if each["metadata"]["name"] not in without
                and not has_condition(each, INITIALIZED_CONDITION)
                and (new := self.future_node(each, future))
            ]
        )
        hidden: dict[str, KubernetesObject | None] = dict(replaced or {})
        for new in coming:
            hidden |= self._hide(new.node.metadata.name)
        for name in without:
            hidden |= self._hide(name)
        for node in self.nodes.all():
            if is_deleted(node):
                hidden |= self._hide(node["metadata"]["name"])
        world = with_only_pending(World.of(self._observed.objects(hidden)), pending)
        case = case_of(
            world,
            release=self._settings.release,
            features=self._settings.features,
            chance=self._chance,
        )
        for new in coming:
            put_node(case.cluster, new)
        return View(case, self.pool_states(), future)

    def future_nodes(self) -> FutureNodes:
        """Return what makes nodes that do not exist yet."""
        daemons = self._observed.daemons()
        return FutureNodes(self._settings.machines, self._devices.matcher(), daemons)

    def _hide(self, node: str) -> dict[str, KubernetesObject | None]:
        found = self.nodes.get("", node)
        own = (*self._slices_by_node.get(node), *((found,) if found else ()))
        return {each["metadata"]["uid"]: None for each in own}

    def future_node(self, claim: Raw, future: FutureNodes) -> NewNode | None:
        """Return the node of a NodeClaim as it is when it has its devices."""
        if is_deleted(claim):
            return None
        try:
            typed = decode(claim, NodeClaim)
        except DecodeError:
            return None
        found = choose(typed.spec.requirements, typed.metadata.labels, self._settings.machines)
        if found is None:
            return None
        machine, labels = found
        name = typed.status.node_name or typed.metadata.name
        return future.make(name, machine, {**labels, **typed.metadata.labels}, typed.spec.taints)

    def pool_states(self) -> list[PoolState]:
        """Return the NodePools that can be used, with the resources that they have."""
        states = []
        for raw in self.pools.all():
            if is_deleted(raw):
                continue
            try:
                pool = self._reads_pool(raw)
            except InvalidPoolError:
                continue
            own = self.claims_of(pool.metadata.name)
            used = resources_of(map(self._with_capacity, own))
            states.append(PoolState(pool, {k: Quantity.parse(v) for k, v in used.items()}))
        return states

    def published_drivers(self, node: str) -> Collection[str]:
        """Return the drivers that have published all their devices of a node."""
        return drivers_with_pools(self._slices_by_node.get(node))

    def claims_of(self, pool: str) -> Sequence[Raw]:
        """Return the NodeClaims of a pool."""
        return self._claims_by_pool.get(pool)

    def _with_capacity(self, claim: Raw) -> Raw:
        """Return a NodeClaim with the capacity that it will have, if it is not launched yet."""
        if claim.get("status", {}).get("capacity"):
            return claim
        typed = decode(claim, NodeClaim)
        found = choose(typed.spec.requirements, typed.metadata.labels, self._settings.machines)
        capacity = {} if found is None else dict(found[0].capacity)
        return {**claim, "status": {"capacity": capacity}}


def _pool_names(claim: Raw) -> Iterable[str]:
    name = labels_of(claim).get(NODE_POOL)
    return (name,) if name else ()
