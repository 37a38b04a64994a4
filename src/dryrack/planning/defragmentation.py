"""
Defragmentation: pods whose move to other nodes frees whole nodes, each move tried by the decider.

A node is whole if no claim has a device of the driver on it. The search takes the nodes with the
fewest pods to move first. It removes these pods from a copy of the cluster and places them again on
nodes that are not whole; a gang is moved with all its members, or not at all. What succeeds stays
in the copy. At the end all moves are replayed on a fresh copy, and the decider counts the devices
that are free on each node then.

The search is greedy, and limited: it may not find the greatest number of nodes. What it finds is
true.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import KW_ONLY, dataclass, replace
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as changed

from dryrack.allocation import claim_name
from dryrack.base.errors import DryrackError
from dryrack.base.text import hint
from dryrack.kinds.core import Pod
from dryrack.kinds.provisioning import DO_NOT_DISRUPT
from dryrack.kinds.selectors import matches_labels
from dryrack.placement import (
    Flaw,
    GangKey,
    GangPlaced,
    Member,
    MemberPlaced,
    Membership,
    Placed,
    Simulation,
    devices_of,
    gang_of,
    place_gang_now,
    place_on,
    profile_named,
    summary_of,
)
from dryrack.planning.additions import place_anywhere
from dryrack.planning.workload import case_of, is_of_node, member_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from dryrack.base.ports import Chance
    from dryrack.kinds.core import Node
    from dryrack.kinds.releases import Release
    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.placement import Cluster, Gang, ModelSummary, World

# Nodes that the search tries to free, and pods that it places for them.
_NODES_TRIED_MAX = 500
_PODS_PLACED_MAX = 2_000
# Counting how many partitions of so many are free at once takes seconds.
_COUNTED_DEVICES_MAX = 20_000
# Pods that cannot be moved; a large cluster has one on almost every node.
_FIXED_MAX = 200
# Nodes on which a pod is tried, before the scheduler chooses one.
_TARGETS_TRIED_MAX = 8


class DriverError(DryrackError):
    """No node has devices of the driver."""


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that is deleted on one node, and created again on another or the same one."""

    pod: str
    source: str
    target: str
    # The gang with which it moves, as "namespace/name"; "" for none.
    gang: str = ""


@dataclass(frozen=True, slots=True)
class FixedPod:
    """A pod or claim that keeps a node from becoming whole, and why it cannot be moved."""

    name: str
    node: str
    why: str


@dataclass(frozen=True, slots=True)
class Defragmentation:
    """The moves, the nodes that they free, and the counts before and after them."""

    driver: str
    # The nodes with devices of the driver, and those of them on which no claim has any.
    nodes: tuple[str, ...]
    whole: tuple[str, ...]
    freed: tuple[str, ...]
    moves: tuple[Move, ...]
    fixed: tuple[FixedPod, ...]
    _: KW_ONLY
    # Whether the scheduler places all pods like this, or as well, if the freed nodes are cordoned.
    is_reached_freely: bool
    # The number of nodes that the search tried to free, and whether it tried all.
    tried: int
    is_complete: bool
    # The free devices on the nodes of the moves; empty if there are too many partitions to count.
    before: tuple[ModelSummary, ...]
    after: tuple[ModelSummary, ...]

    def document(self) -> dict[str, Any]:
        """Return the defragmentation as programs read it."""
        return {
            "driver": self.driver,
            "nodes": len(self.nodes),
            "whole": len(self.whole),
            "freed": list(self.freed),
            "moves": [
                {"pod": each.pod, "from": each.source, "to": each.target, "gang": each.gang}
                for each in self.moves
            ],
            "placement": "any" if self.is_reached_freely else "pinned",
            "tried": self.tried,
            "isComplete": self.is_complete,
            "fixed": [
                {"name": each.name, "node": each.node, "why": each.why}
                for each in self.fixed[:_FIXED_MAX]
            ],
            "fixedOmitted": max(0, len(self.fixed) - _FIXED_MAX),
            "before": [each.document() for each in self.before],
            "after": [each.document() for each in self.after],
        }


