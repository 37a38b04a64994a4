"""
A priority queue of the nodes that may take pods of one kind, the best in front.

Pods that want the same are refused by the same nodes. So a node that refused one is not asked
again until something happened there that could help: the node changed, a pod left it, a device
came free. Nodes that did not refuse come by their score, then by how many pods they have, then by
name. A node is scored when something happens there. Looking for the best costs the logarithm of
their number; a refusal is paid once, however many pods there are.

Where devices have scores, too, a node has to be asked to know its own: nodes are kept apart by what
they said, and those that were not asked yet, or to which something happened since, count as the
best that is possible.

Promise: the answer is that of asking all nodes, because a node never begins to take a pod by what
it gives away. Where a search was given up that may be otherwise, but the next one would mostly be
given up as well: such a node counts as one that refused.

What one node said for its refusal is kept as long as it refuses, so that nobody has to ask it
again only to tell others.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from dryrack.allocation import brief

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dryrack.allocation import Reason
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.plugins_in_play import DeviceScores

# The score, negative, the number of pods, and the name: the least is the best.
_Rank: TypeAlias = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Unmet:
    """Why a node refused claims of these names, in the words that `explain` has for it."""

    node: str
    names: tuple[str, ...]
    # The claim that got stuck, by its place, and what stood in its way.
    index: int
    words: str

    @staticmethod
    def of(node: str, names: tuple[str, ...], reasons: Sequence[Reason]) -> Unmet:
        words = ". ".join(each.message for each in brief(reasons))
        # Those of a claim that is alone may name another that wants the same.
        index = names.index(reasons[0].claim) if reasons and len(names) > 1 else 0
        return Unmet(node, names, index, words)

    def serves(self, names: tuple[str, ...]) -> bool:
        """Whether it is true of claims of these names, too; those of one pod name each other."""
        return self.names == names or len(names) == 1

    def to(self, names: tuple[str, ...]) -> str:
        """What claims of these names are told, which want the same."""
        return f" Node {self.node}, claim {names[self.index]}: {self.words}"


def _no_score(_node: NodeState) -> int:
    return 0


class NodeQueue:
    """
    The nodes that may do, of those that there are.

    Invariant: every node refused, or is stale, or has its rank in the heap of what it said.
    """

    def __init__(
        self, states: Mapping[str, NodeState], score: Callable[[NodeState], int] = _no_score
    ) -> None:
        self._states = states
        self._score = score
        # Nodes to which something happened since they were scored.
        self._stale: dict[str, None] = dict.fromkeys(states)
        self._ranks: dict[str, _Rank] = {}
        # Nodes that would take the pod, by the scores of their devices; and how many have them.
        self._known: dict[str, DeviceScores] = {}
        self._numbers: dict[DeviceScores, int] = {}
        # Of nodes that are not known, too; entries that are no longer true go when they are met.
        self._heaps: dict[DeviceScores | None, list[_Rank]] = {None: []}
        self._closed: dict[str, tuple[str, ...]] = {}
        # The same by refusal, those that refused first in front.
        self._refusing: dict[str, dict[str, None]] = {}
        # A node that refuses, and why, as it was told when it did.
        self.told: Unmet | None = None

    def best(
        self, value: Callable[[DeviceScores | None], int] | None = None
    ) -> tuple[NodeState, DeviceScores | None] | None:
        """
        The first of the nodes, and what is known of its devices; None if all refuse.

        `value` is what devices add to a score; None stands for those that are not known.
        """
        self._refresh()
        first: tuple[_Rank, DeviceScores | None] | None = None
        for scores, heap in list(self._heaps.items()):
            rank = self._top(heap, scores)
            if rank is None:
                continue
            if value is not None:
                rank = (rank[0] - value(scores), *rank[1:])
            if first is None or rank < first[0]:
                first = (rank, scores)
        return None if first is None else (self._states[first[0][2]], first[1])

    def _top(self, heap: list[_Rank], scores: DeviceScores | None) -> _Rank | None:
        while heap:
            name = heap[0][2]
            if self._ranks.get(name) == heap[0] and self._known.get(name) == scores:
                return heap[0]
            heapq.heappop(heap)
        if scores is not None:
            del self._heaps[scores]
        return None

    def unknown(self) -> Sequence[NodeState]:
        """Nodes of which it is not known whether they take the pod, in their order."""
        self._refresh()
        ranks = sorted(rank for name, rank in self._ranks.items() if name not in self._known)
        return [self._states[name] for _, _, name in ranks]

    def known(self) -> Sequence[tuple[NodeState, int, DeviceScores]]:
        """Nodes that would take the pod, with their scores and those of their devices."""
        return [
            (self._states[name], -self._ranks[name][0], scores)
            for name, scores in self._known.items()
        ]

    def highest(self, count: int) -> DeviceScores:
        """The highest of each of so many scores of devices that are known."""
        return tuple(max((each[i] for each in self._numbers), default=0) for i in range(count))

    def know(self, name: str, scores: DeviceScores) -> None:
        """The node would take the pod, with devices of these scores."""
        self._forget(name)
        self._known[name] = scores
        self._numbers[scores] = self._numbers.get(scores, 0) + 1
        heapq.heappush(self._heaps.setdefault(scores, []), self._ranks[name])

    def _forget(self, name: str) -> None:
        scores = self._known.pop(name, None)
        if scores is not None:
            self._numbers[scores] -= 1
            if not self._numbers[scores]:
                del self._numbers[scores]

    def close(self, name: str, *refusals: str) -> None:
        """The node refuses, and will until it is opened again."""
        self._forget(name)
        self._ranks.pop(name, None)
        self._closed[name] = refusals
        for refusal in refusals:
            self._refusing.setdefault(refusal, {})[name] = None

    def touch(self, name: str) -> None:
        """Something happened on the node that cannot help where it refused."""
        if name not in self._closed:
            self._stale[name] = None

    def reopen(self, names: Iterable[str]) -> None:
        """Something happened on these that could help."""
        for name in names:
            for refusal in self._closed.pop(name, ()):
                del self._refusing[refusal][name]
                if self.told is not None and self.told.node == name:
                    self.told = None
            self._stale[name] = None

    def _refresh(self) -> None:
        """Scores those to which something happened."""
        if not self._stale:
            return
        heap, many = self._heaps[None], len(self._stale) > 64
        for name in self._stale:
            self._forget(name)
            self._ranks.pop(name, None)
            state = self._states.get(name)
            if state is None or name in self._closed:
                continue
            rank = self._ranks[name] = (-self._score(state), state.pods, name)
            if many:
                heap.append(rank)
            else:
                heapq.heappush(heap, rank)
        self._stale.clear()
        if many or len(heap) > 2 * len(self._states) + 64:
            self._heaps[None] = [
                rank for name, rank in self._ranks.items() if name not in self._known
            ]
            heapq.heapify(self._heaps[None])

    def refusals_of(self, name: str) -> tuple[str, ...]:
        """Why a node refuses; nothing if it does not."""
        return self._closed.get(name, ())

    def not_closed(self) -> list[NodeState]:
        """All that are not known to refuse, in the order in which they are to be asked."""
        found = [state for name, state in self._states.items() if name not in self._closed]
        return sorted(found, key=lambda state: (state.pods, state.name))

    @property
    def refusals(self) -> Mapping[str, int]:
        """How many nodes refuse for which reason."""
        return {refusal: len(names) for refusal, names in self._refusing.items() if names}

    def first_refusing(self, refusal: str) -> NodeState | None:
        """Of the nodes that refuse for a reason, the one that was asked first."""
        names = self._refusing.get(refusal)
        return self._states[next(iter(names))] if names else None
