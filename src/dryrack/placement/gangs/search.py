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

from dryrack.placement.gangs.members import MemberRefused, Round
from dryrack.placement.place import SEARCHES_MAX, Unfinished, Unplaced
from dryrack.placement.plugins import DEFAULT_PROFILE
from dryrack.placement.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.placement.framework import Profile
    from dryrack.placement.gangs.dialects import Gang
    from dryrack.placement.gangs.members import Member, MemberPlaced
    from dryrack.placement.place import Cluster, Refusal


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
    _round: Round | None = field(repr=False, compare=False, default=None)

    def refusals(self, member: Member) -> tuple[Refusal, ...]:
        """
        Why each node refuses a member, when those that fit are placed.

        To be read before the cluster changes.
        """
        if self._round is None:
            return ()
        with Trial(self._round.cluster) as trial:
            for each in self.fitting:
                each.stand(trial)
            outcome = self._round.decided(member, searches_left=0)
            return outcome.refusals if isinstance(outcome, Unplaced) else ()


def place_gang(
    gang: Gang,
    members: Sequence[Member],
    cluster: Cluster,
    *,
    profile: Profile = DEFAULT_PROFILE,
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
    done = Round(cluster, profile)
    lacking = _greedy(members, done, searches_left)
    if isinstance(lacking, Unfinished):
        return lacking
    placed = tuple(done.placed)
    if bound + len(placed) >= gang.min_count:
        return GangPlaced(placed, lacking)
    return GangRefused(_proof(gang, bound, placed, lacking), placed, lacking, _round=done)


def place_gang_now(
    gang: Gang, members: Sequence[Member], cluster: Cluster, *, profile: Profile = DEFAULT_PROFILE
) -> GangPlaced | GangRefused:
    """The same, however long it takes."""
    searches_left = SEARCHES_MAX
    while True:
        outcome = place_gang(gang, members, cluster, profile=profile, searches_left=searches_left)
        if not isinstance(outcome, Unfinished):
            return outcome
        if outcome.search is not None:
            outcome.search.finish()
            searches_left -= 1


def _greedy(
    members: Sequence[Member], done: Round, searches_left: int
) -> tuple[MemberRefused, ...] | Unfinished:
    """One after the other, each as if it were alone with those before it; who does not fit."""
    lacking: list[MemberRefused] = []
    with Trial(done.cluster) as trial:
        for member in members:
            outcome = done.decided(member, searches_left)
            if isinstance(outcome, Unfinished):
                return outcome
            if isinstance(outcome, Unplaced):
                lacking.append(MemberRefused(member, outcome.message))
            else:
                done.add(member, outcome).stand(trial)
    return tuple(lacking)


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
