"""
The exact search: place as many members as are needed, on any nodes and with any devices.

It begins with the nodes that can take a member of a kind. It needs only as many of these as there
are members: a member on a further node can use one of these instead that no other member uses. If
pods have rules about zones, it keeps so many nodes of each zone, and if nodes see the same devices,
so many nodes of each likeness. Packing decides for nodes that do not depend on each other. For
other nodes packing is a bound: what cannot be packed does not fit. Further bounds are the amounts
and the devices of all nodes together. Only then the search tries members on nodes (see `joint`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dryrack.allocation import AllocationError, Search, Site, Unsatisfiable, claim_name
from dryrack.placement.framework import PluginError
from dryrack.placement.gangs.configurations import (
    LOOKS_MAX,
    STEPS_MAX,
    Configurations,
    Effort,
    copy_of,
    kinds_of,
)
from dryrack.placement.gangs.confinement import Confinement
from dryrack.placement.gangs.joint import Choice, JointAllocation, JointSearch, placements
from dryrack.placement.gangs.packing import pack
from dryrack.placement.gangs.symmetry import Symmetry
from dryrack.placement.place import open_nodes
from dryrack.placement.plugins.inter_pod_affinity import pods_meant
from dryrack.placement.plugins.node_resources import NODE_RESOURCES_FIT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

    from dryrack.kinds.core import Node
    from dryrack.kinds.resource import ResourceClaim
    from dryrack.placement.gangs.configurations import MemberKind
    from dryrack.placement.gangs.members import Member, MemberPlaced, PlacementScope
    from dryrack.placement.gangs.packing import Packed
    from dryrack.placement.node_state import NodeState

# Resources that no profile ignores.
_COUNTED = ("cpu", "memory", "pods")
# Each member may need allocations on one node: alone, with another member, and at the end.
_STEPS_A_MEMBER = 4
# Each node is checked for one member, for two, and during packing.
_LOOKS_A_NODE = 4


@dataclass(frozen=True, slots=True)
class ExactPlacement:
    """The result: as many members as were needed, or fewer."""

    placed: Sequence[MemberPlaced]
    # Whether more members might fit.
    is_undecided: bool = False
    # The search that has to end before the answer is known.
    search: Search | None = None
    # Whether any member can take the place of any other.
    are_alike: bool = False


def place_exactly(
    members: Sequence[Member], needed: int, scope: PlacementScope, searches_left: int
) -> ExactPlacement:
    """Place at least as many members as are needed; if it places fewer, the gang does not fit."""
    try:
        search = _ExactSearch(members, needed, scope, searches_left)
        placed = search.run()
        effort = search.effort
    except PluginError:
        # The first member for which the plugin failed has reported it; no member can be placed.
        return ExactPlacement(())
    if len(placed) >= needed:
        return ExactPlacement(placed)
    return ExactPlacement(placed, effort.is_undecided, effort.search, search.are_alike)


class _ExactSearch:
    def __init__(
        self, members: Sequence[Member], needed: int, scope: PlacementScope, searches_left: int
    ) -> None:
        steps = max(STEPS_MAX, _STEPS_A_MEMBER * len(members))
        looks = max(LOOKS_MAX, _LOOKS_A_NODE * len(scope.cluster.fleet))
        self.effort = Effort(steps, looks, searches_left)
        self._size = len(members)
        self._needed = needed
        self._scope = scope
        self._kinds = kinds_of(members, scope)
        self._configurations = Configurations(self._kinds, scope.cluster, self.effort)
        self._allocation = JointAllocation(scope.cluster, self.effort)

    @property
    def are_alike(self) -> bool:
        return len(self._kinds) == 1 and not self._looks_around

    def run(self) -> Sequence[MemberPlaced]:
        """Try the bounds from cheap to expensive, then the search."""
        candidates = [self._candidates(index) for index in range(len(self._kinds))]
        states = {state.name: state for of_kind in candidates for state in of_kind}
        are_all = not self.effort.is_undecided
        is_joint = self._looks_around or not all(map(self._is_local, states.values()))
        configurations = self._configurations
        if is_joint:
            configurations = configurations.without_sharing()
        if not self._amounts_suffice(states.values()):
            return ()
        packed = pack(
            configurations.kinds,
            configurations.largest,
            states.values(),
            self._needed,
            self.effort,
        )
        is_refuted = packed.size < self._needed and not self.effort.is_undecided
        if (is_joint or self.effort.is_undecided) and not is_refuted:
            is_refuted = not self._devices_suffice(candidates)
            self.effort.is_undecided &= not (is_refuted and are_all)
        if not is_joint:
            return self._allocate(_choices(packed, self._kinds))
        if is_refuted or packed.size < self._needed:
            return ()
        return self._allocate(self._search(candidates))

    def _search(self, candidates: Sequence[Sequence[NodeState]]) -> Sequence[Choice]:
        """Search members, nodes and devices together."""
        # The simulation of the search changes the nodes themselves.
        copies = {state.name: copy_of(state) for states in candidates for state in states}
        own = [[copies[state.name] for state in states] for states in candidates]
        fleet = self._scope.cluster.fleet
        search = JointSearch(
            self._scope,
            self._configurations,
            own,
            self._allocation,
            Confinement(self._kinds, own, fleet),
            Symmetry(self._topology_keys, fleet.states(), self._signs(copies)),
            self.effort,
            self._looks_around,
        )
        return search.run(self._needed)

    def _signs(self, candidates: Mapping[str, NodeState]) -> Mapping[str, Hashable]:
        """Return by node a key of nodes that can replace each other."""
        fleet = self._scope.cluster.fleet
        relations = [kind.relations for kind in self._kinds]
        near = [
            pods_meant(each.terms.affinity, term.topology_key, fleet)
            for each in relations
            for term in each.terms.affinity
        ]
        spreads = [counts for each in relations for counts in each.spreads]
        # What unknown plugins look at is not known. A volume may belong to one node or to several.
        is_single = any(each.is_unknown or each.awaits_volumes for each in relations)
        signs: dict[str, Hashable] = {}
        for state in fleet.states():
            name = state.name
            pods = tuple(counts.on(name) for counts in (*near, *spreads))
            counted = tuple(counts.includes(name) for counts in spreads)
            if name in candidates:
                state = candidates[name]
                takes = frozenset(self._configurations.largest(state))
                devices = () if self._is_local(state) else self._configurations.symmetry_key(state)
                signs[name] = (takes, devices, pods, counted, is_single and name)
            elif any(pods) or any(counted):
                signs[name] = (pods, counted)
        return signs

    def _allocate(self, chosen: Sequence[Choice]) -> Sequence[MemberPlaced]:
        """Return the placements with their devices; nothing if the effort is spent."""
        given = self._allocation.of(chosen)
        return () if given is None else placements(chosen, given)

    @property
    def _looks_around(self) -> bool:
        """Return True if the nodes of other members matter to a member."""
        return any(kind.relations.looks_around for kind in self._kinds)

    def _is_local(self, state: NodeState) -> bool:
        return self._allocation.is_local(state)

    def _candidates(self, index: int) -> list[NodeState]:
        """Return nodes that can take a member of the kind by itself, no more than are useful."""
        kind = self._kinds[index]
        if kind.shared or kind.relations.awaits_volumes or kind.relations.is_unknown:
            return self._nodes_for(index, lambda state: state.name)
        nodes = self._nodes_for(index, self._domain)
        if all(map(self._is_local, nodes)):
            return nodes
        likeness = self._configurations.symmetry_key
        return self._nodes_for(index, lambda state: (self._domain(state), likeness(state)))

    def _nodes_for(self, index: int, group: Callable[[NodeState], Hashable]) -> list[NodeState]:
        """Return as many nodes of each group as there are members, that take one of the kind."""
        alone = tuple(int(place == index) for place in range(len(self._kinds)))
        constraints = self._kinds[index].constraints[0]
        scope = self._scope
        groups: dict[Hashable, list[NodeState]] = {}
        for state in open_nodes(constraints, scope.cluster, scope.profile):
            nodes = groups.setdefault(group(state), [])
            if len(nodes) < self._size:
                if self._configurations.fits(state, alone):
                    nodes.append(state)
            elif group == self._domain and not self._topology_keys:
                # All nodes are in one group.
                break
        return [state for nodes in groups.values() for state in nodes]

    @cached_property
    def _topology_keys(self) -> list[str]:
        """Return the labels of nodes that the members' rules about pods use."""
        return sorted({key for kind in self._kinds for key in kind.relations.topology_keys})

    def _domain(self, state: NodeState) -> tuple[str | None, ...]:
        labels = state.node.metadata.labels
        return tuple(labels.get(key) for key in self._topology_keys)

    def _amounts_suffice(self, states: Collection[NodeState]) -> bool:
        """Return False if all nodes together have too little CPU, memory or places for pods."""
        filters = {plugin.name for plugin in self._scope.profile.filters}
        if self._needed < self._size or NODE_RESOURCES_FIT.name not in filters:
            # It is unknown which members would wait, or no filter checks amounts.
            return True
        wanted = dict.fromkeys(_COUNTED, 0)
        left = dict.fromkeys(_COUNTED, 0)
        for name in _COUNTED:
            for kind in self._kinds:
                wanted[name] += sum(each.amounts.get(name, 0) for each in kind.constraints)
            for state in states:
                left[name] += state.allocatable.get(name, 0) - state.used.get(name, 0)
        return all(left[name] >= wanted[name] for name in _COUNTED)

    def _devices_suffice(self, candidates: Sequence[Sequence[NodeState]]) -> bool:
        """Return False if there are too few devices even if every claim may use any node's."""
        if self._needed < self._size and len(self._kinds) > 1:
            # It is unknown which members would wait.
            return True
        claims: dict[str, ResourceClaim] = {}
        nodes: dict[str, dict[str, Node]] = {}
        for kind, states in zip(self._kinds, candidates, strict=True):
            for constraints in kind.constraints[: self._needed]:
                if constraints.extended is not None:
                    return True
                for claim in constraints.wanted:
                    claims.setdefault(claim_name(claim), claim)
                    used = nodes.setdefault(claim_name(claim), {})
                    used |= {state.name: state.node for state in states}
        if not claims or any(map(_takes_all, claims.values())) or not self.effort.spend():
            return True
        sites = [Site(tuple(used.values()), is_open=True) for used in nodes.values()]
        try:
            outcome = self._allocation.begin_apart(tuple(claims.values()), sites)
        except AllocationError:
            return True
        return not isinstance(outcome, Unsatisfiable)


def _choices(packed: Packed, kinds: Sequence[MemberKind]) -> list[Choice]:
    """Return members for the numbers of the packing, in their order."""
    used = [0] * len(kinds)
    chosen = []
    for state, taken in packed.nodes():
        for index, number in enumerate(taken):
            for _ in range(number):
                chosen.append(Choice(kinds[index], used[index], state))
                used[index] += 1
    return chosen


def _takes_all(claim: ResourceClaim) -> bool:
    """Return True if a request is for all devices of a node, which are more on more nodes."""
    asks = [
        ask
        for request in claim.spec.devices.requests
        for ask in (request.exactly, *request.first_available)
    ]
    return any(ask is not None and ask.allocation_mode == "All" for ask in asks)
