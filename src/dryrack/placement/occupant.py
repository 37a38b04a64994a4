"""
An occupant: the part of a pod on a node that preemption, affinity and spreading use.

It is created when the pod is added to the node, and never changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dryrack.kinds.expansion.pod_claims import named_claim
from dryrack.placement.demand import demand_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dryrack.kinds.core import Affinity, Pod
    from dryrack.placement.demand import Amounts


class Occupant(msgspec.Struct, frozen=True, gc=False):
    """The amounts that a pod takes on its node, and its requirements about other pods."""

    # Namespace and name.
    name: tuple[str, str]
    amounts: Amounts
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    priority: int = 0
    # None if the pod has no pod affinity and no pod anti-affinity.
    affinity: Affinity | None = None
    # The start time in the status; before the kubelet sets it, the creation time.
    started: str = ""
    # As "namespace/name".
    claims: tuple[str, ...] = ()
    is_terminating: bool = False
    # CPU and memory as scores count them.
    non_zero: Amounts = msgspec.field(default_factory=dict)

    @staticmethod
    def of(
        pod: Pod, *, claims: Iterable[str] | None = None, amounts: Amounts | None = None
    ) -> Occupant:
        """Return the occupant for a pod; `claims` and `amounts` replace those of the pod."""
        metadata = pod.metadata
        affinity = pod.spec.affinity
        if affinity is not None and not (affinity.pod_affinity or affinity.pod_anti_affinity):
            affinity = None
        demand = demand_of(pod)
        return Occupant(
            (metadata.namespace, metadata.name),
            demand.amounts if amounts is None else amounts,
            metadata.labels,
            pod.spec.priority or 0,
            affinity,
            pod.status.start_time or metadata.creation_timestamp or "",
            _claims_of(pod) if claims is None else tuple(claims),
            metadata.deletion_timestamp is not None,
            demand.non_zero,
        )


def _claims_of(pod: Pod) -> tuple[str, ...]:
    names = [named_claim(pod, entry) for entry in pod.spec.resource_claims]
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        names.append(extended.resource_claim_name)
    return tuple({f"{pod.metadata.namespace}/{name}": None for name in names if name})
