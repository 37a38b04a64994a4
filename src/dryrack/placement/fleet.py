"""
All nodes of a cluster, with the pods on each.

Each pod is on at most one node. Pods on a node that does not exist (yet, or any more) are kept,
because pods and nodes arrive by different watches. For every kind of pod that was placed lately the
fleet keeps a queue of the nodes that may take such pods (see `node_queue`), and notes the events
that could help.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from dryrack.kinds.core import Node
from dryrack.kinds.releases import DEFAULT_RELEASE, SCHEDULING, Release
from dryrack.placement.index.owner_selectors import OwnerSelectors
from dryrack.placement.index.pod_index import PodIndex
from dryrack.placement.index.volumes import Volumes
from dryrack.placement.node_queue import NodeEvents, NodeQueue
from dryrack.placement.node_state import NodeState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

    from dryrack.allocation import NodePool
    from dryrack.placement.active_plugins import ActivePlugins, Kind
    from dryrack.placement.occupant import Occupant
    from dryrack.placement.outcomes import KeepsBooks

# Pods come from few templates at a time, and traces have some hundreds. A kind that is met again
# costs one look at every node; a queue takes some hundred bytes of memory for each node.
KINDS_MIN = 64
KINDS_MAX = 1024
_KINDS_TIMES_NODES_MAX = 2**20
_MANY_DELETED = 1024
_NOWHERE = Node()
_Value = TypeVar("_Value")


def _no_pools(_node: Node) -> Sequence[NodePool]:
    return ()


class Fleet:
    """The nodes by name, with the pods on them."""

    def __init__(self, release: Release = DEFAULT_RELEASE) -> None:
        # The behaviour of the scheduler of this cluster.
        self.behaviour = SCHEDULING[release]
        self._states: dict[str, NodeState] = {}
        # Changes whenever a node is added, removed, or gets other labels.
        self.nodes_version = 0
        # Nodes that do not exist, with the pods that are bound to them.
        self._absent: dict[str, NodeState] = {}
        self._places: dict[Hashable, str] = {}
        self._users: dict[str, dict[Hashable, None]] = {}
        # The number of pods by priority.
        self.priorities: Counter[int] = Counter()
        self._queues: dict[Kind, NodeQueue] = {}
        self._queues_made = 0
        self._events = NodeEvents()
        # Numbers of pods by domain, for plugins that look at other pods.
        self.pods = PodIndex(self._states)
        # Returns the devices that a node can use; the allocator sets it.
        self.pools_on: Callable[[Node], Sequence[NodePool]] = _no_pools
        # What is left of the devices of a node; the allocator sets it.
        self.books: KeepsBooks | None = None
        # Labels of namespaces, images and taints of nodes, selectors of owners, and volumes.
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.nodes = NodeIndex()
        self.owners = OwnerSelectors()
        self.volumes = Volumes()

    def __len__(self) -> int:
        return len(self._states)

    def get(self, name: str) -> NodeState | None:
        """Return the state of an existing node."""
        return self._states.get(name)

    def states(self) -> Sequence[NodeState]:
        """Return the states of all nodes, by name."""
        return [self._states[name] for name in sorted(self._states)]

    def put(self, node: Node) -> None:
        """Add or replace a node."""
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
        """Remove a node; the pods on it are kept."""
        state = self._states.pop(name, None)
        self.nodes_version += 1
        if state is not None and state.occupants:
            self._absent[name] = state
        self.nodes.drop(name)
        self.pods.drop(name)
        # Queues must not count it among the nodes that refuse.
        self.reopen((name,))

    def node_of(self, pod: Hashable) -> str:
        """Return the node of the pod, empty if it is on none."""
        return self._places.get(pod, "")

    def occupant(self, pod: Hashable) -> Occupant | None:
        """Return the pod if it is on a node."""
        node = self._places.get(pod)
        return None if node is None else self._state(node).occupants[pod]

    def users(self, claim: str) -> Collection[Hashable]:
        """Return the pods on nodes that use the claim."""
        return self._users.get(claim, {}).keys()

    def add_pod(self, pod: Hashable, node: str, occupant: Occupant) -> None:
        """Put the pod on the node, and remove it from any other."""
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
        self._events.note(node, may_help=False)

    def remove_pod(self, pod: Hashable) -> bool:
        """Remove the pod from its node; return True if it was on one."""
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
            del self._users[claim][pod]
            if not self._users[claim]:
                del self._users[claim]
        if node in self._states:
            self.pods.change(state, occupant, -1)
        self.reopen((node,))
        return True

    def _state(self, name: str) -> NodeState:
        state = self._states.get(name) or self._absent.get(name)
        if state is None:
            state = self._absent[name] = NodeState(_NOWHERE)
        return state

    def queue(self, kind: Kind, plugins: ActivePlugins) -> NodeQueue:
        """
        Return the queue of nodes for pods of a kind; the queues of the last kinds are kept.

        The answers of the plugins about a node by itself hold for every pod of the kind.
        """
        queue = self._queues.pop(kind, None)
        if queue is None:
            # Pods that only group nodes otherwise are refused by the same nodes.
            base = (other for key, other in self._queues.items() if key[0] == kind[0])
            first = next(base, None)
            if first is not None:
                queue = first.copy_with_groups(plugins.groups_of)
            else:
                self._queues_made += 1
                queue = NodeQueue(
                    self._states,
                    self._events,
                    plugins.node_score,
                    plugins.groups_of,
                    check=plugins.check_node,
                    ties=plugins.profile.ties,
                    number=self._queues_made,
                )
        self._queues[kind] = queue
        kept = min(KINDS_MAX, _KINDS_TIMES_NODES_MAX // (len(self._states) or 1))
        if len(self._queues) > max(KINDS_MIN, kept):
            del self._queues[next(iter(self._queues))]
        return queue

    def reopen(self, names: Iterable[str] | None) -> None:
        """Note an event that could help pods that these nodes refused; None is all nodes."""
        if names is None:
            self.reopen_all()
            return
        for name in names:
            self._events.note(name, may_help=True)
        if len(self._events) > 2 * (len(self._states) + _MANY_DELETED):
            # Most of these nodes have been deleted.
            self.reopen_all()

    def reopen_all(self) -> None:
        """Note an event that could help any pod on any node."""
        self._queues.clear()
        self._events = NodeEvents()


class NodeIndex:
    """Images and PreferNoSchedule taints of all nodes, which scores compare between nodes."""

    def __init__(self) -> None:
        # The size of each image by node.
        self.images: dict[str, dict[str, int]] = {}
        # Nodes with a PreferNoSchedule taint.
        self.avoided: dict[str, None] = {}
        self._images_of: dict[str, tuple[str, ...]] = {}

    def put(self, node: Node) -> None:
        """Add or replace a node."""
        name = node.metadata.name
        self.drop(name)
        if any(taint.effect == "PreferNoSchedule" for taint in node.spec.taints):
            self.avoided[name] = None
        sizes = {each: image.size_bytes for image in node.status.images for each in image.names}
        if sizes:
            self._images_of[name] = tuple(sizes)
        for image, size in sizes.items():
            self.images.setdefault(image, {})[name] = size

    def drop(self, name: str) -> None:
        """Remove a node."""
        self.avoided.pop(name, None)
        for image in self._images_of.pop(name, ()):
            del self.images[image][name]
            if not self.images[image]:
                del self.images[image]
