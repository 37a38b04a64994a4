"""
The world as it is now, for a decision about some pods alone.

On a cluster others wait, too; whoever asks about a pod asks what would become of it now, and not
after them. So pods without a node that are not asked about are left out, with what they alone have
not got yet. A pod that is placed is asked about as if it were not, with all others where they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.allocation import claim_name
from dryrack.kinds.core import Pod
from dryrack.kinds.resource import ResourceClaim
from dryrack.placement.views.claims import node_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from dryrack.placement.whatif.world import Party, World


def as_now_for(world: World, pods: Collection[str], claims: Collection[str] = ()) -> World:
    """Only these pods, and claims that no pod uses, have yet to be served; by "ns/name"."""
    own = {
        claim_name(claim)
        for party in world.in_order()
        if party.pod is not None and _name(party.pod) in pods
        for claim in party.claims
    } | set(claims)

    def stays(each: Pod | ResourceClaim) -> bool:
        if isinstance(each, Pod):
            return bool(each.spec.node_name) or _name(each) in pods
        return each.status.allocation is not None or claim_name(each) in own

    return replace(world, parties=tuple(filter(stays, world.parties)))


def as_before(world: World, party: Party) -> World:
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


def near(world: World, nodes: Collection[str]) -> World:
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


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
