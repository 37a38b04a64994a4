"""
Persistent volumes and their claims, as far as they restrict the nodes of pods.

In files nothing binds claims: a claim without a volume does not restrict its pods there, and they
do not wait for it. On a cluster such pods wait until the claim is bound. Claims of some classes are
bound when a scheduler has chosen a node for their pod: the class has the topologies for new
volumes, and an annotation of the claim has the chosen node.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from dryrack.kinds.selectors import parse_node_selector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.kinds.core import PersistentVolume, PersistentVolumeClaim, Pod

_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_CLASS = "volume.beta.kubernetes.io/storage-class"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


_UNBOUND = "pod has unbound immediate PersistentVolumeClaims"

ClaimKey = tuple[str, str]
"""The namespace and the name of a claim."""


class VolumeProblem(NamedTuple):
    """A claim for which no node can take its pod, with the message."""

    claim: ClaimKey
    message: str


class WaitingClass(NamedTuple):
    """A StorageClass whose claims are bound only when a pod uses them."""

    is_provisioned: bool = True
    """Whether volumes are provisioned for claims; otherwise they exist already."""
    topologies: tuple[tuple[tuple[str, frozenset[str]], ...], ...] = ()
    """Terms of labels and their values, of which a node has to match one; empty: all match."""

    def reaches(self, labels: Mapping[str, str]) -> bool:
        return not self.topologies or any(
            term and all(labels.get(key) in values for key, values in term)
            for term in self.topologies
        )


@dataclass(slots=True)
class Volumes:
    """The known volumes and claims; claims are by namespace and name."""

    # Whether this is a cluster, whose controllers bind claims, so that pods wait for them.
    are_stored: bool = False
    claims: dict[ClaimKey, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    waiting_classes: dict[str, WaitingClass] = field(default_factory=dict)
    # Classes with immediate binding, for files.
    immediate_classes: set[str] = field(default_factory=set)
    # Volumes that decisions have reserved for claims, until they are written.
    assumed: dict[str, ClaimKey] = field(default_factory=dict)

    def of(self, pod: Pod) -> Iterator[PersistentVolume]:
        """Yield the existing volumes that claims of the pod are bound to."""
        for key in claim_keys(pod):
            claim = self.claims.get(key)
            if claim is not None and claim.spec.volume_name in self.volumes:
                yield self.volumes[claim.spec.volume_name]

    def bound_to(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """Return the volume that a claim is bound to, if it is known."""
        return self.volumes.get(claim.spec.volume_name) if _is_bound(claim) else None

    def owner(self, volume: PersistentVolume) -> ClaimKey | None:
        """Return the claim that a volume is reserved for, or will be; None if it is free."""
        reference = volume.spec.claim_ref
        if reference is None:
            return self.assumed.get(volume.metadata.name)
        return reference.namespace, reference.name

    @staticmethod
    def is_kept(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        """Return True if it is reserved for this claim, not for another one with its name."""
        reference = volume.spec.claim_ref
        return reference is None or reference.uid in ("", claim.metadata.uid)

    @staticmethod
    def reaches(volume: PersistentVolume, labels: Mapping[str, str]) -> bool:
        """Return True if a node with these labels can use a volume; its name does not count."""
        affinity = volume.spec.node_affinity
        if affinity is None or not affinity.required:
            return True
        terms = parse_node_selector(affinity.required).terms
        return any(term.matches(labels, "") for term in terms)

    def waiting(self, pod: Pod) -> Iterator[tuple[PersistentVolumeClaim, WaitingClass]]:
        """Yield the claims of the pod that are bound when a node is chosen for it."""
        for key in claim_keys(pod) if self.are_stored and self.waiting_classes else ():
            claim = self.claims.get(key)
            if claim is not None and not claim.spec.volume_name:
                waits = self.waiting_classes.get(class_of(claim))
                if waits is not None:
                    yield claim, waits

    def unbound(self, storage_class: str) -> list[tuple[str, str]]:
        """Return the claims of a class that have no volume yet."""
        return [
            key
            for key, claim in self.claims.items()
            if not claim.spec.volume_name and class_of(claim) == storage_class
        ]

    def problem(self, pod: Pod) -> VolumeProblem | None:
        """Return the first claim for which no node can take the pod."""
        claims = [(key, self.claims.get(key)) for key in claim_keys(pod)]
        for key, claim in claims:
            message = self._check_claim(pod, key[1], claim)
            if message:
                return VolumeProblem(key, message)
        for key, claim in claims:
            name = claim.spec.volume_name if claim is not None else ""
            if self.are_stored and name and name not in self.volumes:
                return VolumeProblem(key, f'persistentvolume "{name}" not found')
        return None

    @staticmethod
    def _check_ephemeral(pod: Pod, name: str, claim: PersistentVolumeClaim | None) -> str:
        """Return the problem of a claim that is created for the pod."""
        if claim is None:
            maker = "waiting for ephemeral volume controller to create"
            return f'{maker} the persistentvolumeclaim "{name}"'
        owners = claim.metadata.owner_references
        if any(each.controller and each.uid == pod.metadata.uid for each in owners):
            return ""
        full = f"{pod.metadata.namespace}/{pod.metadata.name}"
        about = f"PVC {claim.metadata.namespace}/{name}"
        return f"{about} was not created for pod {full} (pod is not owner)"

    def _check_claim(self, pod: Pod, name: str, claim: PersistentVolumeClaim | None) -> str:
        """Return the problem of a claim; empty if it has none."""
        about = f'persistentvolumeclaim "{name}"'
        is_ephemeral = any(
            volume.ephemeral is not None and name == f"{pod.metadata.name}-{volume.name}"
            for volume in pod.spec.volumes
        )
        if is_ephemeral:
            if claim is None and not self.are_stored:
                return ""
            if problem := self._check_ephemeral(pod, name, claim):
                return problem
        if claim is None:
            return f"{about} not found"
        if claim.metadata.deletion_timestamp is not None:
            return f"{about} is being deleted"
        if not self.are_stored:
            # The status shows that a cluster has found no volume for the claim.
            is_pending = claim.status.phase == "Pending" and not claim.spec.volume_name
            is_immediate = class_of(claim) in ("", *self.immediate_classes)
            return _UNBOUND if is_pending and is_immediate else ""
        volume = claim.spec.volume_name
        if claim.status.phase == "Lost":
            return f'{about} bound to non-existent persistentvolume "{volume}"'
        is_waiting = not volume and class_of(claim) in self.waiting_classes
        if not is_waiting and not _is_bound(claim):
            return _UNBOUND
        return ""


def class_of(obj: PersistentVolumeClaim | PersistentVolume) -> str:
    """Return the storage class of a claim or a volume; "" if it has none."""
    return obj.metadata.annotations.get(_CLASS, obj.spec.storage_class_name or "")


def key_of(claim: PersistentVolumeClaim) -> ClaimKey:
    return claim.metadata.namespace, claim.metadata.name


def claim_keys(pod: Pod) -> Iterator[ClaimKey]:
    """Yield the PersistentVolumeClaims of a pod."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield pod.metadata.namespace, volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield pod.metadata.namespace, f"{pod.metadata.name}-{volume.name}"


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and _BIND_COMPLETED in claim.metadata.annotations
