"""
Stale claims: allocated for nodes that the pod cannot use, and used by no other pod.

Such an allocation is left from an interrupted attempt, or from a time when the pod fitted on the
node. As in kube-scheduler's PostFilter, one claim is deallocated and the pod is decided again. The
claim for the extended resources of a pod is deleted instead, because no other pod can use it.
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
    from dryrack.scheduler.demands import Demands
    from dryrack.scheduler.scheduler_cache import SchedulerCache


def find_stale_claim(wanted: Demands | Member, outcome: Unplaced | MemberRefused) -> str:
    """Return the first claim, by name, that keeps the pod from all other nodes, or ""."""
    if not outcome.is_kept_off_by_claims:
        return ""
    stale = [claim_name(each) for each in wanted.allocated if _is_stale(each, wanted.pod)]
    extended = wanted.extended.made if wanted.extended is not None else None
    return min(stale, default="" if extended is None else claim_name(extended))


def _is_stale(claim: ResourceClaim, pod: Pod) -> bool:
    allocation = claim.status.allocation
    assert allocation is not None, "a claim that is allocated has its allocation"
    is_unused = all(each.uid == pod.metadata.uid for each in claim.status.reserved_for)
    return is_unused and allocation.node_selector is not None


async def release_stale_claim(
    name: str, pod: Pod, *, cache: SchedulerCache, binder: Binder
) -> None:
    """Release the claim and raise `OvertakenError`, so that the pod is decided again."""
    claim = cache.find_claim(name)
    if claim is None:
        return
    await release_claim(claim, [pod.metadata.uid], cache=cache, binder=binder)
    raise OvertakenError(f"claim {name}: was allocated for other nodes")


async def release_claim(
    claim: Raw, uids: Iterable[str], *, cache: SchedulerCache, binder: Binder
) -> None:
    """Remove consumers of a claim; with the last of them its devices are released."""
    if is_for_extended_resources(claim):
        await binder.extended.discard(claim)
    else:
        await binder.release(claim, uids)
    cache.settle_claim("/".join(name_of(claim)), await binder.read_claim(claim))
