"""
Numbers of pods by topology domain, updated with every pod and node.

A domain is the set of nodes with the same value of one label. Affinity and spreading need the
number of some pods in each domain. A count looks at all pods when it is first needed, and then
changes with every pod and node. So the cost of a pod does not depend on the number of others.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dryrack.placement.index.affinity_terms import AffinityTerm
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.occupant import Occupant


# The domain of a count that is about single nodes.
EVERY_NODE = ""


class PodCounts:
    """
    The number of some pods by domain, and by node.

    `selects` selects the pods of the namespaces; None is every namespace. With `includes` only
    such nodes count, and domains without pods are included with 0.
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
        # The domain and the number of pods of every counted node.
        self._nodes: dict[str, tuple[str, int]] = {}
        self._sizes: dict[str, int] = {}
        # Whether the index still updates the count; otherwise it has to be looked up again.
        self.is_kept = True

    def __bool__(self) -> bool:
        """Return True if there are any such pods."""
        return any(self.domains.values())

    def on(self, node: str) -> int:
        """Return the number of such pods on a node."""
        return self._nodes.get(node, ("", 0))[1]

    def includes(self, node: str) -> bool:
        """Return True if pods on a node are counted; without `includes`, if it has any."""
        return node in self._nodes

    def recount(self, state: NodeState) -> None:
        """Count the pods of a new or changed node."""
        self.forget(state.name)
        domain = self._domain(state)
        if domain is not None:
            self._set(state.name, domain, sum(map(self._counts, state.occupants.values())))

    def forget(self, node: str) -> None:
        """Remove a node."""
        if node in self._nodes:
            domain, pods = self._nodes.pop(node)
            self.domains[domain] -= pods
            self._sizes[domain] -= 1
            if not self._sizes[domain]:
                del self._sizes[domain], self.domains[domain]

    def change(self, state: NodeState, occupant: Occupant, by: int) -> None:
        """Count a pod that was added to the node (1), or removed from it (-1)."""
        if self._counts(occupant):
            self.add(state, by)

    def add(self, state: NodeState, by: int) -> None:
        """Add so many pods that are counted to the node."""
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


class KeptCounts:
    """A count that is looked up once, and again only if the index dropped it."""

    def __init__(self, find: Callable[[], PodCounts]) -> None:
        self._find = find
        self._counts = NO_PODS

    def __call__(self) -> PodCounts:
        if not self._counts.is_kept:
            self._counts = self._find()
        return self._counts


# The count of pods that no node has.
NO_PODS = PodCounts(EVERY_NODE, lambda _occupant: False)
NO_PODS.is_kept = False


class Brought(NamedTuple):
    """An affinity term of pods on nodes, with its weight if it is a preference."""

    term: AffinityTerm
    weight: int = 0


class TermCounts:
    """The number of pods with each affinity term, by the domains of the term."""

    def __init__(self) -> None:
        self._counts: dict[Brought, PodCounts] = {}
        # The counts by the namespaces of the matched pods; None is for terms with a selector.
        self._about: dict[str | None, dict[Brought, PodCounts]] = defaultdict(dict)

    def __bool__(self) -> bool:
        return bool(self._counts)

    def __getitem__(self, brought: Brought) -> PodCounts:
        return self._counts.get(brought, NO_PODS)

    def items(self) -> Iterable[tuple[Brought, PodCounts]]:
        return self._counts.items()

    def about(self, namespace: str) -> Iterator[tuple[Brought, PodCounts]]:
        """Yield the terms that may match a pod of the namespace."""
        for key in (namespace, None):
            if key in self._about:
                yield from self._about[key].items()

    def add(self, state: NodeState, brought: Iterable[Brought], by: int) -> None:
        """Add so many pods with these terms to the node."""
        for each in brought:
            counts = self._counts.get(each)
            if counts is None:
                counts = PodCounts(each.term.topology_key, lambda _occupant: True)
                self._counts[each] = counts
                for namespace in _namespaces(each.term):
                    self._about[namespace][each] = counts
            counts.add(state, by)
            self._drop_if_empty(each, counts)

    def forget(self, node: str) -> None:
        """Remove a node."""
        for each, counts in list(self._counts.items()):
            counts.forget(node)
            self._drop_if_empty(each, counts)

    def _drop_if_empty(self, brought: Brought, counts: PodCounts) -> None:
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
