"""
Persistent volumes and their claims, as far as they tie pods to nodes.

On virtual nodes nothing is stored: there a claim that names no volume ties its pods to nothing, and
they do not wait until it has one. On a cluster that stores things such pods have to wait until it
is bound. Some claims are bound only when a scheduler has chosen a node for their pod, which this
one does not do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.core import PersistentVolume, PersistentVolumeClaim, Pod

_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_CLASS = "volume.beta.kubernetes.io/storage-class"


class VolumeProblem(NamedTuple):
    """Why no node can take a pod: the claim, by namespace and name, and what is so."""

    claim: tuple[str, str]
    message: str


@dataclass(slots=True)
class Volumes:
    """What is known of volumes; claims are by namespace and name."""

    # Whether the cluster stores things: its controllers bind claims, and pods wait for that.
    are_stored: bool = False
    claims: dict[tuple[str, str], PersistentVolumeClaim] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    # StorageClasses whose claims are bound only when a pod uses them.
    waiting_classes: set[str] = field(default_factory=set)

    def of(self, pod: Pod) -> Iterator[PersistentVolume]:
        """The volumes that claims of the pod are bound to, as far as they are there."""
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                name = volume.persistent_volume_claim.claim_name
                claim = self.claims.get((pod.metadata.namespace, name))
                if claim is not None and claim.spec.volume_name in self.volumes:
                    yield self.volumes[claim.spec.volume_name]

    def problem(self, pod: Pod) -> VolumeProblem | None:
        """The first of the pod's claims that keeps it from every node."""
        keys = [
            (pod.metadata.namespace, volume.persistent_volume_claim.claim_name)
            for volume in pod.spec.volumes
            if volume.persistent_volume_claim is not None
        ]
        for why in (self._unusable, self._volume_missing):
            for key in keys:
                message = why(key[1], self.claims.get(key))
                if message:
                    return VolumeProblem(key, message)
        return None

    def _unusable(self, name: str, claim: PersistentVolumeClaim | None) -> str:
        about = f'persistentvolumeclaim "{name}"'
        if claim is None:
            return f"{about} not found"
        if claim.metadata.deletion_timestamp is not None:
            return f"{about} is being deleted"
        if not self.are_stored:
            return ""
        volume = claim.spec.volume_name
        if claim.status.phase == "Lost":
            return f'{about} bound to non-existent persistentvolume "{volume}"'
        if not volume and self._class_of(claim) in self.waiting_classes:
            return f"{about} is bound when a node is chosen, which this scheduler does not do yet"
        if not volume or _BIND_COMPLETED not in claim.metadata.annotations:
            return "pod has unbound immediate PersistentVolumeClaims"
        return ""

    def _volume_missing(self, _name: str, claim: PersistentVolumeClaim | None) -> str:
        if not self.are_stored or claim is None or claim.spec.volume_name in self.volumes:
            return ""
        return f'persistentvolume "{claim.spec.volume_name}" not found'

    @staticmethod
    def _class_of(claim: PersistentVolumeClaim) -> str:
        return claim.metadata.annotations.get(_CLASS, claim.spec.storage_class_name or "")
