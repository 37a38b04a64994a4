"""Pods on nodes, counted by the affinity terms that they bring."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from dryrack.placement.index.pod_counts import NOBODY, PodCounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dryrack.placement.index.affinity_terms import AffinityTerm
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.occupant import Occupant


class Brought(NamedTuple):
    """A term that pods bring, with its weight if it is a preference."""

    term: AffinityTerm
    weight: int = 0


class TermCounts:
    """How many pods bring which term, by the domains of the term; only of pods that there are."""

    def __init__(self) -> None:
        self._counts: dict[Brought, PodCounts] = {}
        # The same by the namespaces of the pods that are meant; None is for terms that select some.
        self._about: dict[str | None, dict[Brought, PodCounts]] = defaultdict(dict)

    def __bool__(self) -> bool:
        return bool(self._counts)

    def __getitem__(self, brought: Brought) -> PodCounts:
        return self._counts.get(brought, NOBODY)

    def items(self) -> Iterable[tuple[Brought, PodCounts]]:
        return self._counts.items()

    def about(self, namespace: str) -> Iterator[tuple[Brought, PodCounts]]:
        """Those that may mean a pod of the namespace."""
        for key in (namespace, None):
            if key in self._about:
                yield from self._about[key].items()

    def add(self, state: NodeState, brought: Iterable[Brought], by: int) -> None:
        """So many more pods on the node bring these."""
        for each in brought:
            counts = self._counts[each] if each in self._counts else self._begin(each)
            counts.add(state, by)
            self._end(each, counts)

    def forget(self, node: str) -> None:
        """The node is not there."""
        for each, counts in list(self._counts.items()):
            counts.forget(node)
            self._end(each, counts)

    def _begin(self, brought: Brought) -> PodCounts:
        counts = self._counts[brought] = PodCounts(brought.term.topology_key, _anybody)
        for namespace in _namespaces(brought.term):
            self._about[namespace][brought] = counts
        return counts

    def _end(self, brought: Brought, counts: PodCounts) -> None:
        """Of those that nobody brings any more nothing is kept."""
        if counts.domains:
            return
        counts.is_kept = False
        del self._counts[brought]
        for namespace in _namespaces(brought.term):
            del self._about[namespace][brought]
            if not self._about[namespace]:
                del self._about[namespace]


def _namespaces(term: AffinityTerm) -> Iterable[str | None]:
    return term.namespaces if term.namespace_selector.requirements is None else (None,)


def _anybody(_occupant: Occupant) -> bool:
    return True
