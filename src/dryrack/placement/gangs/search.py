"""
Place a gang: all members that it needs, with all their devices, or none.

Members are first placed in a simulation, one after the other, each where a single pod would go.
That is cheap, and mostly succeeds; if it fails, larger members are tried first. A claim that
several members share is allocated with the first of them, and restricts the others to nodes that
can use it. Members that already run count. Members beyond the minimum are placed if there is
capacity, and wait if not.

If that fails, all members, nodes and devices are searched together (see `exact`): the search finds
every placement that exists, and a refused gang does not fit, unless it is reported as undecided.

A refusal contains its proof: how many members fit together, and why one more does not fit with
them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dryrack.placement.demand import demand
from dryrack.placement.gangs.exact import place_exactly
from dryrack.placement.gangs.joint import AllocatesApart
from dryrack.placement.gangs.members import MemberRefused, PartialPlacement, PlacementScope
from dryrack.placement.place import SEARCHES_MAX, Unfinished, Unplaced
from dryrack.placement.plugins import DEFAULT_PROFILE
from dryrack.placement.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.placement.framework import Profile
    from dryrack.placement.gangs.dialects import Gang
    from dryrack.placement.gangs.members import Member, MemberPlaced
    from dryrack.placement.place import Cluster, Refusal

# In each turn eight nodes are asked for devices. Nodes that refuse by themselves are remembered,
# and these turns ask more nodes than the gang has members: so the next call gets further.
_TURNS_MAX = 32
_EASIER = ". Pods with equal requests, or with devices of one node, are easier to schedule"


@dataclass(frozen=True, slots=True)
class GangPlaced:
    """The placements of all members that the gang needs; the `waiting` members do not fit."""

    placements: tuple[MemberPlaced, ...]
    waiting: tuple[MemberRefused, ...]
    _round: PartialPlacement | None = field(repr=False, compare=False, default=None)

    def refusals(self, member: Member) -> tuple[Refusal, ...]:
        """Return why each node refuses a waiting member; to be read before the cluster changes."""
        return _refusals(self._round, self.placements, member)


@dataclass(frozen=True, slots=True)
class GangRefused:
    """The gang does not fit, or it is unknown whether it does."""

    message: str
    # The members that fit together, and those that do not fit with them.
    fitting: tuple[MemberPlaced, ...] = ()
    lacking: tuple[MemberRefused, ...] = ()
    # Whether the search stopped at its limit, so that the gang may fit all the same.
    undecided: bool = False
    # Whether it may fit when a pod leaves its node, without any other event.
    is_helped_by_leaving: bool = True
    _round: PartialPlacement | None = field(repr=False, compare=False, default=None)

    def refusals(self, member: Member) -> tuple[Refusal, ...]:
        """
        Return why each node refuses a member when the fitting members are placed.

        To be read before the cluster changes.
        """
        return _refusals(self._round, self.fitting, member)


def _refusals(
    done: PartialPlacement | None, placed: Sequence[MemberPlaced], member: Member
) -> tuple[Refusal, ...]:
    if done is None:
        return ()
    with Simulation(done.scope.cluster) as simulation:
        for each in placed:
            each.add_to(simulation)
        outcome = done.decide(member, searches_left=0)
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
    Place the members that are on no node yet, or return Unfinished before a long search.

    `bound` is the number of bound members, if the gang's pods do not show it. The cluster is the
    same afterwards: the caller carries out the placements.
    """
    running = [pod.spec.node_name for pod in gang.members if pod.spec.node_name]
    bound = len(running) if bound is None else bound
    too_few = gang.too_few_with(bound + len(members))
    if too_few:
        return GangRefused(too_few)
    scope = PlacementScope(cluster, profile)
    if not gang.topology_key:
        return _place_within(scope, gang, members, bound, searches_left)
    values = _domains(gang.topology_key, running, cluster)
    if isinstance(values, str):
        return GangRefused(f"{gang.key}: {values}")
    best: GangRefused | None = None
    for value in values:
        within = replace(scope, domain={gang.topology_key: value})
        outcome = _place_within(within, gang, members, bound, searches_left)
        if not isinstance(outcome, GangRefused):
            return outcome
        best = outcome if best is None else _better(best, outcome)
    assert best is not None, "at least one domain was tried"
    return best


def _domains(key: str, running: Sequence[str], cluster: Cluster) -> Sequence[str] | str:
    """Return the values of the label that all members could share, or why there is none."""
    states = [cluster.fleet.get(name) for name in running] if running else cluster.fleet.states()
    labels = [state.node.metadata.labels for state in states if state is not None]
    values = sorted({each[key] for each in labels if key in each})
    if not values:
        return f"no node has the label {key} that its pods must have in common; label the nodes"
    if running and len(values) > 1:
        domains = " and ".join(values)
        return f"its pods must run in one {key}, but run in {domains}; delete those of all but one"
    return values


def _better(one: GangRefused, other: GangRefused) -> GangRefused:
    """Return the refusal that is nearer to a placement: undecided first, then by members."""
    is_other_nearer = (other.undecided, len(other.fitting)) > (one.undecided, len(one.fitting))
    return replace(
        other if is_other_nearer else one,
        is_helped_by_leaving=one.is_helped_by_leaving or other.is_helped_by_leaving,
    )


