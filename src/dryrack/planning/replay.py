"""
The replay of a plan: each pod is placed by the decider on the nodes that the plan adds.

First each pod is put on its planned node, in several orders if one fails. Then the devices of the
pods of a node are allocated together, as for a gang. If pods have rules about other nodes, all are
searched together. At the end the scheduler's profile places the same pods freely: if all of them
get a node, nothing has to be pinned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.allocation import Allocated, AllocationError, LiveAllocator, Search, claim_name
from dryrack.kinds.quantity import Format, Quantity
from dryrack.placement import (
    ONE,
    PODS,
    GangPlaced,
    MemberPlaced,
    Placed,
    PlacementScope,
    PodConstraints,
    devices_of,
    free_at_once,
    place_exactly,
    place_gang_now,
)
from dryrack.planning.additions import Additions, place_anywhere
from dryrack.planning.model import Reach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.placement import Cluster, Gang, Member, Profile
    from dryrack.planning.model import NewNode, NodeType, Workload

_SEARCHES_MAX = 8


@dataclass(frozen=True, slots=True)
class Assignment:
    """The pods of a node that is new, or of one that exists."""

    node: str
    members: tuple[Member, ...]
    new: NewNode | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """The placement of each pod, by its name, and what has to be done to get there."""

    placed: Mapping[str, MemberPlaced]
    reach: Reach
    # By node, the amounts and the number of devices of each driver that nothing uses.
    left: Mapping[str, Mapping[str, str | int]]


def replay(
    assignments: Sequence[Assignment],
    workload: Workload,
    cluster: Cluster,
    profile: Profile,
    *,
    is_joint: bool,
) -> Replayed | None:
    """Return the placements of the pods on these nodes, or None if the decider finds none."""
    members = {member.name: member for each in assignments for member in each.members}
    with Additions(cluster, profile) as additions:
        for each in assignments:
            if each.new is not None:
                additions.add(each.new)
        start = additions.mark()
        free = _place_freely(workload, members, additions, cluster, profile)
        additions.rewind(start)
        placed: dict[str, MemberPlaced] = {}
        reach = Reach.PINNED
        if is_joint:
            scope = PlacementScope(cluster, profile)
            joint = _place_jointly(tuple(members.values()), scope)
            if joint is None and free is None:
                return None
            placed = joint or free or {}
            for one in placed.values():
                additions.place_as(one)
        else:
            for each in assignments:
                own = _place_pinned(each, additions)
                if own is None:
                    own = _place_together(each, additions, cluster)
                    reach = Reach.JOINT
                if own is None:
                    return None
                placed |= {one.member.name: one for one in own}
        if not _keeps_topology(workload, placed, cluster):
            return None
        left = {
            each.node: left_on(each.node, cluster, each.new, placed.values())
            for each in assignments
        }
        return Replayed(placed, Reach.ANY if free is not None else reach, left)


def _place_jointly(
    members: Sequence[Member], scope: PlacementScope
) -> dict[str, MemberPlaced] | None:
    """Search all pods and nodes together; None if they do not fit, or it is unknown."""
    for searches_left in range(_SEARCHES_MAX, -1, -1):
        found = place_exactly(members, len(members), scope, searches_left)
        if len(found.placed) == len(members):
            return {each.member.name: each for each in found.placed}
        if found.search is None:
            return None
        found.search.finish()
    return None


def _keeps_topology(
    workload: Workload, placed: Mapping[str, MemberPlaced], cluster: Cluster
) -> bool:
    """Return True if the pods of each gang are in one domain of its topology."""
    for gang, members in workload.gangs:
        if not gang.topology_key:
            continue
        nodes = {placed[each.name].node for each in members if each.name in placed}
        nodes |= {pod.spec.node_name for pod in gang.members if pod.spec.node_name}
        states = [cluster.fleet.get(node) for node in nodes]
        labels = {s.node.metadata.labels.get(gang.topology_key) for s in states if s is not None}
        if None in labels or len(labels) > 1:
            return False
    return True


def left_on(
    name: str, cluster: Cluster, new: NewNode | None, pods: Iterable[MemberPlaced]
) -> dict[str, str | int]:
    """Return the free CPU, memory and places for pods of a node, and its free devices."""
    state = cluster.fleet.get(name)
    assert state is not None, "the plan uses nodes of the cluster"
    left: dict[str, str | int] = {}
    for resource, form in (("cpu", Format.DECIMAL_SI), ("memory", Format.BINARY_SI)):
        room = state.allocatable.get(resource, 0) - state.used.get(resource, 0)
        left[resource] = str(Quantity.of(room, form))
    left[PODS] = (state.allocatable.get(PODS, 0) - state.used.get(PODS, 0)) // ONE
    assert isinstance(cluster.allocator, LiveAllocator), "a plan needs a live allocator"
    if new is not None:
        members = (*(each.member for each in pods if each.node == name), *new.daemons)
        wanted = [claim for member in members for claim in _claims_on(member, new)]
        given = {
            claim_name(each): cluster.allocator.allocation_of(claim_name(each)) for each in wanted
        }
        claims = [
            changed(each, status=changed(each.status, allocation=given[claim_name(each)]))
            for each in wanted
        ]
        views = devices_of(new.slices, claims)
        for driver in sorted({each.driver for each in views}):
            left[driver] = free_at_once(each for each in views if each.driver == driver).count
        return left
    for pool in cluster.allocator.pools_on(state.node):
        # How many partitions are free at once depends on their counters.
        if not any(device.consumes_counters for device in pool.devices):
            free = sum(1 for device in pool.devices if device.name not in pool.in_use)
            left[pool.id.driver] = int(left.get(pool.id.driver, 0)) + free
    return left


def _claims_on(member: Member, new: NewNode) -> Sequence[ResourceClaim]:
    constraints = PodConstraints.of(
        member.pod, member.wanted, member.allocated, extended=member.extended
    )
    return constraints.wanted_on(new.node)


@dataclass(frozen=True, slots=True)
class Added:
    """The placements with the nodes that were added, and the pods that fit on none."""

    replayed: Replayed
    types: dict[str, NodeType]
    refused: dict[str, str]


def replay_adding(
    workload: Workload,
    types: Sequence[NodeType],
    cluster: Cluster,
    profile: Profile,
    make: Callable[[NodeType], tuple[str, NodeType]],
) -> Added:
    """
    Place the pods as the scheduler does, each gang together, and add a node where none takes one.

    The new node is of the cheapest type that helps; a gang may need several nodes of a type.
    """
    placed: dict[str, MemberPlaced] = {}
    refused: dict[str, str] = {}
    names: dict[str, NodeType] = {}
    by_price = sorted(types, key=lambda each: each.price)
    with Additions(cluster, profile) as additions:
        for single in _turns(workload):
            outcome = _place_turn(single, additions, cluster, profile, placed)
            for type_ in by_price if isinstance(outcome, str) else ():
                added: list[str] = []
                for _ in single.members:
                    if type_.supply is not None and len(added) >= type_.supply:
                        break
                    name, _ = make(type_)
                    additions.add(type_.make(name))
                    added.append(name)
                    again = _place_turn(single, additions, cluster, profile, placed)
                    if not isinstance(again, str):
                        outcome = again
                        break
                if not isinstance(outcome, str):
                    names |= dict.fromkeys(added, type_)
                    break
                for _ in added:
                    additions.drop_last()
            if isinstance(outcome, str):
                refused |= {member.name: outcome for member in single.members}
            else:
                placed |= {each.member.name: each for each in outcome}
        left = {
            name: left_on(
                name, cluster, names[name].make(name) if name in names else None, placed.values()
            )
            for name in {one.node for one in placed.values()}
        }
    used = {one.node for one in placed.values()}
    kept = {name: type_ for name, type_ in names.items() if name in used}
    return Added(Replayed(placed, Reach.PINNED, left), kept, refused)


@dataclass(frozen=True, slots=True)
class _Turn:
    members: tuple[Member, ...]
    gang: Gang | None = None


def _turns(workload: Workload) -> Iterator[_Turn]:
    gangs = {each.name: (gang, members) for gang, members in workload.gangs for each in members}
    done: set[str] = set()
    for member in workload.members:
        if member.name in done:
            continue
        gang, members = gangs.get(member.name, (None, (member,)))
        done.update(each.name for each in members)
        yield _Turn(members, gang)


def _place_turn(
    turn: _Turn,
    additions: Additions,
    cluster: Cluster,
    profile: Profile,
    before: Mapping[str, MemberPlaced],
) -> list[MemberPlaced] | str:
    """Place the pods of a turn, or return why they do not fit."""
    given = {name: each for one in before.values() for name, each in one.given.items()}
    if turn.gang is not None:
        outcome = place_gang_now(turn.gang, turn.members, cluster, profile=profile)
        if not isinstance(outcome, GangPlaced):
            return outcome.message
        if outcome.waiting:
            return outcome.waiting[0].message
        for each in outcome.placements:
            additions.place_as(each)
        return list(outcome.placements)
    [member] = turn.members
    known = _with(member, given)
    single = place_anywhere(known, cluster, profile)
    if not isinstance(single, Placed):
        return single.message
    one = MemberPlaced(member, single.node, single.amounts, single.given)
    additions.place_as(one)
    return [one]


def _place_pinned(each: Assignment, additions: Additions) -> list[MemberPlaced] | None:
    """Place the pods one after the other on their node, in some order; None if all fail."""
    for order in _orders(each.members):
        start = additions.mark()
        placed = []
        given: dict[str, AllocationResult] = {}
        for member in order:
            one = additions.place(_with(member, given), each.node)
            if one is None:
                break
            given |= one.given
            placed.append(MemberPlaced(member, one.node, one.amounts, one.given))
        if len(placed) == len(order):
            return placed
        additions.rewind(start)
    return None


def _orders(members: Sequence[Member]) -> Iterator[Sequence[Member]]:
    yield members
    yield tuple(reversed(members))
    for number in range(1, min(len(members), 8)):
        yield (*members[number:], *members[:number])


def _with(member: Member, given: Mapping[str, AllocationResult]) -> Member:
    """Return the member after some of its claims were allocated with others."""
    shared = [claim for claim in member.wanted if claim_name(claim) in given]
    if not shared:
        return member
    allocated = tuple(
        changed(claim, status=changed(claim.status, allocation=given[claim_name(claim)]))
        for claim in shared
    )
    wanted = tuple(claim for claim in member.wanted if claim_name(claim) not in given)
    return type(member)(member.pod, wanted, (*member.allocated, *allocated), member.extended)


def _place_together(
    each: Assignment, additions: Additions, cluster: Cluster
) -> list[MemberPlaced] | None:
    """Allocate the devices of all pods of the node at once."""
    state = cluster.fleet.get(each.node)
    assert state is not None, "the plan uses nodes of the cluster"
    constraints = [
        PodConstraints.of(member.pod, member.wanted, member.allocated, extended=member.extended)
        for member in each.members
    ]
    claims: dict[str, ResourceClaim] = {}
    for wants in constraints:
        claims |= {claim_name(claim): claim for claim in wants.wanted_on(state.node)}
    try:
        outcome = cluster.allocator.begin(state.node, tuple(claims.values()))
        if isinstance(outcome, Search):
            outcome.finish()
            outcome = cluster.allocator.begin(state.node, tuple(claims.values()))
    except AllocationError:
        return None
    if not isinstance(outcome, Allocated):
        return None
    given = dict(zip(claims, outcome.results, strict=True))
    placed = []
    for member, wants in zip(each.members, constraints, strict=True):
        names = [claim_name(claim) for claim in wants.wanted_on(state.node)]
        own = {name: given.pop(name) for name in names if name in given}
        placed.append(MemberPlaced(member, each.node, wants.amounts, own))
        additions.place_as(placed[-1])
    return placed


def _place_freely(
    workload: Workload,
    members: Mapping[str, Member],
    additions: Additions,
    cluster: Cluster,
    profile: Profile,
) -> dict[str, MemberPlaced] | None:
    """Place the pods as the scheduler does, each gang together; None if one finds no node."""
    placed: dict[str, MemberPlaced] = {}
    for turn in _turns(workload):
        assert all(each.name in members for each in turn.members), "the plan has all pods"
        outcome = _place_turn(turn, additions, cluster, profile, placed)
        if isinstance(outcome, str):
            return None
        placed |= {each.member.name: each for each in outcome}
    return placed
