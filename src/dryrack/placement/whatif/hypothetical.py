"""
The world as it is now, for a decision about some pods alone.

On a cluster others wait, too; whoever asks about a pod asks what would become of it now, and not
after them. So pods without a node that are not asked about are left out, with what they alone have
not got yet; but those for which a scheduler keeps room on a node (`nominatedNodeName`), and which
come before those that are asked about, count as if they were there. A pod that is placed is asked
about as if it were not, with all others where they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.allocation import claim_name
from dryrack.kinds.core import Pod
from dryrack.kinds.resource import ResourceClaim
from dryrack.placement.gangs.dialects import Flaw, Membership, gang_of, membership
from dryrack.placement.plugins import profile_named
from dryrack.placement.plugins.workloads import is_backfill
from dryrack.placement.views.claims import node_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from dryrack.placement.gangs.dialects import GangKey
    from dryrack.placement.whatif.world import Party, World

# Less than that of any priority.
_GANGS_FIRST = -(2**31) - 1


def with_only_pending(world: World, pods: Collection[str], claims: Collection[str] = ()) -> World:
    """Only these pods, and claims that no pod uses, have yet to be served; by "ns/name"."""
    kept = _kept_from(world, pods)
    own = {
        claim_name(claim)
        for party in world.in_order()
        if party.pod is not None and party.pod.full_name in (*pods, *kept)
        for claim in party.claims
    } | set(claims)

    def stays(each: Pod | ResourceClaim) -> bool:
        if isinstance(each, Pod):
            return bool(each.spec.node_name) or each.full_name in pods
        return each.status.allocation is not None or claim_name(each) in own

    return replace(world, parties=(*kept.values(), *filter(stays, world.parties)))


def _kept_from(world: World, pods: Collection[str]) -> dict[str, Pod]:
    """Others for which room is kept, by name, as if they were where it is."""
    nodes = {each.metadata.name for each in world.nodes}
    asking = [each for each in world.pods if each.full_name in pods and not each.spec.node_name]
    nominated = [
        each
        for each in world.pods
        if each.status.nominated_node_name in nodes
        and not each.spec.node_name
        and each.full_name not in pods
    ]
    if not nominated or not asking or all(map(_may_go_again, asking)):
        return {}
    order = _order(world, asking[0])
    return {
        each.full_name: changed(
            each, spec=changed(each.spec, node_name=each.status.nominated_node_name)
        )
        for each in nominated
        if _order(world, each) <= order
    }


def _may_go_again(pod: Pod) -> bool:
    """Backfill may use what is kept for others."""
    profile = profile_named(pod.spec.scheduler_name)
    return profile.has("Backfill") and is_backfill(pod.metadata.labels, pod.spec.priority)


def _order(world: World, pod: Pod) -> tuple[int, str]:
    """
    As a pod comes in the queue: by priority, then by age.

    A gang that waits comes before all others, as the scheduler has it after a minute.
    """
    said = membership(pod)
    if isinstance(said, Membership):
        members = [each for each in world.pods if _key(membership(each)) == said.key]
        gang = gang_of(said.key, members, world.definitions)
        if not isinstance(gang, Flaw):
            return _GANGS_FIRST, gang.created
    return -(pod.spec.priority or 0), pod.metadata.creation_timestamp or ""


def _key(said: Membership | Flaw | None) -> GangKey | None:
    return said.key if isinstance(said, Membership) else None


def as_if_unbound(world: World, party: Party) -> World:
    """The pod of the party has no node yet, and claims that only it uses have no devices."""
    assert party.pod is not None, "a claim by itself is nowhere"
    pod = changed(party.pod, spec=changed(party.pod.spec, node_name=""))
    own = {claim_name(each) for each in party.claims if _is_only_user(each, pod)}

    def before(each: Pod | ResourceClaim) -> Pod | ResourceClaim:
        if each is party.pod:
            return pod
        if isinstance(each, ResourceClaim) and claim_name(each) in own:
            return changed(each, status=changed(each.status, allocation=None, reserved_for=()))
        return each

    return replace(world, parties=tuple(map(before, world.parties)))


def restricted_to_nodes(world: World, nodes: Collection[str]) -> World:
    """These nodes alone, with what is on them, and with all that is on no node in particular."""

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


def _is_only_user(claim: ResourceClaim, pod: Pod) -> bool:
    return all(each.uid == pod.metadata.uid for each in claim.status.reserved_for)
