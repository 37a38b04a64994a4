"""
The requirements of a pod, parsed once, because plugins check them on many nodes.

It has the parts that several plugins need; the rest is in the pod.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dryrack.allocation import claim_name
from dryrack.kinds.selectors import NAME_FIELD, parse_node_selector
from dryrack.placement.demand import demand_of, encode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from dryrack.kinds.core import Node, NodeSelector, Pod
    from dryrack.kinds.resource import ResourceClaim
    from dryrack.kinds.selectors import NodeMatcher
    from dryrack.placement.demand import Amounts, Demand
    from dryrack.placement.extended_resources import ExtendedResources

# The demand of the pod and its selection of nodes, as bytes.
PodTemplate = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class ClaimReach:
    """The nodes that can use a claim that is allocated already."""

    claim: str
    selector: NodeSelector
    matcher: NodeMatcher


class PodConstraints(msgspec.Struct, frozen=True):
    """A pod with its claims, and the requirements of both for a node."""

    pod: Pod
    demand: Demand
    required_affinity: NodeSelector | None
    affinity: NodeMatcher | None
    # Claims that are to be allocated; the claim for extended resources is last.
    wanted: Sequence[ResourceClaim]
    # Claims that are allocated, and the nodes of those that not every node can use.
    allocated: Sequence[ResourceClaim]
    reaches: Sequence[ClaimReach]
    # The devices for extended resources, on nodes without such resources of their own.
    extended: ExtendedResources | None

    @staticmethod
    def of(
        pod: Pod,
        wanted: Sequence[ResourceClaim] = (),
        allocated: Sequence[ResourceClaim] = (),
        *,
        extended: ExtendedResources | None = None,
    ) -> PodConstraints:
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
        required = (
            affinity.required_during_scheduling_ignored_during_execution if affinity else None
        )
        if extended is not None and extended.made is None:
            wanted = (*wanted, extended.claim)
        return PodConstraints(
            pod,
            demand_of(pod),
            required,
            None if required is None else parse_node_selector(required),
            wanted,
            allocated,
            tuple(_reaches(allocated)) if allocated else (),
            extended,
        )

    @property
    def amounts(self) -> Amounts:
        return self.demand.amounts

    @property
    def non_zero(self) -> Amounts:
        """Return CPU and memory with the defaults for containers without requests."""
        return self.demand.non_zero

    @property
    def template(self) -> PodTemplate:
        """Return a key of pods with equal demands, node selections and tolerations."""
        spec = self.pod.spec
        affinity = spec.affinity and spec.affinity.node_affinity
        selection = (spec.node_name, spec.node_selector, affinity, spec.tolerations)
        return self.demand.key, encode((*selection, tuple(self.by_devices)))

    @property
    def by_devices(self) -> Collection[str]:
        """Return the extended resources that devices provide, on nodes without their own."""
        return self.extended.classes.keys() if self.extended is not None else ()

    def wanted_on(self, node: Node) -> Sequence[ResourceClaim]:
        """Return the claims for a node, which needs no devices for resources of its own."""
        if self.extended is None or self.extended.made is not None:
            return self.wanted
        claim = self.extended.on(node)
        if claim is self.extended.claim:
            return self.wanted
        return (*self.wanted[:-1], *(() if claim is None else (claim,)))

    @property
    def only_node(self) -> str:
        """Return the node that the pod or a claim selects by name, empty if there is none."""
        if not self.reaches and self.affinity is None:
            return ""
        for matcher in (*(reach.matcher for reach in self.reaches), self.affinity):
            for field in matcher.terms[0].fields if matcher and len(matcher.terms) == 1 else ():
                if field.key == NAME_FIELD and field.operator == "In" and len(field.values) == 1:
                    return field.values[0]
        return ""


def _reaches(allocated: Sequence[ResourceClaim]) -> Iterator[ClaimReach]:
    for claim in allocated:
        allocation = claim.status.allocation
        assert allocation is not None, "a claim that is allocated has its allocation"
        selector = allocation.node_selector
        if selector is not None:
            yield ClaimReach(claim_name(claim), selector, parse_node_selector(selector))
