"""
The index of the pods on nodes: the counts that were used lately, and the pods' affinity terms.

A count looks at every pod when it is first used, and then costs nothing.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from dryrack.kinds.selectors import SelectorError
from dryrack.placement.index.affinity_terms import PodTerms
from dryrack.placement.index.pod_counts import Brought, TermCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from dryrack.placement.index.pod_counts import PodCounts
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.occupant import Occupant

# Pods come from few templates at a time. A count that was dropped has to look at every pod again.
COUNTS_MAX = 512


class PodIndex:
    """The counts that were used lately, and the affinity terms of the pods on nodes."""

    def __init__(self, states: Mapping[str, NodeState]) -> None:
        """`states` are those of the existing nodes."""
        self._states = states
        self._counts: dict[Hashable, PodCounts] = {}
        # By namespace, so that a pod updates only the counts that may select it.
        self._counts_of: dict[str | None, dict[int, PodCounts]] = defaultdict(dict)
        # The pods on nodes by their affinity terms.
        self.anti_affinity = TermCounts()
        self.affinity = TermCounts()
        self.preferred = TermCounts()

    def counts(self, key: Hashable, make: Callable[[], PodCounts]) -> PodCounts:
        """Return the count with the key; `make` creates it if it was not used lately."""
        counts = self._counts.pop(key, None)
        if counts is None:
            counts = make()
            for state in self._states.values():
                counts.recount(state)
            for namespace in _namespaces(counts):
                self._counts_of[namespace][id(counts)] = counts
        self._counts[key] = counts
        if len(self._counts) > COUNTS_MAX:
            oldest = self._counts.pop(next(iter(self._counts)))
            oldest.is_kept = False
            for namespace in _namespaces(oldest):
                del self._counts_of[namespace][id(oldest)]
                if not self._counts_of[namespace]:
                    del self._counts_of[namespace]
        return counts

    def put(self, state: NodeState) -> None:
        """Add or replace a node with its pods."""
        self.drop(state.name)
        for counts in self._counts.values():
            counts.recount(state)
        for occupant in state.occupants.values():
            self._count_terms(state, occupant, 1)

    def drop(self, node: str) -> None:
        """Remove a node."""
        for counts in self._counts.values():
            counts.forget(node)
        for terms in (self.anti_affinity, self.affinity, self.preferred):
            terms.forget(node)

    def change(self, state: NodeState, occupant: Occupant, by: int) -> None:
        """Count a pod that was added to an existing node (1), or removed from it (-1)."""
        for namespace in (occupant.name[0], None):
            if namespace in self._counts_of:
                for counts in self._counts_of[namespace].values():
                    counts.change(state, occupant, by)
        self._count_terms(state, occupant, by)

    def _count_terms(self, state: NodeState, occupant: Occupant, by: int) -> None:
        if occupant.affinity is None:
            return
        try:
            terms = PodTerms.of(occupant.affinity, occupant.name[0])
        except SelectorError:
            # Terms that cannot be parsed match no pod.
            return
        self.anti_affinity.add(state, map(Brought, terms.anti_affinity), by)
        self.affinity.add(state, map(Brought, terms.affinity), by)
        self.preferred.add(state, (Brought(*each) for each in terms.preferred), by)


def _namespaces(counts: PodCounts) -> Iterable[str | None]:
    return (None,) if counts.namespaces is None else counts.namespaces
