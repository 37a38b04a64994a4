"""
Extended resources that devices are given for, node by node.

Where a node has some of a resource of its own, by a device plugin, that is counted as any other
amount. Where it has none, devices of the class that stands for the resource are given, by a claim
that is made for the pod. So each node is asked for a claim of its own.
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
    """What a pod asks for in the name of device classes."""

    pod: Pod
    # The class of each resource that one stands for.
    classes: Mapping[str, DeviceClass]
    # What is asked of a node that has none of them of its own.
    claim: ResourceClaim
    # The one that was made for the pod before; it is among the claims of the pod.
    made: ResourceClaim | None

    @staticmethod
    def of(
        pod: Pod,
        classes: Mapping[str, DeviceClass],
        *,
        name: str,
        made: ResourceClaim | None = None,
    ) -> ExtendedResources | None:
        """None, if no class stands for anything that the pod asks for."""
        backed = {each: classes[each] for each in asked_for(pod) if each in classes}
        claim = claim_of(pod, backed, name) if backed else None
        return None if claim is None else ExtendedResources(pod, backed, claim, made)

    def on(self, node: Node) -> ResourceClaim | None:
        """The claim that is asked for on the node, None if the node has it all."""
        classes = self._classes_on(node)
        if len(classes) == len(self.classes):
            return self.claim
        return claim_of(self.pod, classes, self.claim.metadata.name)

    def is_as_made(self, node: Node) -> bool:
        """Whether the claim that was made before is the one that the node would be asked for."""
        asked = self.on(node)
        return (
            self.made is not None
            and asked is not None
            and asked.spec.devices.requests == self.made.spec.devices.requests
        )

    def mappings_on(self, node: Node) -> tuple[ContainerExtendedResourceRequest, ...]:
        """Which containers have their devices from which requests of the claim."""
        return request_mappings(self.pod, self._classes_on(node))

    def _classes_on(self, node: Node) -> Mapping[str, DeviceClass]:
        own = node.status.allocatable
        return {
            name: each
            for name, each in self.classes.items()
            if name not in own or not own[name].nanos
        }