@dataclass(frozen=True, slots=True)
class _Unit:
    """Pods that move together: one, or the members of a gang."""

    members: tuple[Member, ...]
    gang: Gang | None = None

    @property
    def gang_name(self) -> str:
        return "" if self.gang is None else f"{self.gang.key.namespace}/{self.gang.key.name}"


class _Copy:
    """A copy of the cluster, in which pods move."""

    def __init__(self, world: World, driver: str, cluster: Cluster) -> None:
        self.cluster = cluster
        self.allocations: dict[str, AllocationResult] = {}
        # The pods that were placed again.
        self.places: dict[str, MemberPlaced] = {}
        self._simulation = Simulation(cluster)
        self._driver = driver
        self._node_of_pool = {
            each.spec.pool.name: each.spec.node_name
            for each in world.slices
            if each.spec.driver == driver and each.spec.node_name
        }
        # The claims that have devices of the driver, by node.
        self._claims_on: dict[str, dict[str, None]] = {
            node: {} for node in sorted(set(self._node_of_pool.values()))
        }
        # About how many devices of the driver are free: of partitions, some exclude others.
        devices = Counter(dict.fromkeys(self._claims_on, 0))
        for each in world.slices:
            if each.spec.driver == driver and each.spec.node_name:
                devices[each.spec.node_name] += len(each.spec.devices)
        self._free = devices
        self._cordoned: set[str] = set()
        for claim in world.claims:
            if claim.status.allocation is not None:
                self._allocate(claim_name(claim), claim.status.allocation)

    @property
    def nodes(self) -> Sequence[str]:
        """The nodes with devices of the driver."""
        return tuple(self._claims_on)

    def claims_on(self, node: str) -> Collection[str]:
        """Return the claims that have devices of the driver on a node."""
        return self._claims_on[node].keys()

    def whole(self) -> list[str]:
        """Return the nodes on which no claim has a device of the driver."""
        return [node for node, claims in self._claims_on.items() if not claims]

    def _allocate(self, claim: str, allocation: AllocationResult | None) -> None:
        before = self.allocations.pop(claim, None)
        for node, number in self._devices_of(before).items():
            del self._claims_on[node][claim]
            self._free[node] += number
        for node, number in self._devices_of(allocation).items():
            self._claims_on[node][claim] = None
            self._free[node] -= number
        if allocation is not None:
            self.allocations[claim] = allocation

    def _devices_of(self, allocation: AllocationResult | None) -> Counter[str]:
        """Return the number of devices of the driver in an allocation, by node."""
        return Counter(
            self._node_of_pool[each.pool]
            for each in (allocation.devices.results if allocation is not None else ())
            if each.driver == self._driver
            and not each.admin_access
            and each.pool in self._node_of_pool
        )

    def cordon(self, name: str) -> Node | None:
        """Keep pods that are placed from now on away from a node; return the node as it was."""
        state = self.cluster.fleet.get(name)
        if state is None:
            return None
        node = state.node
        self._cordoned.add(name)
        self.cluster.fleet.put(changed(node, spec=changed(node.spec, unschedulable=True)))
        return node

    def free(self, step: _Step, *, packs: bool) -> bool:
        """
        Move the pods of a step; return False, and change nothing, if one finds no node.

        With `packs`, pods go to nodes with few free devices; otherwise where the scheduler puts
        them.
        """
        start = self._simulation.mark()
        node = self.cordon(step.node)
        members = [member for unit in step.units for member in unit.members]
        number = {unit.members[0].name: self.devices(unit) for unit in step.units}
        before = {claim: self.allocations.get(claim) for each in members for claim in each.claims}
        for member in members:
            self._simulation.remove_pod(member.name)
            for claim in member.claims:
                self._allocate(claim, None)
        if all(
            self._place(unit, number[unit.members[0].name] if packs else None)
            for unit in step.units
        ):
            return True
        self._simulation.rewind(start)
        for member in members:
            self.places.pop(member.name, None)
        for claim, allocation in before.items():
            self._allocate(claim, allocation)
        if node is not None:
            self._cordoned.discard(step.node)
            self.cluster.fleet.put(node)
        return False

    def devices(self, unit: _Unit) -> int:
        """Return the number of devices of the driver that the pods of a unit have."""
        claims = {claim for member in unit.members for claim in member.claims}
        return sum(self._devices_of(self.allocations.get(each)).total() for each in claims)

    def _place(self, unit: _Unit, number: int | None) -> bool:
        """
        Place the pods of a unit; return False if one finds no node.

        A pod that needs `number` devices is first tried on nodes with few free devices. With None,
        and in a gang, a pod goes where the scheduler puts it.
        """
        profile = profile_named(unit.members[0].pod.spec.scheduler_name)
        if unit.gang is not None:
            outcome = place_gang_now(unit.gang, unit.members, self.cluster, profile=profile)
            if not isinstance(outcome, GangPlaced) or outcome.waiting:
                return False
            for each in outcome.placements:
                self._add_placement(each)
            return True
        [member] = unit.members
        for node in () if number is None else self._fullest(number):
            on_node = place_on(
                node,
                member.pod,
                member.wanted,
                member.allocated,
                self.cluster,
                extended=member.extended,
                profile=profile,
            )
            if isinstance(on_node, Placed):
                self._add_placement(
                    MemberPlaced(member, on_node.node, on_node.amounts, on_node.given)
                )
                return True
        placed = place_anywhere(member, self.cluster, profile)
        if not isinstance(placed, Placed):
            return False
        self._add_placement(MemberPlaced(member, placed.node, placed.amounts, placed.given))
        return True

    def _fullest(self, number: int) -> Sequence[str]:
        """Return nodes with so many free devices, those with the fewest first."""
        fitting = (
            (free, node)
            for node, free in self._free.items()
            if free >= number and node not in self._cordoned
        )
        return [node for _, node in nsmallest(_TARGETS_TRIED_MAX, fitting)]

    def _add_placement(self, placed: MemberPlaced) -> None:
        placed.add_to(self._simulation)
        self.places[placed.member.name] = placed
        for claim, allocation in placed.given.items():
            self._allocate(claim, allocation)


