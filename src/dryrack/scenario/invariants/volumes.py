"""
PersistentVolumes: at rest claims and volumes name each other, and nothing is left over.

A claim has a volume if one had to be created for it: its class has a provisioner, and does not wait
for a pod, or a pod with the claim has a node. A volume that is deleted with its claim is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get, status_of
from dryrack.scenario.invariants.violations import Invariant, Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dryrack.kinds.raw import Raw

_PROTECTION = "kubernetes.io/pvc-protection"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_ON_FIRST_USE = "WaitForFirstConsumer"
_TERMINAL = ("Succeeded", "Failed")


class StoredVolumes:
    """The claims, volumes and storage classes of a cluster, and the pods that may use them."""

    def __init__(
        self,
        claims: Iterable[Raw],
        volumes: Iterable[Raw],
        classes: Iterable[Raw],
        *,
        pods: Mapping[str, Raw],
    ) -> None:
        """`pods` are by UID."""
        self._claims = {each["metadata"]["uid"]: each for each in claims}
        self._volumes = {each["metadata"]["name"]: each for each in volumes}
        self._classes = {each["metadata"]["name"]: each for each in classes}
        self._pods = pods
        on_nodes = [pod for pod in pods.values() if _is_on_node(pod)]
        self._used = {name for pod in on_nodes for name in _claims_of(pod)}
        # A pod that has ended protects its claims from deletion until it is gone.
        bound = [pod for pod in pods.values() if pod["spec"].get("nodeName")]
        self._protected = {name for pod in bound for name in _claims_of(pod)}

    def held_pods(self) -> frozenset[str]:
        """Return the UIDs of pods that no node can take before their claims change."""
        usable = {
            (each["metadata"]["namespace"], each["metadata"]["name"])
            for each in self._claims.values()
            if "deletionTimestamp" not in each["metadata"] and self._is_usable(each)
        }
        return frozenset(uid for uid, pod in self._pods.items() if not {*_claims_of(pod)} <= usable)

    def _is_usable(self, claim: Raw) -> bool:
        """Return whether a claim has a volume, or gets one when a node is chosen."""
        if get(claim, "status.phase") == "Bound":
            return True
        found = self._provisioning_class(claim)
        return found is not None and found.get("volumeBindingMode") == _ON_FIRST_USE

    def violations(self) -> Iterator[Violation]:
        """Return the violations when nothing is under way."""
        for claim in self._claims.values():
            metadata = claim["metadata"]
            name = f"volume claim {metadata['namespace']}/{metadata['name']}"
            for message in self._claim_leaks(metadata):
                yield Violation(
                    Invariant.NO_LEAK, name, message, "delete the PersistentVolumeClaim"
                )
            for message in self._disagreements(claim):
                fix = "check the provisioner and the PersistentVolume controller"
                yield Violation(Invariant.VOLUMES, name, message, fix)
        for volume in self._volumes.values():
            for message in self._volume_leaks(volume):
                name = f"volume {volume['metadata']['name']}"
                yield Violation(Invariant.NO_LEAK, name, message, "delete the PersistentVolume")

    def _claim_leaks(self, metadata: Raw) -> Iterator[str]:
        is_protected = (metadata["namespace"], metadata["name"]) in self._protected
        is_held = not {*get(metadata, "finalizers", ())} <= {_PROTECTION}
        if "deletionTimestamp" in metadata and not is_protected and not is_held:
            yield "has a deletionTimestamp, but still exists"
        for owner in get(metadata, "ownerReferences", ()):
            if owner["kind"] == "Pod" and owner["uid"] not in self._pods:
                yield f"was created for pod {owner['name']}, which no longer exists"

    def _disagreements(self, claim: Raw) -> Iterator[str]:
        metadata = claim["metadata"]
        spec = claim["spec"]
        status = status_of(claim)
        if status.get("phase") == "Bound":
            volume = self._volumes.get(spec.get("volumeName", ""))
            if volume is None:
                yield f"is bound, but its volume {spec.get('volumeName', '')!r} no longer exists"
            elif get(volume["spec"], "claimRef.uid") != metadata["uid"]:
                yield f"is bound to volume {spec['volumeName']}, which is bound to another claim"
        elif not spec.get("volumeName") and (found := self._provisioning_class(claim)):
            is_used = (metadata["namespace"], metadata["name"]) in self._used
            if is_used or found.get("volumeBindingMode") != _ON_FIRST_USE:
                yield "is pending, although its class provisions volumes"

    def _provisioning_class(self, claim: Raw) -> Raw | None:
        """Return the class that creates a volume for the claim, or None."""
        found = self._classes.get(claim["spec"].get("storageClassName", ""))
        if found is None or claim["spec"].get("selector"):
            return None
        return None if found["provisioner"] == _NO_PROVISIONER else found

    def _volume_leaks(self, volume: Raw) -> Iterator[str]:
        spec = volume["spec"]
        claim = get(spec, "claimRef", {})
        is_orphan = bool(claim.get("uid")) and claim["uid"] not in self._claims
        if is_orphan and spec.get("persistentVolumeReclaimPolicy") == "Delete":
            owner = f"{claim.get('namespace')}/{claim.get('name')}"
            yield f"belongs to claim {owner}, which no longer exists"


def _is_on_node(pod: Raw) -> bool:
    phase = get(pod, "status.phase")
    return bool(pod["spec"].get("nodeName")) and phase not in _TERMINAL


def _claims_of(pod: Raw) -> Iterator[tuple[str, str]]:
    metadata = pod["metadata"]
    for volume in get(pod["spec"], "volumes", ()):
        if volume.get("ephemeral"):
            yield metadata["namespace"], f"{metadata['name']}-{volume['name']}"
        elif volume.get("persistentVolumeClaim"):
            yield metadata["namespace"], volume["persistentVolumeClaim"]["claimName"]
