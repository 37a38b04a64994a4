"""
All nodes of a cluster, with what is left on each.

Each pod stands on at most one node, once. Pods on a node that nobody knows (any longer) are
remembered, because the two are told by different watches. For every kind of pod that was placed
lately the fleet remembers where such pods may still find room (see `node_queue`), and is told what
happened that could help.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from dryrack.kinds.core import Node
from dryrack.placement.index.node_index import NodeIndex
from dryrack.placement.index.owner_selectors import OwnerSelectors
from dryrack.placement.index.pod_index import PodIndex
from dryrack.placement.index.volumes import Volumes
from dryrack.placement.node_queue import NodeQueue
from dryrack.placement.node_state import NodeState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

    from dryrack.allocation import NodePool
    from dryrack.placement.active_plugins import Group, Kind
    from dryrack.placement.occupant import Occupant

# Pods come from few templates at a time. A kind that is met again costs one look at every node.
KINDS_MAX = 64
_NOWHERE = Node()
_Value = TypeVar("_Value")


def _no_pools(_node: Node) -> Sequence[NodePool]:
    return ()


class Fleet:
    """Nodes by name, with the pods on them."""

    def __init__(self) -> None:
        self._states: dict[str, NodeState] = {}
        # Changes whenever a node comes, goes, or gets other labels.
        self.nodes_version = 0
        # Nodes that are not there, with the pods that are said to be on them.
        self._absent: dict[str, NodeState] = {}
        self._places: dict[Hashable, str] = {}
        self._users: dict[str, dict[Hashable, None]] = {}
        # How many of the pods have which priority.
        self.priorities: Counter[int] = Counter()
        self._queues: dict[Kind, NodeQueue] = {}
        # How many of which pods are where, for those who ask about other pods.
        self.pods = PodIndex(self._states)
        # The devices that a node is offered; whoever gives them out knows.
        self.pools_on: Callable[[Node], Sequence[NodePool]] = _no_pools
        # What is known besides: labels of namespaces, images and taints, owners of pods, volumes.
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.nodes = NodeIndex()
        self.owners = OwnerSelectors()
        self.volumes = Volumes()

    def __len__(self) -> int:
        return len(self._states)

    def get(self, name: str) -> NodeState | None:
        """The state of a node that is there."""
        return self._states.get(name)

    def states(self) -> Sequence[NodeState]:
        """All that are there, by name."""
        return [self._states[name] for name in sorted(self._states)]

    def put(self, node: Node) -> None:
        """The node is there, as it is now."""
        name = node.metadata.name
        state = self._states.get(name)
        if state is None or state.node.metadata.labels != node.metadata.labels:
            self.nodes_version += 1
        if state is None:
            state = self._states[name] = self._absent.pop(name, NodeState(node))
        state.replace(node)
        self.nodes.put(node)
        self.pods.put(state)
        self.reopen((name,))

    def drop(self, name: str) -> None:
        """The node is gone; the pods on it are remembered."""
        state = self._states.pop(name, None)
        self.nodes_version += 1
        if state is not None and state.occupants:
            self._absent[name] = state
        self.nodes.drop(name)
        self.pods.drop(name)
        # So that nobody counts it among those that refuse.
        self.reopen((name,))

    def node_of(self, pod: Hashable) -> str:
        """The node that the pod is on, empty if there is none."""
        return self._places.get(pod, "")

    def occupant(self, pod: Hashable) -> Occupant | None:
        """The pod, if it is on a node."""
        node = self._places.get(pod)
        return None if node is None else self._state(node).occupants[pod]

    def users(self, claim: str) -> Collection[Hashable]:
        """The pods on nodes that have the claim."""
        return self._users.get(claim, {}).keys()

    def add_pod(self, pod: Hashable, node: str, occupant: Occupant) -> None:
        """The pod is on the node from now on, and nowhere else."""
        if self._places.get(pod) == node and self.occupant(pod) == occupant:
            return
        self.remove_pod(pod)
        self._places[pod] = node
        self._state(node).put(pod, occupant)
        self.priorities[occupant.priority] += 1
        for claim in occupant.claims:
            self._users.setdefault(claim, {})[pod] = None
        if node in self._states:
            self.pods.change(self._states[node], occupant, 1)
        for queue in self._queues.values():
            queue.touch(node)

    def remove_pod(self, pod: Hashable) -> bool:
        """The pod is on no node; whether it was on one."""
        occupant = self.occupant(pod)
        node = self._places.pop(pod, "")
        if occupant is None:
            return False
        state = self._state(node)
        state.remove(pod)
        self.priorities[occupant.priority] -= 1
        if not state.occupants:
            self._absent.pop(node, None)
        for claim in occupant.claims:
            _discard(self._users, claim, pod)
        if node in self._states:
            self.pods.change(state, occupant, -1)
        self.reopen((node,))
        return True

    def _state(self, name: str) -> NodeState:
        state = self._states.get(name) or self._absent.get(name)
        if state is None:
            state = self._absent[name] = NodeState(_NOWHERE)
        return state

    def queue(
        self,
        kind: Kind,
        score: Callable[[NodeState], int],
        group: Callable[[NodeState], Group],
    ) -> NodeQueue:
        """
        Where pods of a kind may find room; of the kinds that were asked about last.

        `score` and `group` are those of a node by itself, for every pod of the kind.
        """
        found = self._queues.pop(kind, None)
        if found is None:
            found = self._alike(kind[0], group) or NodeQueue(self._states, score, group)
        self._queues[kind] = found
        if len(self._queues) > KINDS_MAX:
            del self._queues[next(iter(self._queues))]
        return found

    def _alike(self, base: Hashable, group: Callable[[NodeState], Group]) -> NodeQueue | None:
        """What is known of pods that only group nodes otherwise."""
        alike = (queue for kind, queue in self._queues.items() if kind[0] == base)
        found = next(alike, None)
        return None if found is None else found.regrouped(group)

    def reopen(self, names: Iterable[str] | None) -> None:
        """Something happened that could help those whom these nodes refused; None is all nodes."""
        if names is None:
            self.reopen_all()
            return
        there = tuple(names)
        for each in self._queues.values():
            each.reopen(there)

    def reopen_all(self) -> None:
        """Something happened that could help anybody anywhere."""
        self._queues.clear()


def _discard(groups: dict[str, dict[Hashable, _Value]], group: str, member: Hashable) -> None:
    del groups[group][member]
    if not groups[group]:
        del groups[group]