@dataclass(frozen=True, slots=True)
class _Step:
    """A node to free, and the pods that leave it, with the other members of their gangs."""

    node: str
    units: tuple[_Unit, ...]


def defragment(world: World, driver: str, *, release: Release, chance: Chance) -> Defragmentation:
    """
    Return the pods whose move frees whole nodes of a driver; the world stays as it is.

    Raises `DriverError`.
    """
    drivers = sorted({each.spec.driver for each in world.slices if each.spec.node_name})
    if driver not in drivers:
        raise DriverError(f"driver {driver!r} has no devices on nodes; {hint(driver, drivers)}")
    units, fixed = _units(world)

    def make() -> _Copy:
        cluster = case_of(world, release=release, chance=chance).cluster
        return _Copy(world, driver, cluster)

    copy = make()
    whole = copy.whole()
    steps, tried, is_complete = _search(copy, world, units)
    replayed = make()
    for node in whole:
        replayed.cordon(node)
    confirmed = all(replayed.free(step, packs=True) for step in steps) and all(
        replayed.places[name].node == placed.node for name, placed in copy.places.items()
    )
    assert confirmed, "the same moves on an equal copy have the same results"
    freed = tuple(step.node for step in steps)
    assert set(replayed.whole()) == {*whole, *freed}, "the moves free these nodes and no others"
    freely = make()
    for node in freed:
        freely.cordon(node)
    is_free = all(freely.free(step, packs=False) for step in steps)
    sources = {pod.full_name: pod.spec.node_name for pod in world.pods}
    affected = {placed.node for placed in replayed.places.values()}
    affected |= {sources[name] for name in replayed.places}
    return Defragmentation(
        driver,
        tuple(copy.nodes),
        tuple(whole),
        freed,
        tuple(
            Move(each.name, sources[each.name], replayed.places[each.name].node, unit.gang_name)
            for step in steps
            for unit in step.units
            for each in unit.members
        ),
        tuple(_fixed_pods(world, make(), fixed)),
        is_reached_freely=is_free and len(freely.whole()) >= len(whole) + len(freed),
        tried=tried,
        is_complete=is_complete,
        before=_summaries(world, driver, make().allocations, affected),
        after=_summaries(world, driver, replayed.allocations, affected),
    )


