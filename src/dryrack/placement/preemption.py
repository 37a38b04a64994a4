"""
Preemption: which pods of lower priority have to go so that others can come.

For one pod it is kube-scheduler's: on each node all pods of lower priority are taken away, and as
many as possible put back, those first that a budget protects, then the more important ones; the
node is taken whose victims are the least. Unlike there, devices count: a claim that only victims
use is free without them.

For a gang, or a pod that needs devices of another node, all pods of lower priority are taken away
everywhere, and put back alike. No victim of the outcome could be spared by itself.

Everything is tried on the books and taken back (see `trial`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from dryrack.kinds.selectors import matches_labels
from dryrack.placement.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from dryrack.kinds.meta import LabelSelector
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.occupant import Occupant
    from dryrack.placement.place import Cluster
    from dryrack.placement.trial import Place

# As kube-scheduler: no more nodes than these are weighed against each other.
CANDIDATES_MIN = 100
_CANDIDATES_PERCENT = 10
# Kubernetes' priorities begin below zero; one more victim is never better.
_PRIORITY_FLOOR = 2**31


def _nobody(_: Occupant) -> bool:
    return False


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

    @property
    def rank(self) -> tuple[int, str, tuple[str, str]]:
        """The least is the most important: by priority, then by age."""
        pod = self.occupant
        return -pod.priority, pod.started, pod.name


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
        return min(each.occupant.started for each in self.victims if each.occupant.priority == top)


@dataclass(frozen=True, slots=True)
class NoPreemption:
    """Nothing that may go would help; `message` says it as kube-scheduler does."""

    nodes: int
    # Nodes that have nothing that may go.
    without_victims: int

    @property
    def message(self) -> str:
        counts = (
            (self.without_victims, "No preemption victims found for incoming pod"),
            (self.nodes - self.without_victims, "Preemption is not helpful for scheduling"),
        )
        told = ", ".join(f"{count} {words}" for count, words in counts if count)
        return f"preemption: 0/{self.nodes} nodes are available: {told}."


@dataclass(frozen=True, slots=True)
class Preemptor:
    """Whoever wants to come, in whose favour pods of lower priority may go."""

    priority: int
    # Pods that stay, because they belong to it.
    own: frozenset[Hashable] = frozenset()
    # Pods that go together or not at all, by the key of each of them.
    together: Mapping[Hashable, Sequence[Hashable]] = field(default_factory=dict)
    # Pods that go before all others, whatever their priority.
    yields: Callable[[Occupant], bool] = _nobody

    def units(self, fleet: Fleet, states: Iterable[NodeState]) -> list[_Unit]:
        """What could go from these nodes, the most important first."""
        found: dict[Hashable, _Unit] = {}
        for state in states:
            for key in state.occupants:
                unit = self._unit(fleet, key)
                if unit is not None:
                    found[unit.victims[0].key] = unit
        return sorted(found.values(), key=self._importance)

    def _importance(self, unit: _Unit) -> tuple[bool, tuple[int, str, tuple[str, str]]]:
        first = unit.victims[0]
        return self.yields(first.occupant), first.rank

    def _unit(self, fleet: Fleet, key: Hashable) -> _Unit | None:
        """The pod with all that go with it; None if one of these may not."""
        known = ((each, fleet.occupant(each)) for each in self.together.get(key, (key,)))
        victims = [Victim(each, pod) for each, pod in known if pod is not None]
        if not all(self._may_go(each) for each in victims):
            return None
        return _Unit(tuple(sorted(victims, key=lambda victim: victim.rank)))

    def _may_go(self, victim: Victim) -> bool:
        pod = victim.occupant
        return victim.key not in self.own and (pod.priority < self.priority or self.yields(pod))


@dataclass(frozen=True, slots=True)
class _Unit:
    """Pods that go together, the most important first."""

    victims: tuple[Victim, ...]

    @property
    def keys(self) -> Iterator[Hashable]:
        return (each.key for each in self.victims)


def preempt_on_node(
    cluster: Cluster,
    preemptor: Preemptor,
    fits_on: Callable[[str], bool],
    budgets: Sequence[DisruptionBudget] = (),
) -> Preemption | NoPreemption:
    """
    The node where the least has to go for one pod, and what that is.

    `fits_on` tells whether the pod could be on a node as the books are at that moment.
    """
    found: list[Preemption] = []
    without_victims = 0
    enough = max(CANDIDATES_MIN, len(cluster.fleet) * _CANDIDATES_PERCENT // 100)
    for state in cluster.fleet.states():
        units = preemptor.units(cluster.fleet, (state,))
        without_victims += not units
        least = _Reprieve(cluster, partial(fits_on, state.name), budgets).least(units)
        if least is not None:
            found.append(replace(least, node=state.name))
        if len(found) > enough and any(not each.violations for each in found):
            break
    return _best(found) or NoPreemption(len(cluster.fleet), without_victims)


def preempt_anywhere(
    cluster: Cluster,
    preemptor: Preemptor,
    fits: Callable[[], bool],
    budgets: Sequence[DisruptionBudget] = (),
) -> Preemption | NoPreemption:
    """What has to go from any nodes, so that all of a gang can come."""
    states = cluster.fleet.states()
    least = _Reprieve(cluster, fits, budgets).least(preemptor.units(cluster.fleet, states))
    if least is not None:
        return least
    without_victims = sum(not preemptor.units(cluster.fleet, (state,)) for state in states)
    return NoPreemption(len(states), without_victims)


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
    fits: Callable[[], bool]
    budgets: Sequence[DisruptionBudget]

    def least(self, units: Sequence[_Unit]) -> Preemption | None:
        """Who still has to go; None if it does not help, or nobody needs to."""
        if not units:
            return None
        protected, others = self._by_budget(units)
        with Trial(self.cluster) as trial:
            places = {key: trial.remove(key) for unit in units for key in unit.keys}
            if not self.fits():
                return None
            violating = [*self._gone(trial, places, protected)]
            gone = [*violating, *self._gone(trial, places, others)]
        victims = sorted((each for unit in gone for each in unit.victims), key=lambda it: it.rank)
        return Preemption(tuple(victims), len(violating)) if victims else None

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

    def _gone(
        self, trial: Trial, places: Mapping[Hashable, Place | None], units: Sequence[_Unit]
    ) -> Iterator[_Unit]:
        """
        Those that cannot be put back, in order.

        What can be put back together could be one by one: many are tried at once.
        """
        if not units:
            return
        mark = trial.mark()
        for place in (places[key] for unit in units for key in unit.keys):
            if place is not None:
                trial.put_back(place)
        if self.fits():
            return
        trial.rewind(mark)
        if len(units) == 1:
            yield units[0]
            return
        half = len(units) // 2
        yield from self._gone(trial, places, units[:half])
        yield from self._gone(trial, places, units[half:])
