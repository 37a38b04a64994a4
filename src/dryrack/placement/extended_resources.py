"""
Extended resources that devices of a DeviceClass provide, node by node.

If a node has the resource of its own, by a device plugin, it is counted as any other amount.
Otherwise devices of the class with that resource are allocated, by a claim that is created for the
pod. So the claim differs from node to node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.kinds.expansion.extended_resources import asked_for, claim_of, request_mappings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.core import ContainerExtendedResourceRequest, Node, Pod
    from dryrack.kinds.resource import DeviceClass, ResourceClaim


@dataclass(frozen=True, slots=True)
class ExtendedResources:
    """The extended resources of a pod that device classes provide."""

    pod: Pod
    # The class by resource.
    classes: Mapping[str, DeviceClass]
    # The claim on a node that has none of the resources of its own.
    claim: ResourceClaim
    # The claim that was created for the pod before; it is one of the pod's claims.
    made: ResourceClaim | None

    @staticmethod
    def of(
        pod: Pod,
        classes: Mapping[str, DeviceClass],
        *,
        name: str,
        made: ResourceClaim | None = None,
    ) -> ExtendedResources | None:
        """Return None if no class provides an extended resource that the pod requests."""
        backed = {each: classes[each] for each in asked_for(pod) if each in classes}
        claim = claim_of(pod, backed, name) if backed else None
        return None if claim is None else ExtendedResources(pod, backed, claim, made)

    def on(self, node: Node) -> ResourceClaim | None:
        """Return the claim on the node, None if the node has all resources of its own."""
        classes = self._classes_on(node)
        if len(classes) == len(self.classes):
            return self.claim
        return claim_of(self.pod, classes, self.claim.metadata.name)

    def is_as_made(self, node: Node) -> bool:
        """Return True if the existing claim is the one for this node."""
        claim = self.on(node)
        return (
            self.made is not None
            and claim is not None
            and claim.spec.devices.requests == self.made.spec.devices.requests
        )

    def mappings_on(self, node: Node) -> tuple[ContainerExtendedResourceRequest, ...]:
        """Return the requests of the claim for each resource of each container."""
        return request_mappings(self.pod, self._classes_on(node))

    def _classes_on(self, node: Node) -> Mapping[str, DeviceClass]:
        own = node.status.allocatable
        return {
            name: each
            for name, each in self.classes.items()
            if name not in own or not own[name].nanos
        }
