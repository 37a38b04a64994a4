"""
The decider as an oracle: which pods an empty node of a type, or an existing node, takes together.

Pods that every node treats alike are of one kind. Pods that share a claim need the same node,
because its devices are there, so they are one unit. All other units are single pods. The oracle
answers for numbers of units. It also derives limits that save most questions: the amounts of the
node, and how many equal requests its devices serve at once, which the allocator itself says.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from dryrack.allocation import (
    Allocated,
    AllocationError,
    LiveAllocator,
    Search,
    Unsatisfiable,
)
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.resource import DeviceClaim, ResourceClaim, ResourceClaimSpec
from dryrack.placement import SEARCHES_MAX, Configurations, Effort, PlacementScope, kinds_of
from dryrack.planning.covering import Row

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from dryrack.kinds.resource import DeviceRequest
    from dryrack.placement import Cluster, Counts, Member, MemberKind, NodeState, Profile

_ENOUGH = 10**12
# A node has at most so many devices that a row counts.
_SERVED_MAX = 512
_Shape: TypeAlias = bytes


@dataclass(frozen=True, slots=True)
class Unit:
    """Pods that are placed together: the number of each kind of member in one of them."""

    numbers: Counts
    # Each is one of them.
    groups: tuple[tuple[Member, ...], ...]


class Oracle:
    """Answers for states of nodes, by their index."""

    def __init__(self, members: Sequence[Member], cluster: Cluster, profile: Profile) -> None:
        self._cluster = cluster
        self.kinds = kinds_of(members, PlacementScope(cluster, profile))
        self._effort = Effort(_ENOUGH, _ENOUGH, 0, _ENOUGH)
        self._configurations = Configurations(self.kinds, cluster, self._effort)
        # Answers after long searches, of which there are few: each takes half a second.
        self._searched: dict[tuple[Hashable, Counts], bool | None] = {}
        self._searches_left = SEARCHES_MAX
        self._served: dict[tuple[Hashable, _Shape], int] = {}
        self.states: list[NodeState] = []
        if self.depends_on_others(cluster.fleet.states()):
            # Then each answer is only necessary for a placement.
            self._configurations = self._configurations.without_sharing()

    def depends_on_others(self, states: Sequence[NodeState]) -> bool:
        """Return True if the pods or the devices of other nodes matter to a pod."""
        allocator = self._cluster.allocator
        assert isinstance(allocator, LiveAllocator), "a plan needs a live allocator"
        return any(kind.relations.looks_around for kind in self.kinds) or not all(
            allocator.is_local(state.node) for state in states
        )

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """Return the units: those of shared claims, then single pods by kind."""
        kinds = self._configurations.kinds
        parts = [{number} for number in range(len(kinds))]
        for number, kind in enumerate(kinds):
            for other in range(number):
                if kind.shared & kinds[other].shared and parts[other] is not parts[number]:
                    joined = parts[other] | parts[number]
                    for each in joined:
                        parts[each] = joined
        units = []
        for number, kind in enumerate(kinds):
            if not kind.shared:
                numbers = tuple(int(each == number) for each in range(len(kinds)))
                units.append(Unit(numbers, tuple((member,) for member in kind.members)))
            elif number == min(parts[number]):
                numbers = tuple(
                    len(kinds[each].members) if each in parts[number] else 0
                    for each in range(len(kinds))
                )
                group = [m for each in sorted(parts[number]) for m in kinds[each].members]
                units.append(Unit(numbers, (tuple(group),)))
        return tuple(units)

    def numbers(self, counts: Counts) -> Counts:
        """Return the number of members of each kind in so many units."""
        totals = [0] * len(self.kinds)
        for count, unit in zip(counts, self.units, strict=True):
            if count:
                for kind, number in enumerate(unit.numbers):
                    totals[kind] += count * number
        return tuple(totals)

    def fits(self, index: int, counts: Counts) -> bool | None:
        """Return whether the node takes so many units; None if the allocator does not know."""
        state = self.states[index]
        numbers = self.numbers(counts)
        self._effort.is_undecided = False
        if self._configurations.fits(state, numbers):
            return True
        key = (self._configurations.symmetry_key(state), numbers)
        if self._effort.is_undecided and key not in self._searched:
            self._searched[key] = self._search(state, numbers)
        return self._searched.get(key, False)

    def _search(self, state: NodeState, numbers: Counts) -> bool | None:
        """Return whether the node has the devices after a long search; None if it is unknown."""
        claims = self._configurations.claims(state, numbers)
        outcome = self._cluster.allocator.begin(state.node, claims)
        if isinstance(outcome, Search) and self._searches_left > 0:
            self._searches_left -= 1
            outcome.finish()
            outcome = self._cluster.allocator.begin(state.node, claims)
        if isinstance(outcome, Allocated):
            return True
        return False if isinstance(outcome, Unsatisfiable) else None

    def signature(self, state: NodeState) -> Hashable:
        """Return a value that is equal for nodes that take the same units."""
        kinds = self._configurations.kinds
        alone = tuple(
            self._configurations.fits(state, tuple(int(n == number) for n in range(len(kinds))))
            for number in range(len(kinds))
        )
        names = {name for kind in kinds for name in kind.constraints[0].amounts}
        free = tuple(
            (str(name), state.allocatable.get(str(name), 0) - state.used.get(name, 0))
            for name in sorted(names, key=str)
        )
        keys = {key for kind in kinds for key in kind.relations.topology_keys}
        labels = tuple(sorted(keys & state.node.metadata.labels.keys()))
        # Volumes may belong to one node.
        own = state.name if any(kind.relations.awaits_volumes for kind in kinds) else ""
        return alone, free, labels, own, self._configurations.symmetry_key(state)

    def takes_any(self, state: NodeState) -> bool:
        """Return True if the node takes a pod of any kind."""
        kinds = self._configurations.kinds
        return any(
            self._configurations.fits(state, tuple(int(n == number) for n in range(len(kinds))))
            for number in range(len(kinds))
        )

    def rows(self, index: int) -> tuple[Row, ...]:
        """Return limits that each configuration of the node keeps to."""
        state = self.states[index]
        units = self.units
        rows = []
        kinds = self.kinds
        names = {name for kind in kinds for name in kind.constraints[0].amounts}
        if any(plugin.name == "NodeResourcesFit" for kind in kinds for plugin, _ in kind.checks):
            for name in sorted(each for each in names if isinstance(each, str)):
                if name not in ("cpu", "memory", "pods"):
                    # A profile may ignore it, or devices may provide it.
                    continue
                own = [kind.constraints[0].amounts.get(name, 0) for kind in kinds]
                weights = tuple(_total(own, unit) for unit in units)
                room = state.allocatable.get(name, 0) - state.used.get(name, 0)
                rows.append(Row(room, weights))
        shapes = [_shapes(kind) for kind in kinds]
        for shape, request in {s: r for each in shapes for s, (r, _) in each.items()}.items():
            own = [each[shape][1] if shape in each else 0 for each in shapes]
            weights = tuple(_total(own, unit) for unit in units)
            rows.append(Row(self._most_served(state, shape, request), weights))
        return tuple(rows)

    def _most_served(self, state: NodeState, shape: _Shape, request: DeviceRequest) -> int:
        """Return how many such requests the node serves at once; a great number if too many."""
        key = (self._configurations.symmetry_key(state), shape)
        if key not in self._served:
            low, high = 0, 1
            while high <= _SERVED_MAX and self._serves(state, request, high):
                low, high = high, high * 2
            while high - low > 1 and high <= _SERVED_MAX * 2:
                middle = (low + high) // 2
                if self._serves(state, request, middle):
                    low = middle
                else:
                    high = middle
            self._served[key] = low if low < _SERVED_MAX else _ENOUGH
        return self._served[key]

    def _serves(self, state: NodeState, request: DeviceRequest, number: int) -> bool:
        """Return False if the node's devices are known not to serve so many such requests."""
        spec = ResourceClaimSpec(devices=DeviceClaim(requests=(request,)))
        claims = tuple(
            ResourceClaim(metadata=ObjectMeta(name=f"row-{each}", namespace="planning"), spec=spec)
            for each in range(number)
        )
        try:
            outcome = self._cluster.allocator.begin(state.node, claims)
        except AllocationError:
            return True
        return not isinstance(outcome, Unsatisfiable)


def _shapes(kind: MemberKind) -> Mapping[_Shape, tuple[DeviceRequest, int]]:
    """Return the requests of a member that take devices for themselves, and how many of each."""
    found: Counter[_Shape] = Counter()
    requests: dict[_Shape, DeviceRequest] = {}
    first = kind.constraints[0]
    if kind.shared or first.extended is not None:
        # Pods may use such a claim together, and nodes may have resources of their own.
        return {}
    for claim in first.wanted:
        for request in claim.spec.devices.requests:
            exact = request.exactly
            if exact is None or exact.admin_access or exact.allocation_mode == "All":
                continue
            single = msgspec.structs.replace(exact, count=1)
            same = msgspec.structs.replace(request, name="device", exactly=single)
            shape = msgspec.json.encode(same, enc_hook=str, order="deterministic")
            requests[shape] = same
            found[shape] += exact.count or 1
    return {shape: (requests[shape], number) for shape, number in found.items()}


def _total(own: Sequence[int], unit: Unit) -> int:
    return sum(each * number for each, number in zip(own, unit.numbers, strict=True))
