"""What a pod brings to the scheduler: its claims as they are now, or what it still waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.kinds.core import Pod, PodResourceClaim
    from dryrack.kinds.resource import ResourceClaim


@dataclass(frozen=True, slots=True)
class Demands:
    """A pod with all its claims."""

    pod: Pod
    unallocated: tuple[ResourceClaim, ...]
    allocated: tuple[ResourceClaim, ...]

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """Namespace and name of every claim."""
        claims = (*self.unallocated, *self.allocated)
        return tuple((claim.metadata.namespace, claim.metadata.name) for claim in claims)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A claim is not there; without a name it only has to be made, and that is a moment."""

    claim: str = ""
    """Namespace and name."""
    message: str = ""


def demands(pod: Pod, find: Callable[[str, str], ResourceClaim | None]) -> Demands | Waiting:
    """The pod's claims, each found; or the first that is not to be had."""
    found: dict[str, ResourceClaim] = {}
    for reference in pod.spec.resource_claims:
        name = _claim_name(pod, reference)
        if name is None:
            return Waiting()
        if not name:
            continue
        claim = find(pod.metadata.namespace, name)
        full = f"{pod.metadata.namespace}/{name}"
        if claim is None:
            return Waiting(full, f'resourceclaim "{name}" not found')
        if claim.metadata.deletion_timestamp is not None:
            return Waiting(full, f'resourceclaim "{name}" is being deleted')
        found[name] = claim
    claims = tuple(found.values())
    return Demands(
        pod,
        tuple(claim for claim in claims if claim.status.allocation is None),
        tuple(claim for claim in claims if claim.status.allocation is not None),
    )


def _claim_name(pod: Pod, reference: PodResourceClaim) -> str | None:
    """The claim's name; None if it is yet to be made, empty if none is needed."""
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name or ""
    return None
