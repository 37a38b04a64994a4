"""
Preemption: which pods of lower priority have to go so that others can come.

For one pod it is kube-scheduler's: on each node all pods of lower priority are taken away, and as
many as possible put back, those first that a budget protects, then the more important ones; the
node is taken whose victims are the least. Unlike there, devices count: a claim that only victims
use is free without them.

For a gang, or a pod that needs devices of another node, all pods of lower priority are taken away
everywhere, and put back alike. No victim of the outcome could be spared by itself.

Pods of one gang are not left behind as too few of it to run: so many as it can spare go one by one,
and the others all together or not at all, wherever they are.

Everything is tried on the books and taken back (see `simulation`).
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

# As kube-scheduler: no more nodes than these are weighed against each other.
CANDIDATES_MIN = 100
_CANDIDATES_PERCENT = 10
# Kubernetes' priorities begin below zero; one more victim is never better.
_PRIORITY_FLOOR = 2**31
# As kube-scheduler: a pod that the kubelet has not taken up is younger than all that it has.
_NOT_STARTED = "9999-12-31T23:59:59Z"
_NO_VICTIMS = "No preemption victims found for incoming pod"
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
# The dialects by which Kubernetes itself knows gangs.
NATIVE_DIALECTS = (Dialect.POD_GROUP, Dialect.WORKLOAD)


def _nobody(_: Occupant) -> bool:
    return False


def _alone(_: Hashable) -> None:
    return None


def _by_the_books(pod: Occupant) -> str:
    return pod.started


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """A PodDisruptionBudget as it is counted now."""

    namespace: str
    selector: LabelSelector | None
    allowed: int
    # Pods whose eviction is counted already.
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
    """A pod that has to go, by the key under which the fleet knows it."""

    key: Hashable
    occupant: Occupant
    started: str

    @property
    def rank(self) -> tuple[int, str, tuple[str, str]]:
        """The least is the most important: by priority, then by age."""
        pod = self.occupant
        return -pod.priority, self.started, pod.name


@dataclass(frozen=True, slots=True)
class Preemption:
    """Who has to go, the more important first; the node, if it is for a single pod."""

    victims: tuple[Victim, ...]
    # How many of them are protected by a budget that allows no more.
    violations: int = 0
    node: str = ""

    @property
    def weight(self) -> tuple[int, int, int, int]:
        """The less the better, as kube-scheduler weighs nodes; the start of the oldest is last."""
        priorities = [each.occupant.priority for each in self.victims]
        return (
            self.violations,
            max(priorities),
            sum(priority + _PRIORITY_FLOOR for priority in priorities),
            len(priorities),
        )

    @property
    def oldest(self) -> str:
        """When the first of the most important victims began: the later the better."""
        top = max(each.occupant.priority for each in self.victims)
        return min(each.started for each in self.victims if each.occupant.priority == top)


@dataclass(frozen=True, slots=True)
class NoPreemption:
    """Nothing that may go would help; `message` says it as kube-scheduler does."""

    nodes: int
    # What is said of nodes, and of how many of them.
    words: Mapping[str, int]

    @property
    def message(self) -> str:
        told = ", ".join(sorted(f"{count} {words}" for words, count in self.words.items() if count))
        return f"preemption: 0/{self.nodes} nodes are available: {told}."


@dataclass(frozen=True, slots=True)
class DisruptionGroup:
    """Pods of which so many have to run together, or none; all of them, if no number is said."""

    key: Hashable
    members: Collection[Hashable]
    min_count: int | None = None

    def spare(self, running: int) -> int:
        """How many may go by themselves."""
        return 0 if self.min_count is None else max(0, running - self.min_count)


def disruption_group(
    key: GangKey,
    members: Collection[Hashable],
    min_count: int | None,
    definition: Definition | None,
) -> DisruptionGroup | None:
    """
    Return the pods that go together with a member of a gang; None if each goes by itself.

    `min_count` is the minimum that the pods name. A native group says itself how it is disrupted.
    """
    if key.dialect not in NATIVE_DIALECTS:
        minimum = min_count if definition is None else definition.min_count
        return DisruptionGroup(key, members, minimum)
    if definition is None or not definition.disrupted_whole:
        return None
    return DisruptionGroup(key, members)


@dataclass(frozen=True, slots=True)
class Preemptor:
    """Whoever wants to come, in whose favour pods of lower priority may go."""

    priority: int
    # Pods that stay, because they belong to it.
    own: frozenset[Hashable] = frozenset()
    # The pods that a pod is not to be parted from, by its key.
    group_of: Callable[[Hashable], DisruptionGroup | None] = _alone
    # Pods that go before all others, whatever their priority.
    yields: Callable[[Occupant], bool] = _nobody
    # When the kubelet took a pod up, if it did: the books are not told of that.
    started: Callable[[Occupant], str | None] = _by_the_books

    def units(self, fleet: Fleet, states: Iterable[NodeState]) -> list[_Unit]:
        """What could go from these nodes, the most important first."""
        found: list[_Unit] = []
        groups: dict[Hashable, tuple[DisruptionGroup, list[Hashable]]] = {}
        for key in (key for state in states for key in state.occupants):
            group = self.group_of(key)
            if group is None:
                found += (_Unit((each,)) for each in self._victims(fleet, (key,)))
            else:
                groups.setdefault(group.key, (group, []))[1].append(key)
        for group, here in groups.values():
            found += self._units_of(fleet, group, here)
        return sorted(found, key=self._importance)

    def _importance(self, unit: _Unit) -> tuple[bool, tuple[int, str, tuple[str, str]]]:
        first = unit.victims[0]
        return self.yields(first.occupant), first.rank

    def _units_of(
        self, fleet: Fleet, group: DisruptionGroup, here: Sequence[Hashable]
    ) -> Iterator[_Unit]:
        """The least important that the group can spare, and all the others with them as one."""
        running = [each for each in group.members if fleet.occupant(each) is not None]
        victims = self._victims(fleet, here)
        spare = group.spare(len(running))
        single = victims[max(0, len(victims) - spare) :]
        keys = {each.key for each in single}
        others = [each for each in running if each not in keys]
        together = self._victims(fleet, others) if len(single) < len(here) else ()
        core = together[0].key if together and len(together) == len(others) else None
        if core is not None:
            yield _Unit(together)
        yield from (_Unit((each,), core) for each in single)

    def _victims(self, fleet: Fleet, keys: Iterable[Hashable]) -> tuple[Victim, ...]:
        """Those of the pods that may go, the most important first."""
        found = []
        for key in keys:
            pod = fleet.occupant(key)
            if pod is not None and self._may_go(key, pod):
                found.append(Victim(key, pod, self.started(pod) or _NOT_STARTED))
        return tuple(sorted(found, key=lambda victim: victim.rank))

    def _may_go(self, key: Hashable, pod: Occupant) -> bool:
        return key not in self.own and (pod.priority < self.priority or self.yields(pod))


@dataclass(frozen=True, slots=True)
class _Unit:
    """Pods that go together, the most important first."""

    victims: tuple[Victim, ...]
    # The first of those without whom this one cannot stay: too few would be left to run.
    core: Hashable | None = None

    @property
    def keys(self) -> Iterator[Hashable]:
        return (each.key for each in self.victims)


def no_victims(cluster: Cluster, unresolvable: int) -> NoPreemption:
    """What is said where no pod at all may go; so many nodes would not be helped by it anyhow."""
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
    The node where the least has to go for one pod, and what that is.

    `try_on` puts the pod on a node as the books are at that moment, or tells why not. Nodes that
    are `unresolvable` refuse it for what no pod that goes can change.
    """
    found: list[Preemption] = []
    told: Counter[str] = Counter()
    enough = max(CANDIDATES_MIN, len(cluster.fleet) * _CANDIDATES_PERCENT // 100)
    for state in cluster.fleet.states():
        if state.name in unresolvable:
            told[_NOT_HELPFUL] += 1
            continue
        units = preemptor.units(cluster.fleet, (state,))
        refusal = partial(_refusal, try_on, state.name)
        least = _Reprieve(cluster, refusal, budgets).least(units)
        if isinstance(least, Preemption):
            found.append(replace(least, node=state.name))
        else:
            told.update(least)
        if len(found) > enough and any(not each.violations for each in found):
            break
    return _best(found) or NoPreemption(len(cluster.fleet), told)


def preempt_for_pod(
    member: Member,
    cluster: Cluster,
    preemptor: Preemptor,
    profile: Profile,
    budgets: Sequence[DisruptionBudget] = (),
) -> tuple[Preemption, Placed] | NoPreemption:
    """Return the least that has to go for one pod, and where the pod goes when it is gone."""
    member_parts = (member.pod, member.wanted, member.allocated, cluster)
    ask = partial(place_on, extended=member.extended, profile=profile)
    found = preempt_on_node(
        cluster,
        preemptor,
        lambda node: ask(node, *member_parts),
        budgets,
        unresolvable=unresolvable_nodes(*member_parts, extended=member.extended, profile=profile),
    )
    if isinstance(found, NoPreemption):
        return found
    with Simulation(cluster) as simulation:
        for victim in found.victims:
            simulation.remove_pod(victim.key)
        placed = ask(found.node, *member_parts)
    assert isinstance(placed, Placed), "it was found to fit"
    return found, placed


def _refusal(try_on: Callable[[str], Placed | Refused], node: str) -> Sequence[str] | None:
    tried = try_on(node)
    return tried.words if isinstance(tried, Refused) else None


def preempt_anywhere(
    cluster: Cluster,
    preemptor: Preemptor,
    fits: Callable[[], bool],
    budgets: Sequence[DisruptionBudget] = (),
) -> Preemption | NoPreemption:
    """What has to go from any nodes, so that all of a gang can come."""
    states = cluster.fleet.states()
    reprieve = _Reprieve(cluster, lambda: None if fits() else (_NOT_HELPFUL,), budgets)
    least = reprieve.least(preemptor.units(cluster.fleet, states))
    if isinstance(least, Preemption):
        return least
    without = sum(not preemptor.units(cluster.fleet, (state,)) for state in states)
    return NoPreemption(len(states), {_NO_VICTIMS: without, _NOT_HELPFUL: len(states) - without})


def _best(found: Sequence[Preemption]) -> Preemption | None:
    """The first of those whose victims are the least."""
    if not found:
        return None
    least = min(each.weight for each in found)
    return max((each for each in found if each.weight == least), key=lambda each: each.oldest)


@dataclass(frozen=True, slots=True)
class _Reprieve:
    """Takes all away that may go, and puts back what can stay."""

    cluster: Cluster
    # What is against those who want to come, as the books are; None if they fit.
    refusal: Callable[[], Sequence[str] | None]
    budgets: Sequence[DisruptionBudget]

    def least(self, units: Sequence[_Unit]) -> Preemption | Sequence[str]:
        """Who still has to go; or why it does not help."""
        if not units:
            return (_NO_VICTIMS,)
        protected, others = self._by_budget(units)
        with Simulation(self.cluster) as simulation:
            places = {key: simulation.remove_pod(key) for unit in units for key in unit.keys}
            refusal = self.refusal()
            if refusal is not None:
                return refusal
            gone: list[_Unit] = []
            self._put_back(simulation, places, protected, gone)
            self._put_back(simulation, places, others, gone)
            # They were put back before the others of their gang turned out to go.
            late = _dragged(protected, gone)
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

    def _by_budget(self, units: Sequence[_Unit]) -> tuple[list[_Unit], list[_Unit]]:
        """Those that a budget protects, if all others go, and those that none does."""
        left = [budget.allowed for budget in self.budgets]
        protected: list[_Unit] = []
        others: list[_Unit] = []
        for unit in units:
            violates = False
            for victim in unit.victims:
                for index, budget in enumerate(self.budgets):
                    if budget.covers(victim.occupant):
                        left[index] -= 1
                        violates = violates or left[index] < 0
            (protected if violates else others).append(unit)
        return protected, others

    def _put_back(
        self,
        simulation: Simulation,
        places: Mapping[Hashable, PodPlacement | None],
        units: Sequence[_Unit],
        gone: list[_Unit],
    ) -> None:
        """
        Those that cannot be put back are gone, in order.

        What can be put back together could be one by one: many are tried at once.
        """
        dragged = _dragged(units, gone)
        if dragged:
            gone += dragged
            units = [unit for unit in units if unit not in dragged]
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


def _dragged(units: Sequence[_Unit], gone: Sequence[_Unit]) -> list[_Unit]:
    """Those that may not stay, because the others of their group do not."""
    bound = [unit for unit in units if unit.core is not None]
    lost = {unit.victims[0].key for unit in gone} if bound else set()
    return [unit for unit in bound if unit.core in lost and unit not in gone]
