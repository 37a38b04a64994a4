"""
Hypothetical worlds for a decision about some pods.

An explanation of a pod shows the decision that the scheduler would make now, before other pending
pods. So other pending pods are removed, with their unallocated claims. But pods with a nominated
node that come first in the queue count as if they were on that node. A bound pod is explained as if
it were not bound, with all other pods in their places.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.allocation import claim_name
from dryrack.kinds.core import Pod
from dryrack.kinds.resource import ResourceClaim
from dryrack.placement.gangs.dialects import Flaw, gang_of, key_of
from dryrack.placement.plugins import profile_named
from dryrack.placement.plugins.workloads import is_backfill
from dryrack.placement.views.claims import node_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from dryrack.placement.whatif.world import Party, World

# Less than that of any priority.
_GANGS_FIRST = -(2**31) - 1


def with_only_pending(world: World, pods: Collection[str], claims: Collection[str] = ()) -> World:
    """Return the world where only these pods and claims are pending; by "namespace/name"."""
    nominated = _bind_nominated(world, pods)
    own = {
        claim_name(claim)
        for party in world.in_order()
        if party.pod is not None and party.pod.full_name in (*pods, *nominated)
        for claim in party.claims
    } | set(claims)

    def stays(each: Pod | ResourceClaim) -> bool:
        if isinstance(each, Pod):
            return bool(each.spec.node_name) or each.full_name in pods
        return each.status.allocation is not None or claim_name(each) in own

    return replace(world, parties=(*nominated.values(), *filter(stays, world.parties)))


def _bind_nominated(world: World, pods: Collection[str]) -> dict[str, Pod]:
    """Return other pods with a nominated node that come first, as if they were bound to it."""
    nodes = {each.metadata.name for each in world.nodes}
    asking = [each for each in world.pods if each.full_name in pods and not each.spec.node_name]
    nominated = [
        each
        for each in world.pods
        if each.status.nominated_node_name in nodes
        and not each.spec.node_name
        and each.full_name not in pods
    ]
    if not nominated or not asking or all(map(_is_backfill, asking)):
        return {}
    order = _queue_order(world, asking[0])
    return {
        each.full_name: changed(
            each, spec=changed(each.spec, node_name=each.status.nominated_node_name)
        )
        for each in nominated
        if _queue_order(world, each) <= order
    }


def _is_backfill(pod: Pod) -> bool:
    """Return True if the pod may use capacity that is reserved for others."""
    profile = profile_named(pod.spec.scheduler_name)
    return profile.has("Backfill") and is_backfill(pod.metadata.labels, pod.spec.priority)


def _queue_order(world: World, pod: Pod) -> tuple[int, str]:
    """
    Return the order of a pod in the queue: by priority, then by age.

    A waiting gang comes before all others, as in the scheduler after a minute.
    """
    key = key_of(pod)
    if key is not None:
        members = [each for each in world.pods if key_of(each) == key]
        gang = gang_of(key, members, world.definitions)
        if not isinstance(gang, Flaw):
            return _GANGS_FIRST, gang.created
    return -(pod.spec.priority or 0), pod.metadata.creation_timestamp or ""


def as_if_unbound(world: World, party: Party) -> World:
    """Return the world where the party's pod has no node, and its own claims no devices."""
    assert party.pod is not None, "a claim by itself is not bound"
    pod = changed(party.pod, spec=changed(party.pod.spec, node_name=""))
    own = {
        claim_name(claim)
        for claim in party.claims
        if all(user.uid == pod.metadata.uid for user in claim.status.reserved_for)
    }

    def before(each: Pod | ResourceClaim) -> Pod | ResourceClaim:
        if each is party.pod:
            return pod
        if isinstance(each, ResourceClaim) and claim_name(each) in own:
            return changed(each, status=changed(each.status, allocation=None, reserved_for=()))
        return each

    return replace(world, parties=tuple(map(before, world.parties)))


def restricted_to_nodes(world: World, nodes: Collection[str]) -> World:
    """Return the world with these nodes only, and with all objects that belong to no node."""

    def stays(each: Pod | ResourceClaim) -> bool:
        if isinstance(each, Pod):
            return each.spec.node_name in ("", *nodes)
        allocation = each.status.allocation
        return allocation is None or node_of(allocation.node_selector) in ("", *nodes)

    return replace(
        world,
        nodes=tuple(each for each in world.nodes if each.metadata.name in nodes),
        slices=tuple(e for e in world.slices if not e.spec.node_name or e.spec.node_name in nodes),
        parties=tuple(filter(stays, world.parties)),
    )
