"""
Claims in the way of their own pod: allocated for nodes that do not do, and used by nobody else.

Such an allocation is left from an attempt that ended in the middle, or from a time when the node
did. As kube-scheduler's PostFilter: one claim is deallocated and the pod is decided anew. A claim
that was made for the pod's extended resources is deleted instead, for nobody else can use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.allocation import claim_name
from dryrack.client.informer import name_of
from dryrack.scheduler.binding import OvertakenError
from dryrack.scheduler.claims.extended_resources import is_for_extended_resources

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.kinds.core import Pod
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import ResourceClaim
    from dryrack.placement import Member, MemberRefused, Unplaced
    from dryrack.scheduler.binding import Binder
    from dryrack.scheduler.cluster_view import View
    from dryrack.scheduler.demands import Demands


def in_the_way(wanted: Demands | Member, outcome: Unplaced | MemberRefused) -> str:
    """The first claim, by name, without which the pod might find a node; "" if there is none."""
    if not outcome.is_kept_off_by_claims:
        return ""
    unused = [claim_name(each) for each in wanted.allocated if _is_stale(each, wanted.pod)]
    made = wanted.extended.made if wanted.extended is not None else None
    return min(unused, default="" if made is None else claim_name(made))


def _is_stale(claim: ResourceClaim, pod: Pod) -> bool:
    allocation = claim.status.allocation
    assert allocation is not None, "a claim that is allocated has its allocation"
    is_unused = all(each.uid == pod.metadata.uid for each in claim.status.reserved_for)
    return is_unused and allocation.node_selector is not None


async def free(name: str, pod: Pod, *, view: View, binder: Binder) -> None:
    """Takes the claim out of the way; raises, because the pod is to be decided anew."""
    claim = view.known(name)
    if claim is None:
        return
    await let_go(claim, [pod.metadata.uid], view=view, binder=binder)
    raise OvertakenError(f"claim {name}: was allocated for other nodes")


async def let_go(claim: Raw, users: Iterable[str], *, view: View, binder: Binder) -> None:
    """These have it no more; with the last of them its devices are free."""
    if is_for_extended_resources(claim):
        await binder.extended.discard(claim)
    else:
        await binder.release(claim, users)
    view.settle("/".join(name_of(claim)), await binder.now(claim))
