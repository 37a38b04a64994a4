"""
Persistent volumes and their claims, as far as they tie pods to nodes.

In files nothing binds claims: there one that names no volume ties its pods to nothing, and they do
not wait until it has one. On a cluster such pods have to wait until it is bound. Claims of some
classes are bound when a scheduler has chosen a node for their pod: the class says on which nodes a
volume can be made, and a claim remembers a node that was chosen.
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
    """Why no node can take a pod: the claim, by namespace and name, and what is so."""

    claim: ClaimKey
    message: str


class WaitingClass(NamedTuple):
    """A StorageClass whose claims are bound only when a pod uses them."""

    is_provisioned: bool = True
    """Whether volumes are made for claims; else somebody has made them, each on its node."""
    topologies: tuple[tuple[tuple[str, frozenset[str]], ...], ...] = ()
    """Terms of labels and their values, of which a node has to meet one; none: all nodes do."""

    def reaches(self, labels: Mapping[str, str]) -> bool:
        return not self.topologies or any(
            term and all(labels.get(key) in values for key, values in term)
            for term in self.topologies
        )


@dataclass(slots=True)
class Volumes:
    """What is known of volumes; claims are by namespace and name."""

    # Whether this is a cluster, whose controllers bind claims: pods wait for that.
    are_stored: bool = False
    claims: dict[ClaimKey, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    waiting_classes: dict[str, WaitingClass] = field(default_factory=dict)
    # Classes that do not wait, where it is not known of a cluster that it binds claims.
    immediate_classes: set[str] = field(default_factory=set)
    # For whom volumes are kept by decisions that are being written, by the names of the volumes.
    assumed: dict[str, ClaimKey] = field(default_factory=dict)

    def of(self, pod: Pod) -> Iterator[PersistentVolume]:
        """The volumes that claims of the pod are bound to, as far as they are there."""
        for key in claim_keys(pod):
            claim = self.claims.get(key)
            if claim is not None and claim.spec.volume_name in self.volumes:
                yield self.volumes[claim.spec.volume_name]

    def bound_to(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """The volume that a claim has for good, if it is known."""
        return self.volumes.get(claim.spec.volume_name) if _is_bound(claim) else None

    def owner(self, volume: PersistentVolume) -> ClaimKey | None:
        """The claim that a volume is kept for, or will be; None if it is free."""
        reference = volume.spec.claim_ref
        if reference is None:
            return self.assumed.get(volume.metadata.name)
        return reference.namespace, reference.name

    @staticmethod
    def is_kept(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        """Whether it is for that very claim, not for another of its name."""
        reference = volume.spec.claim_ref
        return reference is None or reference.uid in ("", claim.metadata.uid)

    @staticmethod
    def reaches(volume: PersistentVolume, labels: Mapping[str, str]) -> bool:
        """Whether a volume can be used on a node with these labels; its name is not looked at."""
        affinity = volume.spec.node_affinity
        if affinity is None or not affinity.required:
            return True
        terms = parse_node_selector(affinity.required).terms
        return any(term.matches(labels, "") for term in terms)

    def waiting(self, pod: Pod) -> Iterator[tuple[PersistentVolumeClaim, WaitingClass]]:
        """The claims of the pod that are bound when a node is chosen for it."""
        for key in claim_keys(pod) if self.are_stored and self.waiting_classes else ():
            claim = self.claims.get(key)
            if claim is not None and not claim.spec.volume_name:
                waits = self.waiting_classes.get(class_of(claim))
                if waits is not None:
                    yield claim, waits

    def unbound(self, storage_class: str) -> list[tuple[str, str]]:
        """The claims of a class that have no volume yet."""
        return [
            key
            for key, claim in self.claims.items()
            if not claim.spec.volume_name and class_of(claim) == storage_class
        ]

    def problem(self, pod: Pod) -> VolumeProblem | None:
        """The first of the pod's claims that keeps it from every node."""
        found = [(key, self.claims.get(key)) for key in claim_keys(pod)]
        for why in (self._unusable, self._volume_missing):
            for key, claim in found:
                message = why(pod, key[1], claim)
                if message:
                    return VolumeProblem(key, message)
        return None

    @staticmethod
    def _unmade(pod: Pod, name: str, claim: PersistentVolumeClaim | None) -> str:
        """Of a claim that is made for the pod alone."""
        if claim is None:
            maker = "waiting for ephemeral volume controller to create"
            return f'{maker} the persistentvolumeclaim "{name}"'
        owners = claim.metadata.owner_references
        if any(each.controller and each.uid == pod.metadata.uid for each in owners):
            return ""
        full = f"{pod.metadata.namespace}/{pod.metadata.name}"
        about = f"PVC {claim.metadata.namespace}/{name}"
        return f"{about} was not created for pod {full} (pod is not owner)"

    def _unusable(self, pod: Pod, name: str, claim: PersistentVolumeClaim | None) -> str:
        about = f'persistentvolumeclaim "{name}"'
        if _is_made_for(name, pod):
            if claim is None and not self.are_stored:
                return ""
            if problem := self._unmade(pod, name, claim):
                return problem
        if claim is None:
            return f"{about} not found"
        if claim.metadata.deletion_timestamp is not None:
            return f"{about} is being deleted"
        if not self.are_stored:
            return _UNBOUND if self._is_left_pending(claim) else ""
        volume = claim.spec.volume_name
        if claim.status.phase == "Lost":
            return f'{about} bound to non-existent persistentvolume "{volume}"'
        is_waiting = not volume and class_of(claim) in self.waiting_classes
        if not is_waiting and not _is_bound(claim):
            return _UNBOUND
        return ""

    def _is_left_pending(self, claim: PersistentVolumeClaim) -> bool:
        """Whether a cluster has seen a claim, as it says, and found no volume for it."""
        is_awaited = claim.status.phase == "Pending" and not claim.spec.volume_name
        return is_awaited and class_of(claim) in ("", *self.immediate_classes)

    def _volume_missing(self, _pod: Pod, _name: str, claim: PersistentVolumeClaim | None) -> str:
        if not self.are_stored or claim is None or not claim.spec.volume_name:
            return ""
        if claim.spec.volume_name in self.volumes:
            return ""
        return f'persistentvolume "{claim.spec.volume_name}" not found'


def class_of(obj: PersistentVolumeClaim | PersistentVolume) -> str:
    """The storage class of a claim or a volume; "" if it has none."""
    return obj.metadata.annotations.get(_CLASS, obj.spec.storage_class_name or "")


def key_of(claim: PersistentVolumeClaim) -> ClaimKey:
    return claim.metadata.namespace, claim.metadata.name


def claim_keys(pod: Pod) -> Iterator[ClaimKey]:
    """Return the claims of storage that a pod has."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield pod.metadata.namespace, volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield pod.metadata.namespace, f"{pod.metadata.name}-{volume.name}"


def _is_made_for(name: str, pod: Pod) -> bool:
    """Whether a claim of that name comes and goes with the pod."""
    return any(
        volume.ephemeral is not None and name == f"{pod.metadata.name}-{volume.name}"
        for volume in pod.spec.volumes
    )


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and _BIND_COMPLETED in claim.metadata.annotations
