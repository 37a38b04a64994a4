"""Members of a gang: pods with their claims, their placements and refusals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.allocation import claim_name
from dryrack.placement.occupant import Occupant
from dryrack.placement.place import Unfinished, decide
from dryrack.placement.pod_constraints import PodConstraints

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dryrack.kinds.core import Pod
    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.placement.demand import Amounts
    from dryrack.placement.extended_resources import ExtendedResources
    from dryrack.placement.framework import Profile
    from dryrack.placement.place import Cluster, Placed, Unplaced
    from dryrack.placement.simulation import Simulation


@dataclass(frozen=True, slots=True)
class Member:
    """A pod of a gang that is on no node, with its claims as they are; it may share some."""

    pod: Pod
    wanted: tuple[ResourceClaim, ...] = ()
    allocated: tuple[ResourceClaim, ...] = ()
    # The additional claim for its extended resources.
    extended: ExtendedResources | None = None

    @property
    def name(self) -> str:
        return self.pod.full_name

    @property
    def claims(self) -> tuple[str, ...]:
        """Return the names of all its claims."""
        return tuple(map(claim_name, (*self.wanted, *self.allocated)))


@dataclass(frozen=True, slots=True)
class MemberPlaced:
    """The node and allocations of a member; a shared claim is allocated with one member only."""

    member: Member
    node: str
    amounts: Amounts
    given: Mapping[str, AllocationResult]

    @property
    def key(self) -> tuple[str, str]:
        """Return the key of the pod during a simulation."""
        return ("gang member", self.member.name)

    @property
    def occupant(self) -> Occupant:
        return Occupant.of(self.member.pod, claims=self.member.claims, amounts=self.amounts)

    def add_to(self, simulation: Simulation) -> None:
        """Put the member on its node, with its devices and volumes, for this simulation."""
        simulation.keep_volumes(self.member.pod, self.node)
        simulation.add_pod(self.key, self.occupant, self.node, self.given)


@dataclass(frozen=True, slots=True)
class MemberRefused:
    """A member that does not fit with the members that are placed."""

    member: Member
    message: str
    # Whether a node would take it but for the earlier allocation of one of its claims.
    is_kept_off_by_claims: bool
    # Whether it may fit when a pod leaves its node, without any other event.
    is_helped_by_leaving: bool
    # Whether a plugin or a selector failed, which is an error and not a refusal.
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class PlacementScope:
    """The cluster and the profile for a gang, and the labels of nodes that it is restricted to."""

    cluster: Cluster
    profile: Profile
    domain: Mapping[str, str] = field(default_factory=dict)

    def pod(self, member: Member) -> Pod:
        """Return the pod of a member, restricted to the domain."""
        pod = member.pod
        if not self.domain:
            return pod
        # A pod that selects another domain fits on no node.
        selector = {**self.domain, **pod.spec.node_selector}
        if any(selector[key] != value for key, value in self.domain.items()):
            selector = {**selector, **dict.fromkeys(self.domain, "")}
        return changed(pod, spec=changed(pod.spec, node_selector=selector))

    def constraints(self, member: Member) -> PodConstraints:
        return PodConstraints.of(
            self.pod(member), member.wanted, member.allocated, extended=member.extended
        )


class PartialPlacement:
    """The members placed so far, and the allocations of their claims."""

    def __init__(self, scope: PlacementScope, placed: Iterable[MemberPlaced] = ()) -> None:
        self.scope = scope
        self.placed = list(placed)
        self.given = {name: each for one in self.placed for name, each in one.given.items()}

    def decide(
        self, member: Member, searches_left: int, turns: Iterator[int] | None = None
    ) -> Placed | Unplaced | Unfinished:
        """
        Place the member, whose shared claims may be allocated with other members.

        It returns Unfinished without a search if there are no more turns to ask nodes in.
        """
        wanted = tuple(claim for claim in member.wanted if claim_name(claim) not in self.given)
        allocated = [
            changed(claim, status=changed(claim.status, allocation=self.given[claim_name(claim)]))
            for claim in member.wanted
            if claim_name(claim) in self.given
        ]
        while True:
            outcome = decide(
                self.scope.pod(member),
                wanted,
                (*member.allocated, *allocated),
                self.scope.cluster,
                extended=member.extended,
                profile=self.scope.profile,
                searches_left=searches_left,
            )
            if not isinstance(outcome, Unfinished) or outcome.search is not None:
                return outcome
            if turns is not None and next(turns, None) is None:
                return outcome

    def add(self, member: Member, placed: Placed) -> MemberPlaced:
        member_placed = MemberPlaced(member, placed.node, placed.amounts, placed.given)
        self.placed.append(member_placed)
        self.given |= placed.given
        return member_placed
