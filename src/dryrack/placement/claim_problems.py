"""
Claims that a pod cannot use, whatever nodes have: missing, being deleted, or shared by too many.

The scheduler tells it to the pod, and explanations say the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.expansion.pod_claims import GROUPS

if TYPE_CHECKING:
    from dryrack.kinds.core import Pod
    from dryrack.kinds.resource import ResourceClaim

# As many as the API lets reserve a claim.
RESERVATIONS_MAX = 256


def claim_not_found(name: str) -> str:
    """What is said of a pod that names a claim which is not there."""
    return f'resourceclaim "{name}" not found; create it'


def claim_problem(claim: ResourceClaim, pod: Pod) -> str:
    """What keeps the pod from using a claim that is there; nothing, if it can."""
    name = claim.metadata.name
    if claim.metadata.deletion_timestamp is not None:
        return f'resourceclaim "{name}" is being deleted'
    if _is_fully_reserved(claim, pod):
        message = f'resourceclaim in use: {RESERVATIONS_MAX} pods share "{name}", the most'
        return f"{message} that can; one of them has to leave"
    return ""


def _is_fully_reserved(claim: ResourceClaim, pod: Pod) -> bool:
    users = claim.status.reserved_for
    if len(users) < RESERVATIONS_MAX:
        return False
    group = pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group else None
    is_theirs = any(
        (each.api_group, each.resource, each.name) == (*GROUPS, group) for each in users
    )
    return not is_theirs and all(each.uid != pod.metadata.uid for each in users)