def _place_within(
    scope: PlacementScope, gang: Gang, members: Sequence[Member], bound: int, searches_left: int
) -> GangPlaced | GangRefused | Unfinished:
    done = PartialPlacement(scope)
    lacking = _greedy(members, done, searches_left, iter(range(max(_TURNS_MAX, len(members)))))
    if isinstance(lacking, Unfinished):
        return lacking
    needed = gang.min_count - bound
    if len(done.placed) < needed:
        # A larger member fits on fewer nodes.
        again = PartialPlacement(scope)
        largest_first = sorted(members, key=_size, reverse=True)
        left = None if largest_first == list(members) else _greedy(largest_first, again, 0)
        if left is not None and len(again.placed) > len(done.placed):
            assert not isinstance(left, Unfinished), "the number of turns is not limited"
            done = again
            lacking = left
    if len(done.placed) >= needed:
        return GangPlaced(tuple(done.placed), lacking, done)
    exact = place_exactly(members, needed, scope, searches_left)
    if exact.search is not None:
        return Unfinished(exact.search)
    if len(exact.placed) > len(done.placed):
        done = PartialPlacement(scope, exact.placed)
        names = {placed.member.name for placed in exact.placed}
        left = _greedy([each for each in members if each.name not in names], done, 0)
        assert not isinstance(left, Unfinished), "without searches the attempt always finishes"
        lacking = left
    placed = tuple(done.placed)
    if len(placed) >= needed:
        return GangPlaced(placed, lacking, done)
    message = _proof(gang, bound, done, lacking, is_unknown=exact.is_undecided)
    # A member that fits may occupy the only node of another member, because a pod blocks its other
    # nodes. If all members are alike, the pod blocks these nodes for the other member, too.
    is_known = exact.are_alike or not done.placed
    is_helped = not is_known or exact.is_undecided or any(it.is_helped_by_leaving for it in lacking)
    return GangRefused(message, placed, lacking, exact.is_undecided, is_helped, done)


def place_gang_now(
    gang: Gang,
    members: Sequence[Member],
    cluster: Cluster,
    *,
    profile: Profile = DEFAULT_PROFILE,
    bound: int | None = None,
) -> GangPlaced | GangRefused:
    """Place the members that are on no node yet, however long it takes."""
    searches_left = SEARCHES_MAX
    while True:
        outcome = place_gang(
            gang, members, cluster, profile=profile, bound=bound, searches_left=searches_left
        )
        if not isinstance(outcome, Unfinished):
            return outcome
        if outcome.search is not None:
            outcome.search.finish()
            searches_left -= 1


def _greedy(
    members: Sequence[Member],
    done: PartialPlacement,
    searches_left: int,
    turns: Iterator[int] | None = None,
) -> tuple[MemberRefused, ...] | Unfinished:
    """Place the members one by one, each as if it were the last; return those that do not fit."""
    lacking: list[MemberRefused] = []
    with Simulation(done.scope.cluster) as simulation:
        for placed in done.placed:
            placed.add_to(simulation)
        for member in members:
            outcome = done.decide(member, searches_left, turns)
            if isinstance(outcome, Unfinished) and outcome.search is None and _is_shared(done):
                # The answers of nodes would be forgotten at the end of the simulation.
                turns = None
                outcome = done.decide(member, searches_left)
            if isinstance(outcome, Unfinished):
                return outcome
            if isinstance(outcome, Unplaced):
                kept_off = outcome.is_kept_off_by_claims
                helped = outcome.is_helped_by_leaving
                lacking.append(
                    MemberRefused(member, outcome.message, kept_off, helped, outcome.is_error)
                )
            else:
                done.add(member, outcome).add_to(simulation)
    return tuple(lacking)


def _size(member: Member) -> tuple[int, int, int]:
    """Return the size of a member: devices first, which are the scarcest."""
    amounts = demand(member.pod)
    wanted = (*member.wanted, *((member.extended.claim,) if member.extended else ()))
    asks = [each.exactly for claim in wanted for each in claim.spec.devices.requests]
    devices = sum(1 if ask is None else ask.count or 1 for ask in asks)
    return devices, amounts.get("cpu", 0), amounts.get("memory", 0)


def _is_shared(done: PartialPlacement) -> bool:
    """Return True if a placed member has devices that other nodes can use, too."""
    cluster = done.scope.cluster
    states = [cluster.fleet.get(placed.node) for placed in done.placed if placed.given]
    allocator = cluster.allocator
    assert isinstance(allocator, AllocatesApart), "the allocator allocates apart"
    return not all(allocator.is_local(state.node) for state in states if state is not None)


def _proof(
    gang: Gang,
    bound: int,
    done: PartialPlacement,
    lacking: Sequence[MemberRefused],
    *,
    is_unknown: bool,
) -> str:
    """Return how many fit, how many must, and why the next one does not."""
    fitting = bound + len(done.placed)
    size = fitting + len(lacking)
    running = f" ({bound} bound already)" if bound else ""
    within = "".join(f" in {key} {value}" for key, value in done.scope.domain.items())
    needed = f"; it needs {gang.min_count} of them together" if gang.min_count < size else ""
    together = " with them" if fitting else ""
    first = lacking[0]
    why = f"pod {first.member.name} does not fit{together}: {first.message}"
    if is_unknown:
        return (
            f"{gang.key}: unknown whether it fits: the search stopped at its limit. With the best "
            f"placement, {fitting} of {size} pods fit{within}{running}{needed}; "
            f"{why.rstrip('.')}{_EASIER}"
        )
    return f"{gang.key}: {fitting} of {size} pods fit{within}{running}{needed}; {why}"
