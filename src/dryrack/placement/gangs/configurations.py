"""
Configurations of a node: the members of a gang that it can take together.

Members that every node treats alike are of one kind, so a configuration is a number of members for
each kind. If filters look at one node and its devices belong to it alone, the answer depends on
that node alone. It is exact, because all members and all their claims are checked at once. A node
that can take a configuration can take every smaller one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from operator import le
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from dryrack.allocation import Allocated, AllocationError, Search, Undecided, claim_name
from dryrack.placement.active_plugins import ActivePlugins, call, first_refusal
from dryrack.placement.demand import encode
from dryrack.placement.gangs.relations import PodRelations, labels_asked_for, static_checks
from dryrack.placement.index.volume_matching import Unbindable, VolumeOffers
from dryrack.placement.index.volumes import SELECTED_NODE, claim_keys, class_of, key_of
from dryrack.placement.node_state import NodeState
from dryrack.placement.occupant import Occupant

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from dryrack.allocation import Outcome
    from dryrack.kinds.core import Node, Pod
    from dryrack.kinds.resource import ResourceClaim
    from dryrack.placement.framework import Check, Plugin
    from dryrack.placement.gangs.members import Member, PlacementScope
    from dryrack.placement.index.volumes import Volumes
    from dryrack.placement.place import Cluster
    from dryrack.placement.pod_constraints import PodConstraints

# The number of members of each kind.
Counts = tuple[int, ...]

# An allocation takes about a millisecond; a gang of many members may need more of them.
STEPS_MAX = 500
# A check of a node's free amounts, or of one arrival, takes some dozen microseconds.
LOOKS_MAX = 8_000
# The likeness of a node takes about a tenth of a millisecond.
NODES_MAX = 10_000
# A turn of a longer search counts as several steps, and most searches end after a few turns.
_STEPS_A_TURN = 4
_TURNS_MAX = 8


@dataclass(slots=True)
class Effort:
    """The remaining budget of a search, and whether the answer is undecided for lack of it."""

    steps_left: int = STEPS_MAX
    looks_left: int = LOOKS_MAX
    searches_left: int = 0
    # How many nodes may be compared with each other.
    nodes_left: int = NODES_MAX
    # Set when an unknown answer counts as "no".
    is_undecided: bool = False
    # A long search that would decide the answer.
    search: Search | None = None

    @property
    def is_spent(self) -> bool:
        """Return True if nothing more may be tried."""
        return min(self.steps_left, self.looks_left) < 0 or self.search is not None

    def spend(self) -> bool:
        """Spend a step; return False if none is left."""
        self.steps_left -= 1
        if self.steps_left < 0:
            self.is_undecided = True
        return self.steps_left >= 0

    def look(self) -> bool:
        """Spend a look; return False if none is left."""
        self.looks_left -= 1
        if self.looks_left < 0:
            self.is_undecided = True
        return self.looks_left >= 0

    def spend_on_node(self) -> bool:
        """Spend a comparison of a node with the others; return False if none is left."""
        self.nodes_left -= 1
        return self.nodes_left >= 0

    def allocate(self, begin: Callable[[], Outcome | Search]) -> Allocated | None:
        """Spend a step on an allocation; return None if it fails, or the answer is unknown."""
        if not self.spend():
            return None
        try:
            outcome = begin()
            if isinstance(outcome, Search):
                turns = sum(1 for _ in islice(outcome.turns, _TURNS_MAX))
                self.steps_left -= _STEPS_A_TURN * turns
                if turns < _TURNS_MAX:
                    # The search has ended, and its result is remembered.
                    outcome = begin()
        except AllocationError:
            return None
        if isinstance(outcome, Search) and self.searches_left > 0:
            # The caller has to finish this search first.
            self.search = outcome
            self.steps_left = 0
        elif isinstance(outcome, Search | Undecided):
            self.is_undecided = True
        return outcome if isinstance(outcome, Allocated) else None


@runtime_checkable
class KnowsLikeness(Protocol):
    """Compares the devices of nodes, as `LiveAllocator` does."""

    def symmetry_key(self, node: Node, claims: Sequence[ResourceClaim]) -> Hashable: ...


@dataclass(frozen=True, slots=True, eq=False)
class MemberKind:
    """Members that every node treats alike; they share the same claims, if any."""

    members: tuple[Member, ...]
    constraints: tuple[PodConstraints, ...]
    # The checks of filters that do not depend on members on other nodes.
    checks: tuple[tuple[Plugin, Check], ...]
    relations: PodRelations
    # Claims that other members of the gang use, too.
    shared: frozenset[str]
    # Whether the order of arrival matters to its members or to others.
    depends_on_order: bool = False


def kinds_of(members: Sequence[Member], scope: PlacementScope) -> list[MemberKind]:
    """Return the members by kind, in the order of their first members; raises `PluginError`."""
    # Several users share a claim; a claim without requests does not depend on its users.
    users = Counter(
        claim_name(claim)
        for member in members
        for claim in member.wanted
        if claim.spec.devices.requests
    )
    shared = frozenset(name for name, number in users.items() if number > 1)
    fleet = scope.cluster.fleet
    storage = _StorageSigns(members, fleet.volumes)
    asked_for = labels_asked_for(member.pod for member in members)
    groups: dict[Hashable, list[tuple[Member, ActivePlugins, PodRelations]]] = {}
    for member in members:
        plugins = ActivePlugins.of(scope.constraints(member), fleet, scope.profile)
        relations = PodRelations.of(plugins, fleet)
        own = frozenset(name for name in map(claim_name, member.wanted) if name in shared)
        key = (_sign(plugins, storage), relations.sign(asked_for), own)
        groups.setdefault(key, []).append((member, plugins, relations))
    every = [relations for (_, _, relations), *_ in groups.values()]
    kinds = []
    for group in groups.values():
        first, plugins, relations = group[0]
        kind = MemberKind(
            tuple(member for member, _, _ in group),
            tuple(plugins.pod for _, plugins, _ in group),
            (*plugins.node_checks, *static_checks(plugins, relations, fleet)),
            relations,
            frozenset(name for name in map(claim_name, first.wanted) if name in shared),
            relations.depends_on_order(every),
        )
        kinds.append(kind)
    return kinds


def _sign(plugins: ActivePlugins, storage: _StorageSigns) -> Hashable:
    """Return a key of pods that filters treat alike, except for rules about other pods."""
    local = [
        (plugin.name, call(plugin, plugin.sign, plugins.pod)) for plugin, _ in plugins.node_checks
    ]
    # Signs of filters that see the cluster do not cover what they read of a pod.
    pod = plugins.pod.pod
    return tuple(local), storage.of(pod) if plugins.cluster_checks else ()


class _StorageSigns:
    """Signs of PersistentVolumeClaims, equal for claims that the same volumes fit."""

    def __init__(self, members: Iterable[Member], volumes: Volumes) -> None:
        self._volumes = volumes
        keys = (key for member in members for key in {*claim_keys(member.pod)})
        shared = {key for key, number in Counter(keys).items() if number > 1}
        owners = map(volumes.owner, volumes.volumes.values())
        # A claim that members share, or that has a volume, equals no other claim.
        self._special = shared.union(filter(None, owners))

    def of(self, pod: Pod) -> Hashable:
        waiting = {key_of(claim): claim for claim, _ in self._volumes.waiting(pod)}
        signs: list[Hashable] = []
        for key in claim_keys(pod):
            claim = None if key in self._special else waiting.get(key)
            if claim is None:
                signs.append(key)
            else:
                chosen = claim.metadata.annotations.get(SELECTED_NODE)
                signs.append((class_of(claim), encode(claim.spec), chosen))
        return tuple(signs)


class Configurations:
    """The configurations that each node can take, each checked once."""

    def __init__(self, kinds: Sequence[MemberKind], cluster: Cluster, effort: Effort) -> None:
        self.kinds = kinds
        self._cluster = cluster
        self._effort = effort
        self._known: dict[tuple[str, Counts], bool] = {}
        # Whether nodes have the devices, checked once for all nodes with equal devices.
        self._devices: dict[tuple[Hashable, Counts], bool] = {}
        self._likenesses: dict[str, Hashable] = {}

    def without_sharing(self) -> Configurations:
        """Return the configurations if no claim is shared, which is easier to satisfy."""
        kinds = [replace(kind, shared=frozenset()) for kind in self.kinds]
        other = Configurations(kinds, self._cluster, self._effort)
        other._known = self._known
        other._devices = self._devices
        other._likenesses = self._likenesses
        return other

    def symmetry_key(self, state: NodeState) -> Hashable:
        """Return a value that is equal for nodes whose devices serve the members alike."""
        name = state.name
        if name not in self._likenesses:
            claims = self.claims(state, (1,) * len(self.kinds))
            allocator = self._cluster.allocator
            if not claims:
                self._likenesses[name] = ()
            elif isinstance(allocator, KnowsLikeness) and self._effort.spend_on_node():
                names = tuple(map(claim_name, claims))
                self._likenesses[name] = (names, allocator.symmetry_key(state.node, claims))
            else:
                self._likenesses[name] = name
        return self._likenesses[name]

    def fits(self, state: NodeState, counts: Counts) -> bool:
        """Return True if the node can take so many members of each kind."""
        key = (state.name, counts)
        if key not in self._known:
            self._known[key] = (
                self._effort.look()
                and self._has_room(state, counts)
                and self._has_devices(state, counts)
            )
        return self._known[key]

    def _has_room(self, state: NodeState, counts: Counts) -> bool:
        """Return True if filters accept the members, one after the other."""
        copy = copy_of(state)
        labels = state.node.metadata.labels
        present = [each for each in zip(self.kinds, counts, strict=True) if each[1]]
        for one, number in present:
            for other, _ in present:
                is_alone = one is other and number == 1
                pod = other.members[0].pod
                if not is_alone and one.relations.keeps_off(pod, labels, labels):
                    return False
        for kind, number in zip(self.kinds, counts, strict=True):
            for member, wants in zip(kind.members[:number], kind.constraints, strict=False):
                if first_refusal(kind.checks, copy) is not None:
                    return False
                occupant = Occupant.of(member.pod, claims=member.claims, amounts=wants.amounts)
                copy.put(("gang member", member.name), occupant)
            if not self._have_volumes(kind.members[:number], state):
                return False
        return True

    def _have_volumes(self, members: Sequence[Member], state: NodeState) -> bool:
        """Return True if the node may have volumes for all members of a kind."""
        volumes = self._cluster.fleet.volumes
        waiting = [list(volumes.waiting(member.pod)) for member in members]
        # With several claims of one member, a claim may get the volume that another one needs.
        if any(len(each) != 1 for each in waiting):
            return True
        offers = VolumeOffers(volumes, [each for (each,) in waiting])
        return not isinstance(offers.on(state.node.metadata), Unbindable)

    def _has_devices(self, state: NodeState, counts: Counts) -> bool:
        claims = self.claims(state, counts)
        if not claims:
            return True
        key = (self.symmetry_key(state), counts)
        if key not in self._devices:
            begin = partial(self._cluster.allocator.begin, state.node, claims)
            self._devices[key] = self._effort.allocate(begin) is not None
        return self._devices[key]

    def claims(self, state: NodeState, counts: Counts) -> tuple[ResourceClaim, ...]:
        """Return the claims of so many members of each kind on the node; shared claims once."""
        wanted: dict[str, ResourceClaim] = {}
        for kind, number in zip(self.kinds, counts, strict=True):
            for each in kind.constraints[:number]:
                wanted |= {claim_name(claim): claim for claim in each.wanted_on(state.node)}
        return tuple(wanted.values())

    def largest(self, state: NodeState) -> list[Counts]:
        """Return all configurations that the node can take and that are part of no other."""
        return largest(self._enumerate(state, (0,) * len(self.kinds), 0))

    def _enumerate(self, state: NodeState, counts: Counts, first: int) -> Iterator[Counts]:
        """Yield the configuration, and all that add members of this kind and later kinds."""
        yield counts
        for index in range(first, len(counts)):
            more = (*counts[:index], counts[index] + 1, *counts[index + 1 :])
            if more[index] <= len(self.kinds[index].members) and self.fits(state, more):
                yield from self._enumerate(state, more, index)


def largest(configurations: Iterable[Counts]) -> list[Counts]:
    """Return the configurations that are part of no other, each once."""
    maximal: list[Counts] = []
    for counts in sorted(set(configurations), key=sum, reverse=True):
        if not any(is_part(counts, other) for other in maximal):
            maximal.append(counts)
    return maximal


def is_part(one: Counts, other: Counts) -> bool:
    """Return True if one has no more members of any kind than the other."""
    return all(map(le, one, other))


def copy_of(state: NodeState) -> NodeState:
    """Return a copy of the node that does not change with it."""
    return NodeState(state.node, dict(state.used), dict(state.non_zero), dict(state.occupants))