def _search(copy: _Copy, world: World, units: Mapping[str, _Unit]) -> tuple[list[_Step], int, bool]:
    """Free nodes of the copy, one after the other; return the steps that succeeded."""
    whole = copy.whole()
    for node in whole:
        copy.cordon(node)
    at: dict[str, str] = {pod.full_name: pod.spec.node_name for pod in world.pods}
    users = _users(world)
    queue = sorted(
        (sum(len(unit.members) for unit in step.units), node)
        for node in copy.nodes
        if (step := _step(copy, node, at, users, units)) is not None
    )
    steps: list[_Step] = []
    targets: set[str] = set()
    tried = placed = 0
    for number, node in queue:
        if tried == _NODES_TRIED_MAX or placed >= _PODS_PLACED_MAX:
            return steps, tried, False
        # A node that took pods is not freed again, so that each pod moves once.
        step = None if node in targets else _step(copy, node, at, users, units)
        if step is None:
            continue
        tried += 1
        placed += number
        if copy.free(step, packs=True):
            steps.append(step)
            for unit in step.units:
                for member in unit.members:
                    at[member.name] = copy.places[member.name].node
                    targets.add(at[member.name])
    return steps, tried, True


def _step(
    copy: _Copy,
    node: str,
    at: Mapping[str, str],
    users: Mapping[str, Sequence[str]],
    units: Mapping[str, _Unit],
) -> _Step | None:
    """Return the pods that have to leave a node; None if one of them cannot be moved."""
    state = copy.cluster.fleet.get(node)
    if state is None or state.node.spec.unschedulable:
        # Its devices would not be free then, either.
        return None
    found: dict[str, _Unit] = {}
    for claim in copy.claims_on(node):
        pods = users.get(claim, ())
        if not pods or any(name not in units or at[name] != node for name in pods):
            return None
        for name in pods:
            unit = units[name]
            found[unit.members[0].name] = unit
    if any(member.name in copy.places for unit in found.values() for member in unit.members):
        return None
    # Large pods first: what remains of a node is useful for small ones.
    ordered = sorted(
        found.values(),
        key=lambda unit: (-len(unit.members), -copy.devices(unit), unit.members[0].name),
    )
    return _Step(node, tuple(ordered)) if ordered else None


def _users(world: World) -> dict[str, list[str]]:
    """Return the pods for which each claim is reserved."""
    users: defaultdict[str, list[str]] = defaultdict(list)
    for claim in world.claims:
        for each in claim.status.reserved_for:
            users[claim_name(claim)].append(f"{claim.metadata.namespace}/{each.name}")
    return users


def _units(world: World) -> tuple[dict[str, _Unit], dict[str, str]]:
    """Return what moves with each pod that can be moved, and why the other pods cannot."""
    fixed: dict[str, str] = {}
    bound = [party for party in world.in_order() if party.is_bound and party.pod is not None]
    users = _users(world)
    for party in bound:
        assert party.pod is not None, "selected by its pod"
        why = _obstacle(party.pod, world)
        shared = [
            other
            for claim in party.claims
            for other in users.get(claim_name(claim), ())
            if other != party.pod.full_name
        ]
        if not why and shared:
            why = f"it shares a claim with pod {shared[0]}"
        if why:
            fixed[party.pod.full_name] = why
    members = {each.name: each for each in _unbound_members(world, fixed)}
    gangs: defaultdict[object, list[str]] = defaultdict(list)
    for party in bound:
        assert party.pod is not None, "selected by its pod"
        name = party.pod.full_name
        own_gang = party.membership
        gangs[own_gang.key if isinstance(own_gang, Membership) else name].append(name)
    units: dict[str, _Unit] = {}
    for key, names in gangs.items():
        missing = [name for name in names if name not in members]
        if missing:
            fixed.setdefault(missing[0], "a claim or template that it uses does not exist")
            for name in names:
                why = f"its gang moves as a whole, and pod {missing[0]} cannot be moved"
                fixed.setdefault(name, why)
            continue
        own = tuple(members[name] for name in names)
        unit = _Unit(own)
        if isinstance(key, GangKey):
            gang = gang_of(key, [each.pod for each in own], world.definitions)
            if isinstance(gang, Flaw):
                fixed |= dict.fromkeys(names, gang.message)
                continue
            unit = _Unit(own, gang)
        units |= dict.fromkeys(names, unit)
    return units, fixed


