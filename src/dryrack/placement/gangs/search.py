"""
A gang and where it goes: all members that it needs, with all their devices, or none.

Members are first placed in a simulation, one after the other, each where a single pod would go.
That is cheap, and mostly succeeds; if it fails, larger members are tried first. A claim that
several members share is allocated with the first of them, and restricts the others to nodes that
can use it. Members that already run count. Members beyond the minimum are placed if there is
capacity, and wait if not.

Where that does not do, all members, nodes and devices are searched together (see `exact`): a gang
that fits is found, and one that is refused does not fit, unless it is said to be undecided.

A refusal carries its proof: how many fit together, and why a further one does not when they do.
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

# In each turn eight nodes are asked for devices. Those that refuse for reasons of their own are
# remembered, and more of them are asked in these turns than there are members: so whoever asks
# again gets further.
_TURNS_MAX = 32
_EASIER = ". Pods with equal requests, or with devices of one node, are easier to schedule"


@dataclass(frozen=True, slots=True)
class GangPlaced:
    """All that the gang needs goes to these nodes; there was no room for the `waiting`."""

    placements: tuple[MemberPlaced, ...]
    waiting: tuple[MemberRefused, ...]
    _round: PartialPlacement | None = field(repr=False, compare=False, default=None)

    def refusals(self, member: Member) -> tuple[Refusal, ...]:
        """Why each node refuses one that waits; to be read before the cluster changes."""
        return _refusals(self._round, self.placements, member)


@dataclass(frozen=True, slots=True)
class GangRefused:
    """The gang does not fit, or it is unknown whether it does."""

    message: str
    # As many as fit together, and why the others do not.
    fitting: tuple[MemberPlaced, ...] = ()
    lacking: tuple[MemberRefused, ...] = ()
    # Whether the search stopped at its limit, so that the gang may fit all the same.
    undecided: bool = False
    # Whether it may fit when a pod goes from its node, and nothing else happens.
    is_helped_by_leaving: bool = True
    _round: PartialPlacement | None = field(repr=False, compare=False, default=None)

    def refusals(self, member: Member) -> tuple[Refusal, ...]:
        """
        Why each node refuses a member, when those that fit are placed.

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
        outcome = done.decided(member, searches_left=0)
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
    """Values of the label that all members could have in common, or why there is none."""
    there = [cluster.fleet.get(name) for name in running] if running else cluster.fleet.states()
    labels = [state.node.metadata.labels for state in there if state is not None]
    values = sorted({each[key] for each in labels if key in each})
    if not values:
        return f"no node has the label {key} that its pods must have in common; label the nodes"
    if running and len(values) > 1:
        found = " and ".join(values)
        return f"its pods must run in one {key}, but run in {found}; delete those of all but one"
    return values


def _better(one: GangRefused, other: GangRefused) -> GangRefused:
    """Return the one that leaves more to hope for: unknown before known, then by members."""
    one_hope, other_hope = ((it.undecided, len(it.fitting)) for it in (one, other))
    return replace(
        other if other_hope > one_hope else one,
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
        # What takes more has fewer places to go to.
        again = PartialPlacement(scope)
        largest_first = sorted(members, key=_size, reverse=True)
        left = None if largest_first == list(members) else _greedy(largest_first, again, 0)
        if left is not None and len(again.placed) > len(done.placed):
            assert not isinstance(left, Unfinished), "there are turns without end"
            done = again
            lacking = left
    if len(done.placed) >= needed:
        return GangPlaced(tuple(done.placed), lacking, done)
    exact = place_exactly(members, needed, scope, searches_left)
    if exact.search is not None:
        return Unfinished(exact.search)
    if len(exact.placed) > len(done.placed):
        done = PartialPlacement(scope, exact.placed)
        lacking = _others(members, done)
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
    """The same, however long it takes."""
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
    """One after the other, each as if it were alone with those before it; who does not fit."""
    lacking: list[MemberRefused] = []
    with Simulation(done.scope.cluster) as simulation:
        for placed in done.placed:
            placed.add_to(simulation)
        for member in members:
            outcome = done.decided(member, searches_left, turns)
            if isinstance(outcome, Unfinished) and outcome.search is None and _is_shared(done):
                # What nodes said would be forgotten with the simulation.
                turns = None
                outcome = done.decided(member, searches_left)
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
    """How much it takes: devices first, which are fewest."""
    amounts = demand(member.pod)
    wanted = (*member.wanted, *((member.extended.claim,) if member.extended else ()))
    asks = [each.exactly for claim in wanted for each in claim.spec.devices.requests]
    devices = sum(1 if ask is None else ask.count or 1 for ask in asks)
    return devices, amounts.get("cpu", 0), amounts.get("memory", 0)


def _is_shared(done: PartialPlacement) -> bool:
    """Whether some of what is placed takes devices that other nodes see, too."""
    cluster = done.scope.cluster
    states = [cluster.fleet.get(placed.node) for placed in done.placed if placed.given]
    allocator = cluster.allocator
    assert isinstance(allocator, AllocatesApart), "the allocator allocates apart"
    return not all(allocator.is_local(state.node) for state in states if state is not None)


def _others(members: Sequence[Member], done: PartialPlacement) -> tuple[MemberRefused, ...]:
    """Places those that fit with what is placed already; who does not."""
    there = {placed.member.name for placed in done.placed}
    lacking = _greedy([each for each in members if each.name not in there], done, 0)
    assert not isinstance(lacking, Unfinished), "without searches the attempt always finishes"
    return lacking


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
