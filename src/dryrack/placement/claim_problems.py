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

# The API's maximum of reservations for a claim.
RESERVATIONS_MAX = 256
# kube-scheduler's message for a claim with the maximum of reservations.
IN_USE = "resourceclaim in use"


def claim_not_found(name: str) -> str:
    """Return why a pod waits that names a claim which does not exist."""
    return f'resourceclaim "{name}" not found; create it'


def claim_problem(claim: ResourceClaim, pod: Pod) -> str:
    """Return what keeps the pod from using a claim that exists; empty if nothing does."""
    name = claim.metadata.name
    if claim.metadata.deletion_timestamp is not None:
        return f'resourceclaim "{name}" is being deleted'
    users = claim.status.reserved_for
    if len(users) < RESERVATIONS_MAX:
        return ""
    group = pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group else None
    if any(
        each.uid == pod.metadata.uid
        or (each.api_group, each.resource, each.name) == (*GROUPS, group)
        for each in users
    ):
        return ""
    shared = f'{RESERVATIONS_MAX} pods share "{name}", as many as the API allows'
    return f"{IN_USE}. {shared}; delete one of them"
