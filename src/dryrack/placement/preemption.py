"""
Preemption: find the pods of lower priority that have to be deleted so that others fit.

For one pod it is kube-scheduler's algorithm: on each node it removes all pods of lower priority,
and puts back as many as possible, first those that a disruption budget protects, then the more
important ones. It chooses the node whose victims are the least. Unlike kube-scheduler, it includes
devices: a claim that only victims use is free without them.

For a gang, or a pod that needs devices of another node, it removes all pods of lower priority on
all nodes, and puts them back in the same way. No single victim of the outcome could be spared.

Preemption does not leave too few pods of a gang to run: it takes those that the gang can spare one
by one, and the others all together or not at all, wherever they are.

It tries everything in a simulation (see `simulation`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from dryrack.kinds.selectors import matches_labels
from dryrack.placement.attempt import Refused
from dryrack.placement.gangs.dialects import Dialect
from dryrack.placement.outcomes import Placed
from dryrack.placement.place import place_on, unresolvable_nodes
from dryrack.placement.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Hashable,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from dryrack.kinds.meta import LabelSelector
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Profile
    from dryrack.placement.gangs.dialects import Definition, GangKey
    from dryrack.placement.gangs.members import Member
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.occupant import Occupant
    from dryrack.placement.outcomes import Cluster
    from dryrack.placement.simulation import PodPlacement

# As in kube-scheduler: no more candidate nodes than these are compared.
CANDIDATES_MIN = 100
_CANDIDATES_PERCENT = 10
# Kubernetes' priorities begin below zero; one more victim is never better.
_PRIORITY_FLOOR = 2**31
# As in kube-scheduler: a pod that the kubelet has not started is younger than all started pods.
_NOT_STARTED = "9999-12-31T23:59:59Z"
_NO_VICTIMS = "No preemption victims found for incoming pod"
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
# The dialects of Kubernetes itself.
NATIVE_DIALECTS = (Dialect.POD_GROUP, Dialect.WORKLOAD)


def _never_yields(_: Occupant) -> bool:
    return False


def _no_group(_: Hashable) -> None:
    return None


def _is_ungrouped(_: Hashable) -> bool:
    return False


def _start_of(pod: Occupant) -> str:
    return pod.started


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """A PodDisruptionBudget with the disruptions that it allows now."""

    namespace: str
    selector: LabelSelector | None
    allowed: int
    # Pods whose eviction it counts already.
    disrupted: frozenset[str] = frozenset()

    def covers(self, pod: Occupant) -> bool:
        namespace, name = pod.name
        selector = self.selector
        return (
            self.namespace == namespace
            and bool(pod.labels)
            and selector is not None
            and bool(selector.match_labels or selector.match_expressions)
            and name not in self.disrupted
            and matches_labels(selector, pod.labels)
        )


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that has to be deleted, with its key in the fleet."""

    key: Hashable
    occupant: Occupant
    started: str

    @property
    def rank(self) -> tuple[int, str, tuple[str, str]]:
        """Return the order of importance by priority, then age; the most important is first."""
        pod = self.occupant
        return -pod.priority, self.started, pod.name


@dataclass(frozen=True, slots=True)
class Preemption:
    """The victims, the most important first; the node, if it is for a single pod."""

    victims: tuple[Victim, ...]
    # How many victims a budget protects that allows no more disruptions.
    violations: int = 0
    node: str = ""

    @property
    def weight(self) -> tuple[int, int, int, int]:
        """Return the cost by which kube-scheduler compares nodes, before the start times."""
        priorities = [each.occupant.priority for each in self.victims]
        return (
            self.violations,
            max(priorities),
            sum(priority + _PRIORITY_FLOOR for priority in priorities),
            len(priorities),
        )

    @property
    def oldest(self) -> str:
        """Return the earliest start of the most important victims: the later the better."""
        top = max(each.occupant.priority for each in self.victims)
        return min(each.started for each in self.victims if each.occupant.priority == top)


@dataclass(frozen=True, slots=True)
class NoPreemption:
    """No set of victims would help; `message` is that of kube-scheduler."""

    nodes: int
    # The number of nodes by message.
    words: Mapping[str, int]

    @property
    def message(self) -> str:
        counts = sorted(f"{count} {words}" for words, count in self.words.items() if count)
        return f"preemption: 0/{self.nodes} nodes are available: {', '.join(counts)}."


@dataclass(frozen=True, slots=True)
class DisruptionGroup:
    """Pods of which at least `min_count` have to run together, or none; None means all."""

    key: Hashable
    members: Collection[Hashable]
    min_count: int | None = None

    def spare(self, running: int) -> int:
        """Return how many of the running pods may be deleted without the others."""
        return 0 if self.min_count is None else max(0, running - self.min_count)


def disruption_group(
    key: GangKey,
    members: Collection[Hashable],
    min_count: int | None,
    definition: Definition | None,
) -> DisruptionGroup | None:
    """
    Return the pods that are preempted with a member of a gang; None if each is preempted alone.

    `min_count` is the minimum in the pods' labels. A native group has its own disruption mode.
    """
    if key.dialect not in NATIVE_DIALECTS:
        minimum = min_count if definition is None else definition.min_count
        return DisruptionGroup(key, members, minimum)
    if definition is None or not definition.disrupted_whole:
        return None
    return DisruptionGroup(key, members)


