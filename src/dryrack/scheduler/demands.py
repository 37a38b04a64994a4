"""What a pod brings to the scheduler: its claims as they are now, or what it still waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dryrack.kinds.expansion.extended_resources import asked_for
from dryrack.kinds.expansion.pod_claims import named_claim
from dryrack.placement import ExtendedResources, claim_not_found, claim_problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.core import Pod
    from dryrack.kinds.resource import DeviceClass, ResourceClaim
    from dryrack.placement import VolumeProblem


class Finds(Protocol):
    """Knows what is in the cluster."""

    def claim(self, namespace: str, name: str) -> ResourceClaim | None: ...

    def volume_problem(self, pod: Pod) -> VolumeProblem | None: ...

    def refusal_by_claim(self, problem: str) -> str: ...

    def is_promised(self, claim: str) -> bool: ...

    def extended_resources(self) -> Mapping[str, DeviceClass]: ...

    def made_for(self, pod: str) -> dict[str, Any] | None: ...


@dataclass(frozen=True, slots=True)
class Demands:
    """A pod with all its claims."""

    pod: Pod
    unallocated: tuple[ResourceClaim, ...]
    allocated: tuple[ResourceClaim, ...]
    # What it asks for beside them by extended resources.
    extended: ExtendedResources | None

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """Namespace and name of every claim."""
        claims = (*self.unallocated, *self.allocated)
        return tuple((claim.metadata.namespace, claim.metadata.name) for claim in claims)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A claim is not to be had; without a name it only has to be made, and that is a moment."""

    claim: str = ""
    """Namespace and name; see `volume_claim_key` for one of another kind."""
    message: str = ""
    is_gated: bool = False
    """Whether kube-scheduler's PreEnqueue holds the pod back: then nothing is reported."""


def volume_claim_key(namespace: str, name: str) -> str:
    """What stands for a PersistentVolumeClaim among the claims that pods wait for."""
    return f"persistentvolumeclaims/{namespace}/{name}"


def demands(pod: Pod, cluster: Finds) -> Demands | Waiting:
    """The pod's claims, each found; or the first that is not to be had."""
    problem = cluster.volume_problem(pod)
    if problem is not None:
        return Waiting(volume_claim_key(*problem.claim), problem.message)
    asks_for_extended = bool(asked_for(pod))
    made = _made_for(pod, cluster) if asks_for_extended else None
    names = [named_claim(pod, reference) for reference in pod.spec.resource_claims]
    found: dict[str, ResourceClaim] = {}
    for name in (*names, *(() if made is None else (made,))):
        if name is None:
            return Waiting()
        if not name:
            continue
        claim = _usable(pod, name, cluster)
        if isinstance(claim, Waiting):
            return claim
        found[name] = claim
    claims = tuple(found.values())
    return Demands(
        pod,
        tuple(claim for claim in claims if claim.status.allocation is None),
        tuple(claim for claim in claims if claim.status.allocation is not None),
        _extended(pod, cluster, found.get(made or "")) if asks_for_extended else None,
    )


def _usable(pod: Pod, name: str, cluster: Finds) -> ResourceClaim | Waiting:
    """Return the claim of that name, or what keeps the pod from using it."""
    claim = cluster.claim(pod.metadata.namespace, name)
    full = f"{pod.metadata.namespace}/{name}"
    if claim is None:
        return Waiting(full, claim_not_found(name), is_gated=True)
    problem = claim_problem(claim, pod)
    if problem:
        is_gated = claim.metadata.deletion_timestamp is not None
        return Waiting(full, problem if is_gated else cluster.refusal_by_claim(problem), is_gated)
    if cluster.is_promised(full):
        # Another pod is about to have it allocated, which is known in a moment.
        return Waiting(full)
    return claim


def _made_for(pod: Pod, cluster: Finds) -> str | None:
    """The claim for extended resources that an attempt before this one has made."""
    made = cluster.made_for(pod.metadata.uid)
    return None if made is None else str(made["metadata"]["name"])


def _extended(pod: Pod, cluster: Finds, made: ResourceClaim | None) -> ExtendedResources | None:
    name = f"{pod.metadata.name}-extended-resources"
    if cluster.claim(pod.metadata.namespace, name) is not None:
        # Somebody has called a claim so; none can have a name that ends in a hyphen.
        name = f"{name}-"
    return ExtendedResources.of(pod, cluster.extended_resources(), name=name, made=made)
