"""The demands of a pod: its claims as they are now, or the object that it still waits for."""

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


class ClaimSource(Protocol):
    """The part of `SchedulerCache` that is read for the demands of a pod."""

    def claim(self, namespace: str, name: str) -> ResourceClaim | None: ...

    def volume_problem(self, pod: Pod) -> VolumeProblem | None: ...

    def refusal_by_claim(self, problem: str) -> str: ...

    def is_assumed(self, claim: str) -> bool: ...

    def extended_resources(self) -> Mapping[str, DeviceClass]: ...

    def find_extended_claim(self, pod: str) -> dict[str, Any] | None: ...


@dataclass(frozen=True, slots=True)
class Demands:
    """A pod with all its claims."""

    pod: Pod
    unallocated: tuple[ResourceClaim, ...]
    allocated: tuple[ResourceClaim, ...]
    # The extended resources that DeviceClasses serve.
    extended: ExtendedResources | None

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """The namespace and name of every claim."""
        claims = (*self.unallocated, *self.allocated)
        return tuple((claim.metadata.namespace, claim.metadata.name) for claim in claims)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A claim cannot be used yet; without a name it has yet to be created, within moments."""

    claim: str = ""
    """The namespace and name; for a PersistentVolumeClaim see `volume_claim_key`."""
    message: str = ""
    is_gated: bool = False
    """Whether kube-scheduler's PreEnqueue holds the pod back: then nothing is reported."""


def volume_claim_key(namespace: str, name: str) -> str:
    """Return the key of a PersistentVolumeClaim among the claims that pods wait for."""
    return f"persistentvolumeclaims/{namespace}/{name}"


def collect_demands(pod: Pod, cluster: ClaimSource) -> Demands | Waiting:
    """Return the pod's claims, or the first claim that cannot be used yet."""
    problem = cluster.volume_problem(pod)
    if problem is not None:
        return Waiting(volume_claim_key(*problem.claim), problem.message)
    names = [named_claim(pod, reference) for reference in pod.spec.resource_claims]
    needs_extended = bool(asked_for(pod))
    # An attempt before may have created the claim for extended resources.
    own = cluster.find_extended_claim(pod.metadata.uid) if needs_extended else None
    own_name = "" if own is None else str(own["metadata"]["name"])
    if own_name:
        names.append(own_name)
    claims: dict[str, ResourceClaim] = {}
    for name in names:
        if name is None:
            return Waiting()
        if not name:
            continue
        claim = _find_usable_claim(pod, name, cluster)
        if isinstance(claim, Waiting):
            return claim
        claims[name] = claim
    extended = None
    if needs_extended:
        new_name = f"{pod.metadata.name}-extended-resources"
        if cluster.claim(pod.metadata.namespace, new_name) is not None:
            # Another claim has this name; no claim can have a name that ends in a hyphen.
            new_name = f"{new_name}-"
        classes = cluster.extended_resources()
        extended = ExtendedResources.of(pod, classes, name=new_name, made=claims.get(own_name))
    return Demands(
        pod,
        tuple(claim for claim in claims.values() if claim.status.allocation is None),
        tuple(claim for claim in claims.values() if claim.status.allocation is not None),
        extended,
    )


def _find_usable_claim(pod: Pod, name: str, cluster: ClaimSource) -> ResourceClaim | Waiting:
    """Return the claim of that name, or the reason why the pod cannot use it."""
    claim = cluster.claim(pod.metadata.namespace, name)
    full = f"{pod.metadata.namespace}/{name}"
    if claim is None:
        return Waiting(full, claim_not_found(name), is_gated=True)
    problem = claim_problem(claim, pod)
    if problem:
        is_gated = claim.metadata.deletion_timestamp is not None
        return Waiting(full, problem if is_gated else cluster.refusal_by_claim(problem), is_gated)
    if cluster.is_assumed(full):
        # The decision for another pod allocates the claim; the result is known in a moment.
        return Waiting(full)
    return claim