@dataclass(frozen=True, slots=True)
class Preemptor:
    """A pod or a gang for which pods of lower priority may be preempted."""

    priority: int
    # Its own pods, which are not preempted.
    own: frozenset[Hashable] = frozenset()
    # Returns the group of pods that are preempted together with a pod, by its key.
    group_of: Callable[[Hashable], DisruptionGroup | None] = _no_group
    # Whether a pod is preempted before all others, whatever its priority.
    yields: Callable[[Occupant], bool] = _never_yields
    # Returns when the kubelet started a pod, if it did; an occupant does not learn of that.
    started: Callable[[Occupant], str | None] = _start_of
    # Whether a pod is in a native group, by its key.
    is_grouped: Callable[[Hashable], bool] = _is_ungrouped

    def units(self, fleet: Fleet, states: Iterable[NodeState]) -> list[_Unit]:
        """Return the pods on these nodes that may be preempted, the most important first."""
        units: list[_Unit] = []
        groups: dict[Hashable, tuple[DisruptionGroup, list[Hashable]]] = {}
        for key in (key for state in states for key in state.occupants):
            group = self.group_of(key)
            if group is None:
                units += (_Unit((each,)) for each in self._victims(fleet, (key,)))
            else:
                groups.setdefault(group.key, (group, []))[1].append(key)
        for group, here in groups.values():
            # The group spares its least important pods one by one, and the others only together.
            running = [each for each in group.members if fleet.occupant(each) is not None]
            victims = self._victims(fleet, here)
            spare = group.spare(len(running))
            single = victims[max(0, len(victims) - spare) :]
            keys = {each.key for each in single}
            others = [each for each in running if each not in keys]
            together = self._victims(fleet, others) if len(single) < len(here) else ()
            core = together[0].key if together and len(together) == len(others) else None
            if core is not None:
                units.append(_Unit(together))
            units += (_Unit((each,), core) for each in single)
        by_group = fleet.behaviour.ranks_victims_by_group

        def rank(unit: _Unit) -> tuple[bool, int, tuple[bool, int], str, tuple[str, str]]:
            first = unit.victims[0]
            is_alone = by_group and not self.is_grouped(first.key)
            size = -len(unit.victims) if by_group and not is_alone else 0
            priority, started, name = first.rank
            return self.yields(first.occupant), priority, (is_alone, size), started, name

        return sorted(units, key=rank)

    def _victims(self, fleet: Fleet, keys: Iterable[Hashable]) -> tuple[Victim, ...]:
        """Return the pods that may be preempted, the most important first."""
        victims = []
        for key in keys:
            pod = None if key in self.own else fleet.occupant(key)
            if pod is not None and (pod.priority < self.priority or self.yields(pod)):
                victims.append(Victim(key, pod, self.started(pod) or _NOT_STARTED))
        return tuple(sorted(victims, key=lambda victim: victim.rank))


@dataclass(frozen=True, slots=True)
class _Unit:
    """Pods that are preempted together, the most important first."""

    victims: tuple[Victim, ...]
    # The first victim of the unit without which this pod cannot stay, as too few would run.
    core: Hashable | None = None

    @property
    def keys(self) -> Iterator[Hashable]:
        return (each.key for each in self.victims)


def no_victims(cluster: Cluster, unresolvable: int) -> NoPreemption:
    """Return the message if no pod may be preempted, and so many nodes cannot be helped anyhow."""
    nodes = len(cluster.fleet)
    return NoPreemption(nodes, {_NO_VICTIMS: nodes - unresolvable, _NOT_HELPFUL: unresolvable})


