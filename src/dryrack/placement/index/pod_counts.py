"""
Pods counted by topology domain, kept as pods come and go.

A domain is the nodes that have the same value of one label. What affinity and spreading ask is
how many of some pods are in each; it is counted once over all pods, when it is first asked, and
from then on changes with every pod and node. So what a pod costs does not depend on how many
others there are.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeVar

from dryrack.kinds.selectors import SelectorError
from dryrack.placement.index.affinity_terms import NO_TERMS, PodTerms

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from dryrack.placement.index.affinity_terms import AffinityTerm
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.occupant import Occupant

# Questions come from few templates at a time; one that is met again costs a look at every pod.
COUNTS_MAX = 512

_Term = TypeVar("_Term")

# The domain of a count that is about single nodes.
EVERY_NODE = ""


class PodCounts:
    """
    How many of some pods there are by domain, and by node.

    `selects` says which pods of the namespaces count; None is every namespace. With `includes`
    only such nodes count, and then domains without pods are there as well, with 0.
    """

    def __init__(
        self,
        topology_key: str,
        selects: Callable[[Occupant], bool],
        *,
        namespaces: frozenset[str] | None = None,
        includes: Callable[[NodeState], bool] | None = None,
    ) -> None:
        self.namespaces = namespaces
        self.domains: dict[str, int] = {}
        self._key = topology_key
        self._selects = selects
        self._includes = includes
        # The domain and the pods of every node that counts.
        self._nodes: dict[str, tuple[str, int]] = {}
        self._sizes: dict[str, int] = {}

    def __bool__(self) -> bool:
        """Whether there are any such pods."""
        return any(self.domains.values())

    def on(self, node: str) -> int:
        """How many are on a node."""
        return self._nodes.get(node, ("", 0))[1]

    def recount(self, state: NodeState) -> None:
        """The node is there, as it is now."""
        self.forget(state.name)
        domain = self._domain(state)
        if domain is not None:
            self._set(state.name, domain, sum(map(self._counts, state.occupants.values())))

    def forget(self, node: str) -> None:
        """The node is not there."""
        if node in self._nodes:
            domain, pods = self._nodes.pop(node)
            self.domains[domain] -= pods
            self._sizes[domain] -= 1
            if not self._sizes[domain]:
                del self._sizes[domain], self.domains[domain]

    def change(self, state: NodeState, occupant: Occupant, by: int) -> None:
        """The pod came to the node (1), or left it (-1)."""
        if self._counts(occupant):
            self.add(state, by)

    def add(self, state: NodeState, by: int) -> None:
        """So many more pods that count are on the node."""
        domain, pods = self._nodes.get(state.name) or (self._domain(state), 0)
        if domain is not None:
            self.forget(state.name)
            self._set(state.name, domain, pods + by)

    def _set(self, node: str, domain: str, pods: int) -> None:
        if pods or self._includes is not None:
            self._nodes[node] = (domain, pods)
            self.domains[domain] = self.domains.get(domain, 0) + pods
            self._sizes[domain] = self._sizes.get(domain, 0) + 1

    def _domain(self, state: NodeState) -> str | None:
        if self._includes is not None and not self._includes(state):
            return None
        return state.node.metadata.labels.get(self._key) if self._key else EVERY_NODE

    def _counts(self, occupant: Occupant) -> bool:
        if self.namespaces is not None and occupant.name[0] not in self.namespaces:
            return False
        return self._selects(occupant)


class PodIndex:
    """The counts that were asked for lately, and the affinity terms of the pods on nodes."""

    def __init__(self, states: Mapping[str, NodeState]) -> None:
        """`states` are those of the nodes that are there."""
        self._states = states
        self._counts: dict[Hashable, PodCounts] = {}
        # By namespace, so that a pod is not shown to those who do not ask about it.
        self._listening: dict[str | None, dict[int, PodCounts]] = defaultdict(dict)
        # Pods by the terms that they bring, as far as such pods are on nodes.
        self.anti_affinity: dict[AffinityTerm, PodCounts] = {}
        self.affinity: dict[AffinityTerm, PodCounts] = {}
        self.preferred: dict[tuple[AffinityTerm, int], PodCounts] = {}

    def counts(self, question: Hashable, make: Callable[[], PodCounts]) -> PodCounts:
        """The pods that a question is about; `make` says which, if it was not asked lately."""
        found = self._counts.pop(question, None)
        if found is None:
            found = make()
            for state in self._states.values():
                found.recount(state)
            self._listen(found)
        self._counts[question] = found
        if len(self._counts) > COUNTS_MAX:
            self._ignore(self._counts.pop(next(iter(self._counts))))
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
        _forget(self.anti_affinity, node)
        _forget(self.affinity, node)
        _forget(self.preferred, node)

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
        _count(self.anti_affinity, state, [(term, term) for term in terms.anti_affinity], by)
        _count(self.affinity, state, [(term, term) for term in terms.affinity], by)
        _count(self.preferred, state, [(pair, pair[0]) for pair in terms.preferred], by)

    def _listen(self, counts: PodCounts) -> None:
        for namespace in _namespaces(counts):
            self._listening[namespace][id(counts)] = counts

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


def _count(
    terms: dict[_Term, PodCounts],
    state: NodeState,
    brought: Iterable[tuple[_Term, AffinityTerm]],
    by: int,
) -> None:
    for key, term in brought:
        if key not in terms:
            terms[key] = PodCounts(term.topology_key, _anybody)
        terms[key].add(state, by)
        if not terms[key].domains:
            del terms[key]


def _forget(terms: dict[_Term, PodCounts], node: str) -> None:
    for key, counts in list(terms.items()):
        counts.forget(node)
        if not counts.domains:
            del terms[key]


def _anybody(occupant: Occupant) -> bool:
    return True
