"""
The workload and the cluster of a world: the pods that a plan is for, and what exists already.

A plan from zero is for all pods, wherever they are, and nothing exists. A plan beside the existing
nodes is for the pending pods; bound pods and allocated claims stay. Pods of DaemonSets belong to
their node: a plan never moves them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.allocation import Features, LiveAllocator, apply_taint_rules, claim_name
from dryrack.kinds.core import Pod, PodSpec, Toleration
from dryrack.kinds.expansion.virtual_nodes import with_default_size
from dryrack.kinds.meta import ObjectMeta
from dryrack.placement import (
    Cluster,
    Flaw,
    Fleet,
    Member,
    Membership,
    Occupant,
    PodConstraints,
    World,
    gang_of,
    membership,
)
from dryrack.planning.model import Unplaceable, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.base.ports import Chance
    from dryrack.kinds.releases import Release
    from dryrack.kinds.resource import ResourceClaim
    from dryrack.placement import Gang, GangKey, Party

_ANYTHING = (Toleration(operator="Exists"),)
DAEMON_SET = "DaemonSet"
# Owners whose pods stay on their node.
_OF_NODES = (DAEMON_SET, "Node")


@dataclass(frozen=True, slots=True)
class Case:
    """The input of a plan."""

    workload: Workload
    cluster: Cluster
    # Pods that cannot be placed anywhere, because something is missing or wrong.
    refused: tuple[Unplaceable, ...] = ()

    @property
    def first_pod(self) -> Pod:
        """Return the first pod of the workload, whose scheduler is that of all."""
        members = self.workload.members
        return members[0].pod if members else Pod()


def from_zero(world: World) -> World:
    """Return the world without nodes, in which no pod has a node and no claim has devices."""

    def unbound(each: Pod | ResourceClaim) -> Pod | ResourceClaim:
        if isinstance(each, Pod):
            return changed(each, spec=changed(each.spec, node_name=""))
        if each.status.allocation is None:
            return each
        return changed(each, status=changed(each.status, allocation=None, reserved_for=()))

    parties = (each for each in world.parties if not (isinstance(each, Pod) and is_of_node(each)))
    return replace(world, nodes=(), slices=(), parties=tuple(map(unbound, parties)))


def is_of_node(pod: Pod) -> bool:
    """Return True if the pod belongs to its node, as those of DaemonSets do."""
    return any(
        owner.controller and owner.kind in _OF_NODES for owner in pod.metadata.owner_references
    )


def case_of(
    world: World, *, release: Release, features: Features | None = None, chance: Chance
) -> Case:
    """Return the pending pods of the world, and its nodes with the pods and devices on them."""
    cluster = _cluster(world, release=release, features=features, chance=chance)
    members: list[Member] = []
    refused: list[Unplaceable] = []
    gangs: defaultdict[GangKey, list[Member]] = defaultdict(list)
    for party in world.in_order():
        if party.is_bound or (party.pod is not None and is_of_node(party.pod)):
            continue
        why = _mistake(party)
        member = member_of(party)
        if why:
            refused.append(Unplaceable(member.name, why))
        elif party.pod is not None or member.wanted:
            members.append(member)
            if isinstance(party.membership, Membership):
                gangs[party.membership.key].append(member)
    known: list[tuple[Gang, tuple[Member, ...]]] = []
    pods = world.pods
    for key, own in gangs.items():
        names = {member.name for member in own}
        everyone = [
            p for p in pods if p.full_name in names or (p.spec.node_name and _is_in(p, key, world))
        ]
        gang = gang_of(key, everyone, world.definitions)
        flaw = gang.message if isinstance(gang, Flaw) else gang.too_few
        if flaw:
            refused += [Unplaceable(name, flaw) for name in names]
            members = [each for each in members if each.name not in names]
        elif not isinstance(gang, Flaw):
            known.append((gang, tuple(own)))
    return Case(Workload(tuple(members), tuple(known)), cluster, tuple(refused))


def _is_in(pod: Pod, key: GangKey, world: World) -> bool:
    in_gang = membership(pod)
    return isinstance(in_gang, Membership) and in_gang.key == key


def _mistake(party: Party) -> str:
    """Return why no node can take the pod, whatever it has; empty if a node may."""
    if party.refusal is not None:
        return f"{party.refusal.fact}; {party.refusal.remedy}"
    if party.missing:
        return "; ".join(f"{each.fact}; {each.remedy}" for each in party.missing)
    return party.membership.message if isinstance(party.membership, Flaw) else ""


def member_of(party: Party) -> Member:
    """Return the pod with its claims; a claim by itself is a pod that requests nothing else."""
    pod = party.pod
    if pod is None:
        metadata = party.claims[0].metadata
        named = ObjectMeta(name=metadata.name, namespace=metadata.namespace)
        pod = Pod(metadata=named, spec=PodSpec(tolerations=_ANYTHING))
    own = [
        claim
        for claim in party.claims
        if party.extended is None or claim is not party.extended.claim
    ]
    return Member(
        pod,
        tuple(each for each in own if each.status.allocation is None),
        tuple(each for each in own if each.status.allocation is not None),
        party.extended,
    )


def _cluster(
    world: World, *, release: Release, features: Features | None, chance: Chance
) -> Cluster:
    features = features or Features.defaults(release)
    allocator = LiveAllocator(features=features, release=release, chance=chance)
    for each in world.classes:
        allocator.put_class(each)
    slices = world.slices
    if features.device_taints:
        slices = apply_taint_rules(slices, world.taint_rules)
    for number, slice_ in enumerate(slices):
        # Slices without a name yet are different slices.
        metadata = slice_.metadata
        name = metadata.name or f"unnamed-{number}"
        allocator.put_slice(changed(slice_, metadata=changed(metadata, name=name)))
    fleet = Fleet()
    cluster = Cluster(fleet, allocator)
    for node in world.nodes:
        fleet.put(with_default_size(node))
    world.context.load_into(fleet)
    for claim in world.claims:
        if claim.status.allocation is not None:
            allocator.set_allocation(claim_name(claim), claim.status.allocation)
    for pod in world.pods:
        if pod.spec.node_name:
            fleet.add_pod(pod.full_name, pod.spec.node_name, Occupant.of(pod))
    return cluster


def daemons_of(world: World) -> dict[str, tuple[Member, ...]]:
    """Return the pods of DaemonSets by the node that they were made for."""
    daemons: defaultdict[str, list[Member]] = defaultdict(list)
    for party in _daemons(world):
        assert party.pod is not None, "a claim by itself has no DaemonSet"
        node = party.pod.spec.node_name or PodConstraints.of(party.pod).only_node
        daemons[node].append(member_of(party))
    return {node: tuple(members) for node, members in daemons.items()}


def one_of_each_daemon_set(world: World) -> tuple[Member, ...]:
    """Return one pod of each DaemonSet, whose other pods are like it."""
    pods: dict[tuple[str, str], Member] = {}
    for party in _daemons(world):
        assert party.pod is not None, "a claim by itself has no DaemonSet"
        for owner in party.pod.metadata.owner_references:
            if owner.controller and owner.kind == DAEMON_SET:
                pods.setdefault((party.pod.metadata.namespace, owner.name), member_of(party))
    return tuple(pods.values())


def _daemons(world: World) -> Iterator[Party]:
    for party in world.in_order():
        if party.pod is not None and is_of_node(party.pod) and not _mistake(party):
            yield party


def move_daemon(daemon: Member, node: str) -> Member:
    """Return a pod of a DaemonSet as it is on another node, with its own claims."""
    pod = daemon.pod
    affinity = pod.spec.affinity
    if affinity is not None:
        affinity = changed(affinity, node_affinity=None)
    metadata = changed(pod.metadata, name=f"{pod.metadata.name}-on-{node}")
    own = changed(pod, metadata=metadata, spec=changed(pod.spec, affinity=affinity, node_name=""))
    claims = tuple(
        changed(
            each,
            metadata=changed(each.metadata, name=f"{each.metadata.name}-on-{node}"),
            status=changed(each.status, allocation=None, reserved_for=()),
        )
        for each in (*daemon.wanted, *daemon.allocated)
    )
    return Member(own, claims, (), daemon.extended)
