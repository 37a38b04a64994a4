"""
The index of the pods on nodes: the counts that were asked for lately, and who brings which terms.

A count costs a look at every pod when it is first asked for, and nothing from then on.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from dryrack.kinds.selectors import SelectorError
from dryrack.placement.index.affinity_terms import NO_TERMS, PodTerms
from dryrack.placement.index.term_counts import Brought, TermCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from dryrack.placement.index.pod_counts import PodCounts
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.occupant import Occupant

# Questions come from few templates at a time; one that is met again costs a look at every pod.
COUNTS_MAX = 512


class PodIndex:
    """The counts that were asked for lately, and the affinity terms of the pods on nodes."""

    def __init__(self, states: Mapping[str, NodeState]) -> None:
        """`states` are those of the nodes that are there."""
        self._states = states
        self._counts: dict[Hashable, PodCounts] = {}
        # By namespace, so that a pod is not shown to those who do not ask about it.
        self._listening: dict[str | None, dict[int, PodCounts]] = defaultdict(dict)
        # Pods by the terms that they bring, as far as such pods are on nodes.
        self.anti_affinity = TermCounts()
        self.affinity = TermCounts()
        self.preferred = TermCounts()

    def counts(self, question: Hashable, make: Callable[[], PodCounts]) -> PodCounts:
        """The pods that a question is about; `make` says which, if it was not asked lately."""
        found = self._counts.pop(question, None)
        if found is None:
            found = make()
            for state in self._states.values():
                found.recount(state)
            for namespace in _namespaces(found):
                self._listening[namespace][id(found)] = found
        self._counts[question] = found
        if len(self._counts) > COUNTS_MAX:
            oldest = self._counts.pop(next(iter(self._counts)))
            oldest.is_kept = False
            self._ignore(oldest)
        return found

    def put(self, state: NodeState) -> None:
        """The node is there, as it is now, with its pods."""
        self.drop(state.name)
        for counts in self._counts.values():
            counts.recount(state)
        for occupant in state.occupants.values():
            self._count_terms(state, occupant, 1)

    def drop(self, node: str) -> None:
        """The node is not there."""
        for counts in self._counts.values():
            counts.forget(node)
        for terms in (self.anti_affinity, self.affinity, self.preferred):
            terms.forget(node)

    def change(self, state: NodeState, occupant: Occupant, by: int) -> None:
        """The pod came to a node that is there (1), or left it (-1)."""
        for namespace in (occupant.name[0], None):
            if namespace in self._listening:
                for counts in self._listening[namespace].values():
                    counts.change(state, occupant, by)
        self._count_terms(state, occupant, by)

    def _count_terms(self, state: NodeState, occupant: Occupant, by: int) -> None:
        if occupant.affinity is None:
            return
        terms = _terms_of(occupant)
        self.anti_affinity.add(state, map(Brought, terms.anti_affinity), by)
        self.affinity.add(state, map(Brought, terms.affinity), by)
        self.preferred.add(state, (Brought(*each) for each in terms.preferred), by)

    def _ignore(self, counts: PodCounts) -> None:
        for namespace in _namespaces(counts):
            del self._listening[namespace][id(counts)]
            if not self._listening[namespace]:
                del self._listening[namespace]


def _namespaces(counts: PodCounts) -> Iterable[str | None]:
    return (None,) if counts.namespaces is None else counts.namespaces


def _terms_of(occupant: Occupant) -> PodTerms:
    try:
        return PodTerms.of(occupant.affinity, occupant.name[0])
    except SelectorError:
        # Nobody can be meant by terms that cannot be read.
        return NO_TERMS
