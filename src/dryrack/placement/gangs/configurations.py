"""
Configurations of a node: which members of a gang it can take together.

Members that every node treats alike are of one kind, so a configuration is a number of members for
each kind. Whether a node can take it depends on that node alone, as far as its filters look at one
node and its devices are seen by no other: what it has to give is held against all members and all
their claims at once, so that the answer is exact. A node that can take a configuration can take
every smaller one.
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

# For each kind, how many.
Counts = tuple[int, ...]

# To ask a node for devices takes about a millisecond; a gang of many members may ask more.
STEPS_MAX = 500
# A look at what a node has left, or at one way to go on, takes some dozen microseconds.
LOOKS_MAX = 8_000
# To find out which nodes are alike takes about a tenth of a millisecond for each of them.
NODES_MAX = 10_000
# A turn of a longer search takes some, and most end after a few.
_STEPS_A_TURN = 4
_TURNS_MAX = 8


@dataclass(slots=True)
class Effort:
    """What a search may cost, and whether it was too little to be sure."""

    steps_left: int = STEPS_MAX
    looks_left: int = LOOKS_MAX
    searches_left: int = 0
    # How many nodes may be held against each other.
    nodes_left: int = NODES_MAX
    # Set where something is not known that counts as "no".
    is_undecided: bool = False
    # A long search that would tell.
    search: Search | None = None

    @property
    def is_spent(self) -> bool:
        """Whether nothing more may be tried."""
        return min(self.steps_left, self.looks_left) < 0 or self.search is not None

    def spend(self) -> bool:
        """Whether another step may be made."""
        self.steps_left -= 1
        if self.steps_left < 0:
            self.is_undecided = True
        return self.steps_left >= 0

    def look(self) -> bool:
        """Whether another look may be taken."""
        self.looks_left -= 1
        if self.looks_left < 0:
            self.is_undecided = True
        return self.looks_left >= 0

    def spend_on_node(self) -> bool:
        """Whether another node may be held against the others."""
        self.nodes_left -= 1
        return self.nodes_left >= 0

    def allocated(self, begin: Callable[[], Outcome | Search]) -> Allocated | None:
        """What is given where a search is begun; None, if nothing is, or it is not known."""
        if not self.spend():
            return None
        try:
            outcome = begin()
            if isinstance(outcome, Search) and self._ends_soon(outcome):
                outcome = begin()
        except AllocationError:
            return None
        if isinstance(outcome, Search) and self.searches_left > 0:
            # There is no point in going on before it has ended.
            self.search = outcome
            self.steps_left = 0
        elif isinstance(outcome, Search | Undecided):
            self.is_undecided = True
        return outcome if isinstance(outcome, Allocated) else None

    def _ends_soon(self, search: Search) -> bool:
        turns = sum(1 for _ in islice(search.turns, _TURNS_MAX))
        self.steps_left -= _STEPS_A_TURN * turns
        return turns < _TURNS_MAX


@runtime_checkable
class KnowsLikeness(Protocol):
    """Knows which nodes have devices that are alike, as `LiveAllocator` does."""

    def likeness(self, node: Node, claims: Sequence[ResourceClaim]) -> Hashable: ...


@dataclass(frozen=True, slots=True, eq=False)
class MemberKind:
    """Members that every node treats alike; they share the same claims, if any."""

    members: tuple[Member, ...]
    constraints: tuple[PodConstraints, ...]
    # Of filters whose answer about a node does not depend on members on other nodes.
    checks: tuple[tuple[Plugin, Check], ...]
    relations: PodRelations
    # Claims that other members of the gang want, too.
    shared: frozenset[str]
    # Whether it matters when its members arrive, to them or to others.
    depends_on_order: bool = False


def kinds_of(members: Sequence[Member], scope: PlacementScope) -> list[MemberKind]:
    """Return the members by kind, those that come first in front; raises `PluginError`."""
    shared = _shared(members)
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
    return [_kind(group, shared, scope, every) for group in groups.values()]


def _sign(plugins: ActivePlugins, storage: _StorageSigns) -> Hashable:
    """Return what is equal for pods that filters treat alike, except for other pods."""
    local = [
        (plugin.name, call(plugin, plugin.sign, plugins.pod)) for plugin, _ in plugins.node_checks
    ]
    # What filters that look at the cluster see of a pod is in none of their signs.
    pod = plugins.pod.pod
    return tuple(local), storage.of(pod) if plugins.cluster_checks else ()


class _StorageSigns:
    """Signs of claims of storage, equal for claims for which the same volumes do."""

    def __init__(self, members: Iterable[Member], volumes: Volumes) -> None:
        self._volumes = volumes
        keys = (key for member in members for key in {*claim_keys(member.pod)})
        shared = {key for key, number in Counter(keys).items() if number > 1}
        owners = map(volumes.owner, volumes.volumes.values())
        # A claim that members share, or that has a volume, is like no other.
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


def _kind(
    group: Sequence[tuple[Member, ActivePlugins, PodRelations]],
    shared: frozenset[str],
    scope: PlacementScope,
    relations_of_all: Sequence[PodRelations],
) -> MemberKind:
    first, plugins, relations = group[0]
    return MemberKind(
        tuple(member for member, _, _ in group),
        tuple(plugins.pod for _, plugins, _ in group),
        (*plugins.node_checks, *static_checks(plugins, relations, scope.cluster.fleet)),
        relations,
        frozenset(name for name in map(claim_name, first.wanted) if name in shared),
        relations.depends_on_order(relations_of_all),
    )


def _shared(members: Sequence[Member]) -> frozenset[str]:
    """Claims that several members want; one that asks for nothing can be had by anybody."""
    users = Counter(
        claim_name(claim)
        for member in members
        for claim in member.wanted
        if claim.spec.devices.requests
    )
    return frozenset(name for name, number in users.items() if number > 1)


class Configurations:
    """What each node can take, each asked once."""

    def __init__(self, kinds: Sequence[MemberKind], cluster: Cluster, effort: Effort) -> None:
        self.kinds = kinds
        self._cluster = cluster
        self._effort = effort
        self._known: dict[tuple[str, Counts], bool] = {}
        # Whether nodes have the devices, asked once of all nodes whose devices are alike.
        self._devices: dict[tuple[Hashable, Counts], bool] = {}
        self._likenesses: dict[str, Hashable] = {}

    def without_sharing(self) -> Configurations:
        """Return the same for claims that every node gives by itself, which asks for no less."""
        kinds = [replace(kind, shared=frozenset()) for kind in self.kinds]
        other = Configurations(kinds, self._cluster, self._effort)
        other._known = self._known
        other._devices = self._devices
        other._likenesses = self._likenesses
        return other

    def likeness(self, state: NodeState) -> Hashable:
        """Return a value that is equal for nodes whose devices serve the members alike."""
        name = state.name
        if name not in self._likenesses:
            claims = self.claims(state, (1,) * len(self.kinds))
            allocator = self._cluster.allocator
            if not claims:
                self._likenesses[name] = ()
            elif isinstance(allocator, KnowsLikeness) and self._effort.spend_on_node():
                names = tuple(map(claim_name, claims))
                self._likenesses[name] = (names, allocator.likeness(state.node, claims))
            else:
                self._likenesses[name] = name
        return self._likenesses[name]

    def fits(self, state: NodeState, counts: Counts) -> bool:
        """Whether the node can take so many of each kind."""
        key = (state.name, counts)
        if key not in self._known:
            self._known[key] = (
                self._effort.look()
                and self._has_room(state, counts)
                and self._has_devices(state, counts)
            )
        return self._known[key]

    def _has_room(self, state: NodeState, counts: Counts) -> bool:
        """Whether filters let the members in, one after the other."""
        copy = copy_of(state)
        if not self._are_compatible(state, counts):
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
        """Whether the node has volumes for all members of a kind, as far as it is known."""
        volumes = self._cluster.fleet.volumes
        waiting = [list(volumes.waiting(member.pod)) for member in members]
        # Claims of one member may ask for different volumes, of which one may get the other's.
        if any(len(each) != 1 for each in waiting):
            return True
        offers = VolumeOffers(volumes, [each for (each,) in waiting])
        return not isinstance(offers.on(state.node.metadata), Unbindable)

    def _are_compatible(self, state: NodeState, counts: Counts) -> bool:
        """Whether no member keeps another off the node."""
        labels = state.node.metadata.labels
        there = [kind for kind, number in zip(self.kinds, counts, strict=True) if number]
        alone = [kind for kind, number in zip(self.kinds, counts, strict=True) if number == 1]
        return not any(
            one.relations.keeps_off(other.members[0].pod, labels, labels)
            for one in there
            for other in there
            if one is not other or one not in alone
        )

    def _has_devices(self, state: NodeState, counts: Counts) -> bool:
        claims = self.claims(state, counts)
        if not claims:
            return True
        key = (self.likeness(state), counts)
        if key not in self._devices:
            begin = partial(self._cluster.allocator.begin, state.node, claims)
            self._devices[key] = self._effort.allocated(begin) is not None
        return self._devices[key]

    def claims(self, state: NodeState, counts: Counts) -> tuple[ResourceClaim, ...]:
        """What so many of each kind want of the node; a claim that they share is wanted once."""
        wanted: dict[str, ResourceClaim] = {}
        for kind, number in zip(self.kinds, counts, strict=True):
            for each in kind.constraints[:number]:
                wanted |= {claim_name(claim): claim for claim in each.wanted_on(state.node)}
        return tuple(wanted.values())

    def largest(self, state: NodeState) -> list[Counts]:
        """All that the node can take and that are part of no other."""
        nothing = (0,) * len(self.kinds)
        return largest(self._grown(state, nothing, 0))

    def _grown(self, state: NodeState, counts: Counts, first: int) -> Iterator[Counts]:
        """The configuration, and all that are larger by members of this kind and later ones."""
        yield counts
        for index in range(first, len(counts)):
            more = (*counts[:index], counts[index] + 1, *counts[index + 1 :])
            if more[index] <= len(self.kinds[index].members) and self.fits(state, more):
                yield from self._grown(state, more, index)


def largest(these: Iterable[Counts]) -> list[Counts]:
    """Those that are part of no other, each once."""
    found: list[Counts] = []
    for counts in sorted(set(these), key=sum, reverse=True):
        if not any(is_part(counts, other) for other in found):
            found.append(counts)
    return found


def is_part(one: Counts, other: Counts) -> bool:
    """Whether there are no more of any kind."""
    return all(map(le, one, other))


def copy_of(state: NodeState) -> NodeState:
    """Return the node as it is now, which does not change with the node."""
    return NodeState(state.node, dict(state.used), dict(state.non_zero), dict(state.occupants))