def preempt_on_node(
    cluster: Cluster,
    preemptor: Preemptor,
    try_on: Callable[[str], Placed | Refused],
    budgets: Sequence[DisruptionBudget] = (),
    *,
    unresolvable: Collection[str] = (),
) -> Preemption | NoPreemption:
    """
    Find the node with the least victims for one pod.

    `try_on` places the pod on a node as the cluster is at that moment, or returns why the node
    refuses it. Nodes that are `unresolvable` refuse the pod even if all pods leave them.
    """
    candidates: list[Preemption] = []
    words: Counter[str] = Counter()
    enough = max(CANDIDATES_MIN, len(cluster.fleet) * _CANDIDATES_PERCENT // 100)

    def refuse_on(node: str) -> Sequence[str] | None:
        outcome = try_on(node)
        return outcome.words if isinstance(outcome, Refused) else None

    for state in cluster.fleet.states():
        if state.name in unresolvable:
            words[_NOT_HELPFUL] += 1
            continue
        units = preemptor.units(cluster.fleet, (state,))
        least = _Reprieve(cluster, partial(refuse_on, state.name), budgets).least(units)
        if isinstance(least, Preemption):
            candidates.append(replace(least, node=state.name))
        else:
            words.update(least)
        if len(candidates) > enough and any(not each.violations for each in candidates):
            break
    if not candidates:
        return NoPreemption(len(cluster.fleet), words)
    lightest = min(each.weight for each in candidates)
    best = (each for each in candidates if each.weight == lightest)
    return max(best, key=lambda each: each.oldest)


def preempt_for_pod(
    member: Member,
    cluster: Cluster,
    preemptor: Preemptor,
    profile: Profile,
    budgets: Sequence[DisruptionBudget] = (),
) -> tuple[Preemption, Placed] | NoPreemption:
    """Return the least victims for one pod, and the placement of the pod without them."""
    asked = (member.pod, member.wanted, member.allocated, cluster)

    def try_on(node: str) -> Placed | Refused:
        return place_on(node, *asked, extended=member.extended, profile=profile)

    preemption = preempt_on_node(
        cluster,
        preemptor,
        try_on,
        budgets,
        unresolvable=unresolvable_nodes(*asked, extended=member.extended, profile=profile),
    )
    if isinstance(preemption, NoPreemption):
        return preemption
    with Simulation(cluster) as simulation:
        for victim in preemption.victims:
            simulation.remove_pod(victim.key)
        placed = try_on(preemption.node)
    assert isinstance(placed, Placed), "the pod fits without the victims"
    return preemption, placed


def preempt_anywhere(
    cluster: Cluster,
    preemptor: Preemptor,
    fits: Callable[[], bool],
    budgets: Sequence[DisruptionBudget] = (),
) -> Preemption | NoPreemption:
    """Find the least victims on any nodes, so that a whole gang fits."""
    states = cluster.fleet.states()
    reprieve = _Reprieve(cluster, lambda: None if fits() else (_NOT_HELPFUL,), budgets)
    least = reprieve.least(preemptor.units(cluster.fleet, states))
    if isinstance(least, Preemption):
        return least
    without = sum(not preemptor.units(cluster.fleet, (state,)) for state in states)
    return NoPreemption(len(states), {_NO_VICTIMS: without, _NOT_HELPFUL: len(states) - without})


@dataclass(frozen=True, slots=True)
class _Reprieve:
    """Removes all pods that may be preempted, and puts back as many as possible."""

    cluster: Cluster
    # Returns why the preemptor does not fit at that moment; None if it fits.
    refusal: Callable[[], Sequence[str] | None]
    budgets: Sequence[DisruptionBudget]

    def least(self, units: Sequence[_Unit]) -> Preemption | Sequence[str]:
        """Return the remaining victims, or why preemption does not help."""
        if not units:
            return (_NO_VICTIMS,)
        protected: list[_Unit] = []
        others: list[_Unit] = []
        allowed = [budget.allowed for budget in self.budgets]
        for unit in units:
            violates = False
            for victim in unit.victims:
                for index, budget in enumerate(self.budgets):
                    if budget.covers(victim.occupant):
                        allowed[index] -= 1
                        violates = violates or allowed[index] < 0
            (protected if violates else others).append(unit)
        with Simulation(self.cluster) as simulation:
            places = {key: simulation.remove_pod(key) for unit in units for key in unit.keys}
            refusal = self.refusal()
            if refusal is not None:
                return refusal
            gone: list[_Unit] = []
            self._put_back(simulation, places, protected, gone)
            self._put_back(simulation, places, others, gone)
            # These were put back before other pods of their gang became victims.
            late = _without_core(protected, gone)
            for key in (key for unit in late for key in unit.keys):
                simulation.remove_pod(key)
            refusal = self.refusal() if late else None
            if refusal is not None:
                return refusal
            gone += late
        firsts = {unit.victims[0].key for unit in protected}
        violations = sum(unit.victims[0].key in firsts for unit in gone)
        victims = sorted((each for unit in gone for each in unit.victims), key=lambda it: it.rank)
        return Preemption(tuple(victims), violations) if victims else (_NOT_HELPFUL,)

    def _put_back(
        self,
        simulation: Simulation,
        places: Mapping[Hashable, PodPlacement | None],
        units: Sequence[_Unit],
        gone: list[_Unit],
    ) -> None:
        """
        Put back the units that can stay, in order; add the others to `gone`.

        Units that can be put back together can be put back one by one: so many are tried at once.
        """
        lost = _without_core(units, gone)
        if lost:
            gone += lost
            units = [unit for unit in units if unit not in lost]
        if not units:
            return
        mark = simulation.mark()
        for place in (places[key] for unit in units for key in unit.keys):
            if place is not None:
                simulation.put_back(place)
        if self.refusal() is None:
            return
        simulation.rewind(mark)
        if len(units) == 1:
            gone.append(units[0])
            return
        half = len(units) // 2
        self._put_back(simulation, places, units[:half], gone)
        self._put_back(simulation, places, units[half:], gone)


def _without_core(units: Sequence[_Unit], gone: Sequence[_Unit]) -> list[_Unit]:
    """Return the units that cannot stay, because the core of their group is gone."""
    bound = [unit for unit in units if unit.core is not None]
    lost = {unit.victims[0].key for unit in gone} if bound else set()
    return [unit for unit in bound if unit.core in lost and unit not in gone]
