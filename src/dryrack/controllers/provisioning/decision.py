"""
Which nodes to create for pods that fit on no node.

Pods are placed on the nodes that exist and on those that are being created, and for the rest the
planner chooses the cheapest new nodes (see `dryrack.planning`). NodePools are asked in the order of
their weight: a pool gets the pods that the pools before it could not serve.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.allocation import LiveAllocator
from dryrack.controllers.provisioning.offers import choices_of
from dryrack.kinds.quantity import Format, Quantity
from dryrack.placement import Occupant
from dryrack.planning import Limits, Reach, Workload, plan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from dryrack.controllers.provisioning.future_nodes import FutureNodes
    from dryrack.controllers.provisioning.offers import Offer
    from dryrack.kinds.provisioning import NodePool
    from dryrack.placement import Cluster
    from dryrack.planning import Case, NewNode, Plan, PlannedNode, PlannedPod

NO_POOL = "no NodePool is ready; see: kubectl get nodepools"
NO_TYPE = "no instance type meets its requirements"
# A batch is decided within a second, and not to the proof that no cheaper nodes exist.
QUICK = Limits(looks=600, steps=200, seeks_savings=False)
_BYTES = ("memory", "ephemeral-storage", "hugepages")


@dataclass(frozen=True, slots=True)
class PoolState:
    """A NodePool that can be used, and the resources of the nodes that it has."""

    pool: NodePool
    used: Mapping[str, Quantity] = field(default_factory=dict)
    """With their number, as `nodes`."""


@dataclass(frozen=True, slots=True)
class NeededNode:
    """A node to be created, with the pods for which it is."""

    offer: Offer
    pods: tuple[str, ...]
    requests: Mapping[str, str]
    drivers: tuple[str, ...]
    machines: tuple[str, ...]
    """The instance types that the pods fit on; more than one only if the pool has `minValues`."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The nodes to create, the pods that fit on other nodes, and those that fit nowhere."""

    nodes: tuple[NeededNode, ...] = ()
    nominated: Mapping[str, str] = field(default_factory=dict)
    """Pods that fit on a node that exists or is being created, and its name."""
    unplaceable: Mapping[str, str] = field(default_factory=dict)
    """Why no node is created for a pod."""
    is_free: bool = True
    """Whether the scheduler reaches these placements by itself, in the order of the pods."""


def decide(
    case: Case, pools: Iterable[PoolState], future: FutureNodes, limits: Limits = QUICK
) -> Decision:
    """Return the nodes for the workload of a case; its cluster has them afterwards."""
    left = case.workload
    why: defaultdict[str, list[str]] = defaultdict(list)
    nominated: dict[str, str] = {}
    needed: list[NeededNode] = []
    is_free = True
    choices = choices_of((member.pod for member in left.members), future.zones)
    ordered = sorted(pools, key=lambda each: (-each.pool.spec.weight, each.pool.metadata.name))
    turns: Sequence[PoolState | None] = ordered or (None,)
    for state in turns:
        if not left.members:
            break
        types, offers = ((), {}) if state is None else future.types_of(state.pool, choices)
        too_few = "" if state is None else _find_too_few(state.pool, offers.values())
        if too_few:
            types = ()
        result = plan(left, types, case.cluster, _limits(state, limits))
        is_free &= result.reach is Reach.ANY
        for each in result.existing:
            nominated |= {pod.member.name: each.name for pod in each.pods}
        for each in result.nodes:
            assert each.type is not None, "a new node has a type"
            needed.append(_describe_node(each, offers[each.type.name]))
        _settle(case.cluster, result)
        placed = {
            pod.member.name for each in (*result.existing, *result.nodes) for pod in each.pods
        }
        left = _without(left, placed)
        reasons = {each.pod: each.why for each in result.unplaceable}
        for member in left.members:
            if state is None:
                why[member.name].append(NO_POOL)
            else:
                reason = reasons.get(member.name, "") if types else too_few or NO_TYPE
                why[member.name].append(f"NodePool {state.pool.metadata.name}: {reason}")
    unplaceable = {member.name: "; ".join(why[member.name]) for member in left.members}
    unplaceable |= {each.pod: each.why for each in case.refused}
    return Decision(tuple(needed), nominated, unplaceable, is_free)


