"""
A gang and where it goes: all members that it needs, with all their devices, or none.

Members are first placed one after the other, each where a pod by itself would go, on a trial: that
is cheap, and mostly does. A claim that several of them share is allocated with the first, and leads
the others to where it can be used. Members that run already count. What is beyond the minimum is
placed if there is room, and waits if there is none.

A refusal carries its proof: how many fit together, and why a further one does not when they do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.allocation import claim_name
from dryrack.placement.occupant import Occupant
from dryrack.placement.place import SEARCHES_MAX, Placed, Unfinished, Unplaced, decide
from dryrack.placement.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.kinds.core import Pod
    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.placement.demand import Amounts
    from dryrack.placement.extended_resources import ExtendedResources
    from dryrack.placement.gangs.dialects import Gang
    from dryrack.placement.place import Cluster, Refusal


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
        return f"{self.pod.metadata.namespace}/{self.pod.metadata.name}"

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
    def occupant(self) -> Occupant:
        return Occupant.of(self.member.pod, claims=self.member.claims, amounts=self.amounts)

    def stand(self, trial: Trial) -> None:
        """The member is there, for as long as the trial lasts."""
        trial.stand(("gang member", self.member.name), self.occupant, self.node, self.given)


@dataclass(frozen=True, slots=True)
class MemberRefused:
    """Why a member is not placed when those that fit are."""

    member: Member
    message: str


@dataclass(frozen=True, slots=True)
class GangPlaced:
    """All that the gang needs goes to these nodes; there was no room for the `waiting`."""

    placements: tuple[MemberPlaced, ...]
    waiting: tuple[MemberRefused, ...] = ()


@dataclass(frozen=True, slots=True)
class GangRefused:
    """The gang does not fit, or it is not known whether it does."""

    message: str
    # As many as fit together, and why the others do not.
    fitting: tuple[MemberPlaced, ...] = ()
    lacking: tuple[MemberRefused, ...] = ()
    undecided: bool = False
    _cluster: Cluster | None = field(repr=False, compare=False, default=None)

    def refusals(self, member: Member) -> tuple[Refusal, ...]:
        """
        Why each node refuses a member, when those that fit are placed.

        To be read before the cluster changes.
        """
        if self._cluster is None:
            return ()
        with Trial(self._cluster) as trial:
            for each in self.fitting:
                each.stand(trial)
            outcome = _Round(self._cluster, self.fitting).decided(member, searches_left=0)
            return outcome.refusals if isinstance(outcome, Unplaced) else ()


def place_gang(
    gang: Gang,
    members: Sequence[Member],
    cluster: Cluster,
    *,
    bound: int | None = None,
    searches_left: int = SEARCHES_MAX,
) -> GangPlaced | GangRefused | Unfinished:
    """
    Where the members go that are on no node yet.

    `bound` is how many are, if not as many as the gang's pods say. The cluster is as before
    afterwards: who is answered with placements makes them so.
    """
    if bound is None:
        bound = sum(bool(pod.spec.node_name) for pod in gang.members)
    if gang.too_few and bound + len(members) < gang.min_count:
        return GangRefused(gang.too_few)
    outcome = _greedy(members, cluster, searches_left)
    if isinstance(outcome, Unfinished):
        return outcome
    placed, lacking = outcome
    if bound + len(placed) >= gang.min_count:
        return GangPlaced(placed, lacking)
    return GangRefused(_proof(gang, bound, placed, lacking), placed, lacking, _cluster=cluster)


def place_gang_now(
    gang: Gang, members: Sequence[Member], cluster: Cluster
) -> GangPlaced | GangRefused:
    """The same, however long it takes."""
    searches_left = SEARCHES_MAX
    while True:
        outcome = place_gang(gang, members, cluster, searches_left=searches_left)
        if not isinstance(outcome, Unfinished):
            return outcome
        if outcome.search is not None:
            outcome.search.finish()
            searches_left -= 1


def _greedy(
    members: Sequence[Member], cluster: Cluster, searches_left: int
) -> tuple[tuple[MemberPlaced, ...], tuple[MemberRefused, ...]] | Unfinished:
    """One after the other, each as if it were alone with those before it."""
    lacking: list[MemberRefused] = []
    with Trial(cluster) as trial:
        so_far = _Round(cluster)
        for member in members:
            outcome = so_far.decided(member, searches_left)
            if isinstance(outcome, Unfinished):
                return outcome
            if isinstance(outcome, Unplaced):
                lacking.append(MemberRefused(member, outcome.message))
                continue
            so_far.add(member, outcome).stand(trial)
        return tuple(so_far.placed), tuple(lacking)


class _Round:
    """Members that are placed, and what has been given to the claims that they share."""

    def __init__(self, cluster: Cluster, placed: Iterable[MemberPlaced] = ()) -> None:
        self._cluster = cluster
        self.placed = list(placed)
        self.given = {name: each for one in self.placed for name, each in one.given.items()}

    def decided(self, member: Member, searches_left: int) -> Placed | Unplaced | Unfinished:
        """Where the member goes, with what others of the gang were given for it, too."""
        had = [self._allocated(claim) for claim in member.wanted if claim_name(claim) in self.given]
        while True:
            outcome = decide(
                member.pod,
                self._open(member),
                (*member.allocated, *had),
                self._cluster,
                extended=member.extended,
                searches_left=searches_left,
            )
            # Not all nodes are asked yet; on a trial there is no pause.
            if not isinstance(outcome, Unfinished) or outcome.search is not None:
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


def _proof(
    gang: Gang, bound: int, placed: Sequence[MemberPlaced], lacking: Sequence[MemberRefused]
) -> str:
    """How many fit, how many must, and why the next one does not."""
    size, fitting = bound + len(placed) + len(lacking), bound + len(placed)
    running = f" ({bound} on a node already)" if bound else ""
    needed = f"; it needs {gang.min_count} of them together" if gang.min_count < size else ""
    return (
        f"{gang.key}: {fitting} of {size} pods fit{running}{needed}; "
        f"pod {lacking[0].member.name} does not fit with them: {lacking[0].message}"
    )
