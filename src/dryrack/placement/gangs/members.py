"""Members of a gang: a pod with its claims, where it goes, or why it does not."""

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
    # What it wants beside them by extended resources.
    extended: ExtendedResources | None = None

    @property
    def name(self) -> str:
        return self.pod.full_name

    @property
    def claims(self) -> tuple[str, ...]:
        """All its claims, by name."""
        return tuple(map(claim_name, (*self.wanted, *self.allocated)))


@dataclass(frozen=True, slots=True)
class MemberPlaced:
    """Where a member goes. A claim that members share is given with one of them, once."""

    member: Member
    node: str
    amounts: Amounts
    given: Mapping[str, AllocationResult]

    @property
    def key(self) -> tuple[str, str]:
        """By which it is known while a trial lasts."""
        return ("gang member", self.member.name)

    @property
    def occupant(self) -> Occupant:
        return Occupant.of(self.member.pod, claims=self.member.claims, amounts=self.amounts)

    def add_to(self, simulation: Simulation) -> None:
        """Put the member on its node, with its devices and volumes, while the trial lasts."""
        simulation.keep_volumes(self.member.pod, self.node)
        simulation.add_pod(self.key, self.occupant, self.node, self.given)


@dataclass(frozen=True, slots=True)
class MemberRefused:
    """Why a member is not placed when those that fit are."""

    member: Member
    message: str
    # Whether there are nodes that would do but for what one of its claims was given before.
    is_kept_off_by_claims: bool
    # Whether it may fit when a pod goes from its node, and nothing else happens.
    is_helped_by_leaving: bool
    # Whether a plugin or a selector failed, which is an error and not a refusal.
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class PlacementScope:
    """Where members are placed: in a cluster, by a profile, on nodes with some labels."""

    cluster: Cluster
    profile: Profile
    domain: Mapping[str, str] = field(default_factory=dict)

    def pod(self, member: Member) -> Pod:
        """The pod of a member, which keeps to the domain."""
        pod = member.pod
        if not self.domain:
            return pod
        # A pod that selects another one has nowhere to go.
        selector = {**self.domain, **pod.spec.node_selector}
        if any(selector[key] != value for key, value in self.domain.items()):
            selector = {**selector, **dict.fromkeys(self.domain, "")}
        return changed(pod, spec=changed(pod.spec, node_selector=selector))

    def constraints(self, member: Member) -> PodConstraints:
        return PodConstraints.of(
            self.pod(member), member.wanted, member.allocated, extended=member.extended
        )


class PartialPlacement:
    """Members that are placed, and what has been given to the claims that they share."""

    def __init__(self, scope: PlacementScope, placed: Iterable[MemberPlaced] = ()) -> None:
        self.scope = scope
        self.placed = list(placed)
        self.given = {name: each for one in self.placed for name, each in one.given.items()}

    def decided(
        self, member: Member, searches_left: int, turns: Iterator[int] | None = None
    ) -> Placed | Unplaced | Unfinished:
        """
        Where the member goes, with what others of the gang were given for it, too.

        It is not finished without a search where there are no more turns to ask nodes in.
        """
        had = [self._allocated(claim) for claim in member.wanted if claim_name(claim) in self.given]
        while True:
            outcome = decide(
                self.scope.pod(member),
                self._open(member),
                (*member.allocated, *had),
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
        made = MemberPlaced(member, placed.node, placed.amounts, placed.given)
        self.placed.append(made)
        self.given |= placed.given
        return made

    def _open(self, member: Member) -> tuple[ResourceClaim, ...]:
        return tuple(claim for claim in member.wanted if claim_name(claim) not in self.given)

    def _allocated(self, claim: ResourceClaim) -> ResourceClaim:
        allocation = self.given[claim_name(claim)]
        return changed(claim, status=changed(claim.status, allocation=allocation))
