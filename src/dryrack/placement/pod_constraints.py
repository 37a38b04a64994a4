"""
What a pod wants, looked at once: plugins ask it of many nodes.

Its parts are those that several plugins need; the rest is in the pod.
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

# What the pod takes, and which nodes it chooses, as bytes.
PodTemplate = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class ClaimReach:
    """Where a claim can be used that is allocated already."""

    claim: str
    selector: NodeSelector
    matcher: NodeMatcher


class PodConstraints(msgspec.Struct, frozen=True):
    """A pod with its claims, and what both want of a node."""

    pod: Pod
    demand: Demand
    required_affinity: NodeSelector | None
    affinity: NodeMatcher | None
    # Claims that are to be allocated, one for extended resources last.
    wanted: Sequence[ResourceClaim]
    # Those that have their devices, and where some of these can be used.
    allocated: Sequence[ResourceClaim]
    reaches: Sequence[ClaimReach]
    # What it wants by extended resources, where a node has none of them of its own.
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
        """The same with what scores count for containers that request nothing."""
        return self.demand.non_zero

    @property
    def template(self) -> PodTemplate:
        """Equal for pods that take the same, select nodes alike and tolerate the same."""
        spec = self.pod.spec
        affinity = spec.affinity and spec.affinity.node_affinity
        chooses = (spec.node_name, spec.node_selector, affinity, spec.tolerations)
        return self.demand.key, encode((*chooses, tuple(self.by_devices)))

    @property
    def by_devices(self) -> Collection[str]:
        """Extended resources that devices are given for, on nodes that have none of their own."""
        return self.extended.classes.keys() if self.extended is not None else ()

    def wanted_on(self, node: Node) -> Sequence[ResourceClaim]:
        """The claims as the node is asked for them: what it has of its own needs no device."""
        if self.extended is None or self.extended.made is not None:
            return self.wanted
        claim = self.extended.on(node)
        if claim is self.extended.claim:
            return self.wanted
        return (*self.wanted[:-1], *(() if claim is None else (claim,)))

    @property
    def only_node(self) -> str:
        """The node that the pod or a claim is tied to by name, empty if it is not."""
        if not self.reaches and self.affinity is None:
            return ""
        ties = [*(reach.matcher for reach in self.reaches), self.affinity]
        return next((name for tie in ties if tie is not None and (name := _only_node(tie))), "")


def _reaches(allocated: Sequence[ResourceClaim]) -> Iterator[ClaimReach]:
    """Some claims can be used anywhere."""
    for claim in allocated:
        allocation = claim.status.allocation
        assert allocation is not None, "a claim that is allocated has its allocation"
        selector = allocation.node_selector
        if selector is not None:
            yield ClaimReach(claim_name(claim), selector, parse_node_selector(selector))


def _only_node(reach: NodeMatcher) -> str:
    if len(reach.terms) == 1:
        for each in reach.terms[0].fields:
            if each.key == NAME_FIELD and each.operator == "In" and len(each.values) == 1:
                return each.values[0]
    return ""
