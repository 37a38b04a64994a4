"""
Joint search: place members on nodes that depend on each other.

Nodes depend on each other if they see the same devices, if members on several of them share a
claim, or if pods have rules about other pods. The search adds one member after the other: to a node
that the filters accept with the earlier members in place, and with all claims so far allocated
together, each on the nodes of its users. If it cannot continue, it goes back and tries other nodes
and other orders. So its result is an order in which kube-scheduler's filters accept every member.

Three things keep it short. Members of one kind are exchangeable. So are nodes and domains that are
alike (see `symmetry`). And if required affinity confines members to some domains, the search goes
on only if these have capacity for enough members.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from dryrack.allocation import Site, claim_name
from dryrack.placement.active_plugins import call, first_refusal
from dryrack.placement.gangs.configurations import largest
from dryrack.placement.gangs.members import MemberPlaced
from dryrack.placement.gangs.packing import pack
from dryrack.placement.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from dryrack.allocation import Outcome, Search
    from dryrack.kinds.core import Node
    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.placement.framework import Check, Plugin
    from dryrack.placement.gangs.configurations import Configurations, Counts, Effort, MemberKind
    from dryrack.placement.gangs.confinement import Confinement, Domains
    from dryrack.placement.gangs.members import PlacementScope
    from dryrack.placement.gangs.symmetry import Symmetry
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.place import Cluster

# An arrival changes the fleet and the allocator, which takes longer than a look.
_LOOKS_AN_ARRIVAL = 4


@runtime_checkable
class AllocatesApart(Protocol):
    """Allocates devices for claims that are used on different nodes, as `LiveAllocator` does."""

    def begin(self, node: Node, claims: Sequence[ResourceClaim]) -> Outcome | Search: ...

    def begin_apart(
        self, claims: Sequence[ResourceClaim], sites: Sequence[Site]
    ) -> Outcome | Search: ...

    def is_local(self, node: Node) -> bool: ...


class Choice(NamedTuple):
    """A member of a kind, by its number, on a node."""

    kind: MemberKind
    number: int
    state: NodeState

    @property
    def claims(self) -> Sequence[ResourceClaim]:
        return self.kind.constraints[self.number].wanted_on(self.state.node)


class JointAllocation:
    """Devices for the claims of members that have their nodes."""

    def __init__(self, cluster: Cluster, effort: Effort) -> None:
        assert isinstance(cluster.allocator, AllocatesApart), "the allocator allocates apart"
        self._allocator: AllocatesApart = cluster.allocator
        self._effort = effort
        self._local: dict[str, bool] = {}

    def is_local(self, state: NodeState) -> bool:
        """Return True if no other node can use its devices."""
        if state.name not in self._local:
            self._local[state.name] = self._allocator.is_local(state.node)
        return self._local[state.name]

    def begin_apart(
        self, claims: Sequence[ResourceClaim], sites: Sequence[Site]
    ) -> Outcome | Search:
        """Begin an allocation for claims on several nodes (see the allocator)."""
        return self._allocator.begin_apart(claims, sites)

    def of(self, chosen: Iterable[Choice]) -> Mapping[str, AllocationResult] | None:
        """Return the allocation of each claim; None if the devices do not suffice."""
        given: dict[str, AllocationResult] = {}
        for group in self._groups(chosen):
            results = self._allocate(group)
            if results is None:
                return None
            given |= results
        return given

    def suffices_with(self, choice: Choice, before: Iterable[Choice]) -> bool:
        """Return True if devices suffice for one more, on a node that suffices by itself."""
        for group in self._groups((choice, *before)):
            if choice in group:
                nodes = {each.state.name for each in group}
                return len(nodes) == 1 or self._allocate(group) is not None
        raise AssertionError("every choice is in a group")

    def _allocate(self, group: Sequence[Choice]) -> Mapping[str, AllocationResult] | None:
        wanted: dict[str, ResourceClaim] = {}
        nodes: dict[str, dict[str, Node]] = {}
        for choice in group:
            for claim in choice.claims:
                wanted.setdefault(claim_name(claim), claim)
                used = nodes.setdefault(claim_name(claim), {})
                used[choice.state.name] = choice.state.node
        if not wanted:
            return {}
        claims = tuple(wanted.values())
        if len({choice.state.name for choice in group}) == 1:
            begin = partial(self._allocator.begin, group[0].state.node, claims)
        else:
            sites = [Site(tuple(used.values())) for used in nodes.values()]
            begin = partial(self._allocator.begin_apart, claims, sites)
        outcome = self._effort.allocate(begin)
        return None if outcome is None else dict(zip(wanted, outcome.results, strict=True))

    def _groups(self, chosen: Iterable[Choice]) -> list[list[Choice]]:
        """Return groups that do not depend on each other: one group shares devices or claims."""
        groups: list[tuple[set[str], list[Choice]]] = []
        for choice in chosen:
            # All nodes with devices that other nodes can use are in one group.
            marks = {f"node {choice.state.name}" if self.is_local(choice.state) else ""}
            marks |= {f"claim {name}" for name in choice.kind.shared}
            together = [choice]
            for group in [each for each in groups if each[0] & marks]:
                groups.remove(group)
                marks |= group[0]
                together = [*group[1], *together]
            groups.append((marks, together))
        return [members for _, members in groups]


@dataclass(slots=True)
class JointSearch:
    """One search for members that fit together."""

    scope: PlacementScope
    configurations: Configurations
    # The candidate nodes for each kind, as they are without members of the gang.
    candidates: Sequence[Sequence[NodeState]]
    allocation: JointAllocation
    confinement: Confinement
    symmetry: Symmetry
    effort: Effort
    # Whether members have rules about others on other nodes.
    looks_around: bool
    _simulation: Simulation = field(init=False)
    _chosen: list[Choice] = field(default_factory=list)
    _taken: dict[str, Counts] = field(default_factory=dict)
    # How many members of each kind have arrived.
    _arrived: list[int] = field(init=False)
    # The candidates of each kind by name, and those of one domain that are alike together.
    _states: list[dict[str, NodeState]] = field(init=False)
    _groups: list[list[list[NodeState]]] = field(init=False)
    _visited: set[Hashable] = field(default_factory=set)
    # Whether enough members fit, by the domains that kinds are confined to.
    _enough_by_domains: dict[Hashable, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._arrived = [0] * len(self.configurations.kinds)
        self._states = [{state.name: state for state in states} for states in self.candidates]
        self._groups = [self.symmetry.groups(states) for states in self.candidates]

    def run(self, needed: int) -> tuple[Choice, ...]:
        """Return as many members as are needed in the order in which they arrive, or none."""
        with Simulation(self.scope.cluster) as self._simulation:
            if not self._can_reach(needed):
                return ()
            # Not recursive: a gang may have more members than Python has frames.
            moves = [self._moves()]
            while moves and len(self._chosen) < needed:
                if next(moves[-1], None) is None:
                    moves.pop()
                elif self._is_new() and self._can_reach(needed):
                    moves.append(self._moves())
        return tuple(self._chosen) if len(self._chosen) >= needed else ()

    def _moves(self) -> Iterator[Choice]:
        """Let each member that can be next arrive; it leaves again before the one after it."""
        nothing = (0,) * len(self._arrived)
        for index in self._next_kinds():
            kind = self.configurations.kinds[index]
            number = self._arrived[index]
            checks = self._cluster_checks(kind, number)
            for state in self._distinct_nodes(index):
                choice = Choice(kind, number, state)
                before = self._taken.get(state.name)
                taken = tuple(
                    count + (place == index) for place, count in enumerate(before or nothing)
                )
                if self._accepts(choice, taken, checks):
                    mark = self._simulation.mark()
                    self._taken[state.name] = taken
                    self._arrived[index] += 1
                    self._chosen.append(choice)
                    if self.looks_around:
                        _placement(choice, {}).add_to(self._simulation)
                    yield choice
                    self._simulation.rewind(mark)
                    self._chosen.pop()
                    self._arrived[index] -= 1
                    if before is None:
                        del self._taken[state.name]
                    else:
                        self._taken[state.name] = before
                if self.effort.is_spent:
                    return

    def _next_kinds(self) -> list[int]:
        """
        Return the kinds of which a member can be the next.

        Members whose order does not matter come last, in the order of their kinds.
        """
        kinds = self.configurations.kinds
        # Kinds with the fewest candidate nodes are the hardest to place.
        order = sorted(range(len(kinds)), key=lambda each: len(self.candidates[each]))
        order.sort(key=lambda each: not kinds[each].depends_on_order)
        last = order.index(kinds.index(self._chosen[-1].kind)) if self._chosen else 0
        if not kinds[order[last]].depends_on_order:
            order = order[last:]
        return [each for each in order if self._arrived[each] < len(kinds[each].members)]

    def _cluster_checks(self, kind: MemberKind, number: int) -> list[tuple[Plugin, Check]]:
        """Return the checks of filters that see the cluster, with the members so far."""
        if not self.looks_around:
            # The answers of these checks do not change, and the checks of the kind include them.
            return []
        profile = self.scope.profile
        checks = []
        for plugin in profile.filters:
            if plugin.sees_cluster and plugin.filter is not None:
                args = profile.args_of(plugin)
                fleet = self.scope.cluster.fleet
                check = call(plugin, plugin.filter, kind.constraints[number], fleet, args)
                if check is not None:
                    checks.append((plugin, check))
        return checks

    def _distinct_nodes(self, index: int) -> list[NodeState]:
        """Return the first node of each set of exchangeable nodes."""
        touched = self.symmetry.domains_of(self._taken)
        own = self._states[index]
        used = [own[name] for name in self._taken if name in own]
        unused = (
            next((each for each in group if each.name not in self._taken), None)
            for group in self._groups[index]
        )
        nodes: dict[Hashable, NodeState] = {}
        for state in (*used, *(each for each in unused if each is not None)):
            place = self.symmetry.place(state.name, touched)
            nodes.setdefault((place, self._taken.get(state.name)), state)
        return list(nodes.values())

    def _accepts(
        self, choice: Choice, taken: Counts, checks: Sequence[tuple[Plugin, Check]]
    ) -> bool:
        """Return True if one more member fits on its node, which then has these members."""
        if not self.effort.look():
            return False
        state = self.scope.cluster.fleet.get(choice.state.name)
        if state is None or first_refusal(checks, state) is not None:
            return False
        return self.configurations.fits(choice.state, taken) and self.allocation.suffices_with(
            choice, self._chosen
        )

    def _is_new(self) -> bool:
        """Return True if the search has not been here, by another order or by equal nodes."""
        for _ in range(_LOOKS_AN_ARRIVAL):
            self.effort.look()
        volumes = self.scope.cluster.fleet.volumes.assumed
        last = self._chosen[-1].kind
        # When the order does not matter any more, the next members depend on the last kind.
        turn = None if last.depends_on_order else self.configurations.kinds.index(last)
        here = (self.symmetry.shape(self._taken), frozenset(volumes.items()), turn)
        is_new = here not in self._visited
        self._visited.add(here)
        return is_new

    def _can_reach(self, needed: int) -> bool:
        """Return True if the domains that members are confined to can take enough of them."""
        sizes = [len(kind.members) for kind in self.configurations.kinds]
        left = [size - arrived for size, arrived in zip(sizes, self._arrived, strict=True)]
        domains = self.confinement.domains(left)
        if domains not in self._enough_by_domains:
            self._enough_by_domains[domains] = (
                all(each is None for each in domains)
                or self._pack_into(domains, needed) >= needed
                # The answer is unknown if the effort is spent.
                or self.effort.is_spent
            )
        return self._enough_by_domains[domains]

    def _pack_into(self, domains: Sequence[Domains], needed: int) -> int:
        """Return the largest number of members that fit into these domains."""
        nodes = self.confinement.nodes(domains)
        apart = self.configurations.without_sharing()

        def options(state: NodeState) -> list[Counts]:
            return largest(
                tuple(
                    n if state.name in there else 0 for n, there in zip(counts, nodes, strict=True)
                )
                for counts in apart.largest(state)
            )

        states = {name: self._states[i][name] for i, names in enumerate(nodes) for name in names}
        return pack(apart.kinds, options, states.values(), needed, self.effort).size


def placements(
    chosen: Iterable[Choice], given: Mapping[str, AllocationResult]
) -> list[MemberPlaced]:
    """Return the members with their nodes, each claim with the first member that uses it."""
    left = dict(given)
    placed = []
    for choice in chosen:
        names = [claim_name(claim) for claim in choice.claims]
        own = {name: left.pop(name) for name in names if name in left}
        placed.append(_placement(choice, own))
    return placed


def _placement(choice: Choice, given: Mapping[str, AllocationResult]) -> MemberPlaced:
    member = choice.kind.members[choice.number]
    amounts = choice.kind.constraints[choice.number].amounts
    return MemberPlaced(member, choice.state.name, amounts, given)
