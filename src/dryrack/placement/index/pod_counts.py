"""
Pods counted by topology domain, kept as pods come and go.

A domain is the nodes that have the same value of one label. What affinity and spreading ask is
how many of some pods are in each; it is counted once over all pods, when it is first asked, and
from then on changes with every pod and node. So what a pod costs does not depend on how many
others there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.placement.node_state import NodeState
    from dryrack.placement.occupant import Occupant

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
        # Whether it changes with pods and nodes; one that was forgotten has to be looked up again.
        self.is_kept = True

    def __bool__(self) -> bool:
        """Whether there are any such pods."""
        return any(self.domains.values())

    def on(self, node: str) -> int:
        """How many are on a node."""
        return self._nodes.get(node, ("", 0))[1]

    def includes(self, node: str) -> bool:
        """Whether pods on a node are counted; without `includes`, whether there are any."""
        return node in self._nodes

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


class KeptCounts:
    """A count that is looked up once, and again only if it was forgotten meanwhile."""

    def __init__(self, find: Callable[[], PodCounts]) -> None:
        self._find = find
        self._found = NOBODY

    def __call__(self) -> PodCounts:
        if not self._found.is_kept:
            self._found = self._find()
        return self._found


def _nobody(_occupant: Occupant) -> bool:
    return False


# What there is of pods that are nowhere.
NOBODY = PodCounts(EVERY_NODE, _nobody)
NOBODY.is_kept = False
