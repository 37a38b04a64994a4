"""
Claims that a pod cannot use on any node: missing, being deleted, or shared by too many pods.

Explanations name each of them. The scheduler reports only the last: as in kube-scheduler, a pod
whose claim is missing or being deleted does not enter the queue, and gets no condition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.expansion.pod_claims import GROUPS

if TYPE_CHECKING:
    from dryrack.kinds.core import Pod
    from dryrack.kinds.resource import ResourceClaim

# As many as the API lets reserve a claim.
RESERVATIONS_MAX = 256
# What kube-scheduler says of a claim that so many pods have reserved.
IN_USE = "resourceclaim in use"


def claim_not_found(name: str) -> str:
    """Return why a pod waits that names a claim which does not exist."""
    return f'resourceclaim "{name}" not found; create it'


def claim_problem(claim: ResourceClaim, pod: Pod) -> str:
    """Return what keeps the pod from using a claim that exists; empty if nothing does."""
    name = claim.metadata.name
    if claim.metadata.deletion_timestamp is not None:
        return f'resourceclaim "{name}" is being deleted'
    if _is_fully_reserved(claim, pod):
        shared = f'{RESERVATIONS_MAX} pods share "{name}", as many as the API allows'
        return f"{IN_USE}. {shared}; delete one of them"
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