def _find_too_few(pool: NodePool, offers: Collection[Offer]) -> str:
    """Return the requirement whose `minValues` the offers do not reach, "" if there is none."""
    for each in pool.spec.template.spec.requirements:
        values = {offer.labels[each.key] for offer in offers if each.key in offer.labels}
        if each.min_values is not None and len(values) < each.min_values:
            number = "value" if len(values) == 1 else "values"
            return (
                f"its requirements allow {len(values)} {number} of {each.key}, and minValues is "
                f"{each.min_values}"
            )
    return ""


def _limits(state: PoolState | None, limits: Limits) -> Limits:
    """Return the limits with those of the pool: how much more it may have."""
    if state is None:
        return limits
    left = {
        name: max(0, limit.nanos - (state.used[name].nanos if name in state.used else 0))
        for name, limit in state.pool.spec.limits.items()
    }
    nodes = left.pop("nodes", None)
    most = None if nodes is None else nodes // 10**9
    if limits.nodes is not None:
        most = limits.nodes if most is None else min(most, limits.nodes)
    return replace(limits, nodes=most, amounts=left)


def _describe_node(each: PlannedNode, offer: Offer) -> NeededNode:
    return NeededNode(
        offer,
        tuple(pod.member.name for pod in each.pods),
        _requests(each.pods),
        tuple(sorted(_drivers(each.pods))),
        (offer.machine.name,),
    )


def _requests(pods: Sequence[PlannedPod]) -> dict[str, str]:
    totals: Counter[str] = Counter()
    for pod in pods:
        for name, amount in Occupant.of(pod.member.pod).amounts.items():
            if isinstance(name, str):
                totals[name] += amount
    return {
        name: str(
            Quantity.of(amount, Format.BINARY_SI if name.startswith(_BYTES) else Format.DECIMAL_SI)
        )
        for name, amount in sorted(totals.items())
    }


def _drivers(pods: Sequence[PlannedPod]) -> set[str]:
    """Return the drivers of the devices that are for these pods."""
    allocations = [each for pod in pods for each in pod.allocations.values()]
    return {result.driver for each in allocations for result in each.devices.results}


def put_node(cluster: Cluster, new: NewNode) -> None:
    """Add a node with its devices to a cluster."""
    name = new.node.metadata.name
    cluster.fleet.put(new.node)
    allocator = _allocator(cluster)
    for number, each in enumerate(new.slices):
        metadata = changed(each.metadata, name=f"{name}-{number}.future")
        cluster.fleet.reopen(allocator.put_slice(changed(each, metadata=metadata)))
    for number, member in enumerate(new.daemons):
        cluster.fleet.add_pod(("daemon", name, number), name, Occupant.of(member.pod))


def _allocator(cluster: Cluster) -> LiveAllocator:
    assert isinstance(cluster.allocator, LiveAllocator), "the cluster of a case has its own"
    return cluster.allocator


def _settle(cluster: Cluster, result: Plan) -> None:
    """Put the planned nodes and pods into the cluster."""
    for each in result.nodes:
        assert each.type is not None, "a new node has a type"
        put_node(cluster, each.type.make(each.name))
    allocator = _allocator(cluster)
    for each in (*result.existing, *result.nodes):
        for pod in each.pods:
            occupant = Occupant.of(pod.member.pod, claims=pod.member.claims)
            cluster.fleet.add_pod(pod.member.name, each.name, occupant)
            for claim, allocation in pod.allocations.items():
                cluster.fleet.reopen(allocator.set_allocation(claim, allocation))


def _without(workload: Workload, placed: Collection[str]) -> Workload:
    """Return the workload without the pods that have a node."""
    gangs = [
        (gang, tuple(each for each in own if each.name not in placed))
        for gang, own in workload.gangs
    ]
    return Workload(
        tuple(each for each in workload.members if each.name not in placed),
        tuple((gang, own) for gang, own in gangs if own),
    )