def _obstacle(pod: Pod, world: World) -> str:
    """Return why a pod cannot be moved; empty if it can."""
    if is_of_node(pod):
        return "it belongs to its node, as the pods of DaemonSets do"
    if pod.metadata.deletion_timestamp is not None:
        return "it is being deleted"
    if not any(owner.controller for owner in pod.metadata.owner_references):
        return "it has no controller, so no pod would replace it"
    if pod.metadata.annotations.get(DO_NOT_DISRUPT) == "true":
        return f"it has the annotation {DO_NOT_DISRUPT}"
    for budget in world.context.disruption_budgets:
        selector = budget.spec.selector
        if (
            budget.metadata.namespace == pod.metadata.namespace
            and selector is not None
            and matches_labels(selector, pod.metadata.labels)
            and (budget.status.disruptions_allowed or 0) < 1
        ):
            return f"PodDisruptionBudget {budget.metadata.name} does not allow to evict it"
    return ""


def _unbound_members(world: World, fixed: Mapping[str, str]) -> Iterator[Member]:
    """Yield the movable pods as their controllers create them again: without node and devices."""
    moving = {
        pod.full_name for pod in world.pods if pod.spec.node_name and pod.full_name not in fixed
    }
    users = _users(world)

    def before(each: Pod | ResourceClaim) -> Pod | ResourceClaim:
        if isinstance(each, Pod):
            if each.full_name not in moving:
                return each
            return changed(each, spec=changed(each.spec, node_name=""))
        own = users.get(claim_name(each), ())
        if not own or any(name not in moving for name in own):
            return each
        return changed(each, status=changed(each.status, allocation=None, reserved_for=()))

    for party in replace(world, parties=tuple(map(before, world.parties))).in_order():
        if party.pod is not None and party.pod.full_name in moving and not party.missing:
            yield member_of(party)


def _fixed_pods(world: World, copy: _Copy, fixed: Mapping[str, str]) -> Iterator[FixedPod]:
    """Yield the pods and claims that keep nodes from becoming whole."""
    users = _users(world)
    for node in copy.nodes:
        named: dict[str, str] = {}
        for claim in copy.claims_on(node):
            if not users.get(claim):
                named[claim] = "the claim is allocated, and no pod uses it"
            named |= {name: fixed[name] for name in users.get(claim, ()) if name in fixed}
        yield from (FixedPod(name, node, why) for name, why in named.items())


def _summaries(
    world: World,
    driver: str,
    allocations: Mapping[str, AllocationResult],
    nodes: Collection[str],
) -> tuple[ModelSummary, ...]:
    """Return how many devices of the driver are free on the nodes, if they are not too many."""
    slices = [
        each for each in world.slices if each.spec.driver == driver and each.spec.node_name in nodes
    ]
    if sum(len(each.spec.devices) for each in slices) > _COUNTED_DEVICES_MAX:
        return ()
    claims = [
        changed(each, status=changed(each.status, allocation=allocations[claim_name(each)]))
        for each in world.claims
        if claim_name(each) in allocations
    ]
    views = devices_of(slices, claims, world.taint_rules, world.nodes)
    return summary_of(each for each in views if each.node in nodes)
