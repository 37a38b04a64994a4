"""
Joint search: members on nodes that depend on each other.

Nodes do where they see the same devices, where a claim is shared by members on several of them, or
where a pod says something about other pods. One member after the other is put on a node, and all
claims so far are allocated at once, each where its users are; where that fails, other nodes are
tried. Members of one kind are alike, so their nodes come in order; so do nodes that can take the
same and that nobody is on yet.

Pods are held against each other when all are there, because one may wait for another; where they
only keep each other away, that is seen at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from dryrack.allocation import Site, claim_name
from dryrack.placement.gangs.members import MemberPlaced
from dryrack.placement.plugins_in_play import call
from dryrack.placement.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from dryrack.allocation import Outcome, Search
    from dryrack.kinds.core import Node
    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.placement.gangs.configurations import Configurations, Counts, Effort, MemberKind
    from dryrack.placement.gangs.members import Scope
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.place import Cluster

# Each is a frame of the search, of which Python has a thousand.
_MEMBERS_MAX = 250


@runtime_checkable
class AllocatesApart(Protocol):
    """Gives devices to claims that are used on different nodes, as `LiveAllocator` does."""

    def begin(self, node: Node, claims: Sequence[ResourceClaim]) -> Outcome | Search: ...

    def begin_apart(
        self, claims: Sequence[ResourceClaim], sites: Sequence[Site]
    ) -> Outcome | Search: ...

    def is_local(self, node: Node) -> bool: ...

    def likeness(self, node: Node, claims: Sequence[ResourceClaim]) -> Hashable: ...


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
        assert isinstance(cluster.allocator, AllocatesApart), "one that knows what nodes see"
        self._allocator: AllocatesApart = cluster.allocator
        self._effort = effort
        self._local: dict[str, bool] = {}

    def is_local(self, state: NodeState) -> bool:
        """Whether its devices are its own."""
        if state.name not in self._local:
            self._local[state.name] = self._allocator.is_local(state.node)
        return self._local[state.name]

    def likeness(self, state: NodeState, claims: Sequence[ResourceClaim]) -> Hashable:
        """As the allocator has it."""
        return self._allocator.likeness(state.node, claims)

    def begin_apart(
        self, claims: Sequence[ResourceClaim], sites: Sequence[Site]
    ) -> Outcome | Search:
        """As the allocator does."""
        return self._allocator.begin_apart(claims, sites)

    def of(self, chosen: Iterable[Choice]) -> Mapping[str, AllocationResult] | None:
        """What each claim gets; None, if there is not enough."""
        given: dict[str, AllocationResult] = {}
        for group in self._groups(chosen):
            results = self._given(group)
            if results is None:
                return None
            given |= results
        return given

    def suffices_with(self, choice: Choice, before: Iterable[Choice]) -> bool:
        """Whether there is enough for one more, on a node that has enough by itself."""
        for group in self._groups((choice, *before)):
            if choice in group:
                nodes = {each.state.name for each in group}
                return len(nodes) == 1 or self._given(group) is not None
        raise AssertionError("every choice is in a group")

    def _given(self, group: Sequence[Choice]) -> Mapping[str, AllocationResult] | None:
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
        outcome = self._effort.allocated(begin)
        return None if outcome is None else dict(zip(wanted, outcome.results, strict=True))

    def _groups(self, chosen: Iterable[Choice]) -> list[list[Choice]]:
        """By nodes that do not depend on each other: those of one group share devices or claims."""
        groups: list[tuple[set[str], list[Choice]]] = []
        for choice in chosen:
            # Nodes that see what others see are all taken together.
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
    """One search; `found` are members that fit together."""

    configurations: Configurations
    # The nodes that may do for each kind.
    candidates: Sequence[Sequence[NodeState]]
    allocation: JointAllocation
    relation_check: RelationCheck
    effort: Effort
    # The same for nodes that can stand in for each other.
    likeness: Mapping[str, Hashable]
    found: tuple[Choice, ...] = ()
    _taken: dict[str, Counts] = field(default_factory=dict)

    def run(self, needed: int) -> tuple[Choice, ...]:
        """At least as many as are needed, or else none."""
        kinds = self.configurations.kinds
        # Those that have the fewest nodes to go to are the hardest to place.
        order = sorted(range(len(kinds)), key=lambda each: len(self.candidates[each]))
        slots = [(index, n) for index in order for n in range(len(kinds[index].members))]
        if len(slots) > _MEMBERS_MAX:
            self.effort.is_undecided = True
        else:
            self._place(slots, (), needed, 0)
        return self.found

    def _place(
        self, slots: Sequence[tuple[int, int]], chosen: tuple[Choice, ...], needed: int, first: int
    ) -> bool:
        """Place the members that are left, the next of them on the first of its nodes or later."""
        if len(chosen) >= needed and self._holds(chosen):
            self.found = chosen
            return True
        if not slots or len(chosen) + len(slots) < needed:
            return False
        (index, number), *others = slots
        states = self.candidates[index]
        is_same_next = bool(others) and others[0][0] == index
        for place in self._worth_trying(states, first):
            choice = Choice(self.configurations.kinds[index], number, states[place])
            before = self._taken.get(states[place].name)
            if self._fits(index, choice, chosen):
                if self._place(others, (*chosen, choice), needed, place if is_same_next else 0):
                    return True
                self._restore(states[place].name, before)
        # Without this member, and then without those like it.
        return self._place([each for each in others if each[0] != index], chosen, needed, 0)

    def _worth_trying(self, states: Sequence[NodeState], first: int) -> list[int]:
        """Of nodes that are alike and that nobody is on, the first is enough."""
        seen: set[Hashable] = set()
        places = []
        for place, state in enumerate(states):
            if state.name not in self._taken:
                likeness = self.likeness[state.name]
                if likeness in seen:
                    continue
                seen.add(likeness)
            if place >= first:
                places.append(place)
        return places

    def _fits(self, index: int, choice: Choice, chosen: tuple[Choice, ...]) -> bool:
        """Whether one more can be where it is; then it is."""
        if not self.effort.spend():
            return False
        name, kinds = choice.state.name, self.configurations.kinds
        before = self._taken.get(name, (0,) * len(kinds))
        counts = tuple(number + (place == index) for place, number in enumerate(before))
        if not self.configurations.fits(choice.state, counts):
            return False
        if any(_conflict(choice, other) for other in chosen):
            return False
        if not self.allocation.suffices_with(choice, chosen):
            return False
        self._taken[name] = counts
        return True

    def _holds(self, chosen: Sequence[Choice]) -> bool:
        """Whether those that need others have them."""
        if not any(choice.kind.relations.needs_others for choice in chosen):
            return True
        # To hold a member against the others takes a millisecond.
        return all(self.effort.spend() for _ in chosen) and self.relation_check.holds(chosen)

    def _restore(self, name: str, before: Counts | None) -> None:
        if before is None:
            del self._taken[name]
        else:
            self._taken[name] = before


class RelationCheck:
    """What pods say about other pods, and members of a gang about each other."""

    def __init__(self, scope: Scope) -> None:
        self._cluster, self._profile = scope.cluster, scope.profile
        self._filters = [plugin for plugin in scope.profile.filters if plugin.sees_cluster]

    def holds(self, chosen: Sequence[Choice]) -> bool:
        """Whether every member can be where it is: with all the others there, or when it comes."""
        if self._is_settled(chosen):
            return True
        # One that wants to be near its like may be the first of them, wherever others go then.
        first = [choice for choice in chosen if choice.kind.relations.needs_others]
        return any(self._can_come(choice, chosen) for choice in first)

    def _is_settled(self, chosen: Sequence[Choice]) -> bool:
        with Trial(self._cluster) as trial:
            for choice in chosen:
                _placed(choice, {}).stand(trial)
            return all(self._is_welcome(choice, trial) for choice in chosen)

    def _can_come(self, first: Choice, chosen: Sequence[Choice]) -> bool:
        """Whether they can come one after the other, this one first."""
        left = [first, *(choice for choice in chosen if choice is not first)]
        with Trial(self._cluster) as trial:
            while left:
                each = next((each for each in left if self._is_welcome(each, trial)), None)
                if each is None:
                    return False
                _placed(each, {}).stand(trial)
                left.remove(each)
        return True

    def _is_welcome(self, choice: Choice, trial: Trial) -> bool:
        mark, constraints = trial.mark(), choice.kind.constraints[choice.number]
        fleet = self._cluster.fleet
        trial.remove(_placed(choice, {}).key)
        try:
            for plugin in self._filters:
                assert plugin.filter is not None, "it is one of the filters"
                args = self._profile.args_of(plugin)
                check = call(plugin, plugin.filter, constraints, fleet, args)
                if check is not None and call(plugin, check, choice.state) is not None:
                    return False
        finally:
            trial.rewind(mark)
        return True


def _conflict(one: Choice, other: Choice) -> bool:
    """Whether one of them keeps the other off."""
    here, there = (each.state.node.metadata.labels for each in (one, other))
    pod, other_pod = (each.kind.members[each.number].pod for each in (one, other))
    return one.kind.relations.keeps_off(other_pod, here, there) or other.kind.relations.keeps_off(
        pod, there, here
    )


def placements(
    chosen: Iterable[Choice], given: Mapping[str, AllocationResult]
) -> list[MemberPlaced]:
    """Members where they are, each claim with the first that wants it."""
    left = dict(given)
    placed = []
    for choice in chosen:
        names = [claim_name(claim) for claim in choice.claims]
        own = {name: left.pop(name) for name in names if name in left}
        placed.append(_placed(choice, own))
    return placed


def _placed(choice: Choice, given: Mapping[str, AllocationResult]) -> MemberPlaced:
    member = choice.kind.members[choice.number]
    amounts = choice.kind.constraints[choice.number].amounts
    return MemberPlaced(member, choice.state.name, amounts, given)
