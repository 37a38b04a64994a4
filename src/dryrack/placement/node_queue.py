"""
Where pods of one kind may still find room.

Pods that want the same are refused by the same nodes. So a node that refused one is not asked
again until something happened there that could help: the node changed, a pod left it, a device
came free. Nodes that were not asked come by how many pods they have, then by name. Looking for
the next one costs the logarithm of their number; a refusal is paid once, however many pods there
are.

Promise: the answer is that of asking all nodes in order, because a node never gets better by what
it gives away. Where a search was given up that may be otherwise, but the next one would mostly be
given up as well: such a node counts as one that refused.

What one node said for its refusal is kept as long as it refuses, so that nobody has to ask it
again only to tell others.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.allocation import brief

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dryrack.allocation import Reason
    from dryrack.placement.node_state import NodeState


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


class NodeQueue:
    """
    The nodes that may do, of the states that there are.

    Invariant: every state is closed, or in the heap with no more pods than it has.
    """

    def __init__(self, states: Mapping[str, NodeState]) -> None:
        self._states = states
        self._heap = [(state.pods, name) for name, state in states.items()]
        heapq.heapify(self._heap)
        self._closed: dict[str, str] = {}
        # The same by refusal, those that refused first in front.
        self._refusing: dict[str, dict[str, None]] = {}
        # A node that refuses, and why, as it was told when it did.
        self.told: Unmet | None = None

    def open(self) -> Iterator[NodeState]:
        """
        Rooms in the order in which they are to be asked.

        Whoever asks closes the state that refuses; one that is not closed stays.
        """
        while self._heap:
            pods, name = self._heap[0]
            state = self._states.get(name)
            if state is None or name in self._closed or state.pods < pods:
                # Gone, refused, or there with fewer pods as well.
                heapq.heappop(self._heap)
            elif state.pods > pods:
                heapq.heapreplace(self._heap, (state.pods, name))
            else:
                yield state
                if name not in self._closed:
                    return

    def close(self, name: str, refusal: str) -> None:
        """The node refuses, and will until it is opened again."""
        self._closed[name] = refusal
        self._refusing.setdefault(refusal, {})[name] = None

    def reopen(self, names: Iterable[str]) -> None:
        """Something happened on these that could help."""
        for name in names:
            refusal = self._closed.pop(name, None)
            if refusal is not None:
                del self._refusing[refusal][name]
                if self.told is not None and self.told.node == name:
                    self.told = None
            state = self._states.get(name)
            if state is not None:
                heapq.heappush(self._heap, (state.pods, name))
        if len(self._heap) > 2 * len(self._states) + 64:
            self._tidy()

    def _tidy(self) -> None:
        """Entries of the same state come in with every change, and go only when they are met."""
        names = {name for _, name in self._heap if name in self._states}
        self._heap = [(self._states[name].pods, name) for name in names - self._closed.keys()]
        heapq.heapify(self._heap)

    @property
    def refusals(self) -> Mapping[str, int]:
        """How many nodes refuse for which reason."""
        return {refusal: len(names) for refusal, names in self._refusing.items() if names}

    def first_refusing(self, refusal: str) -> NodeState | None:
        """Of the nodes that refuse for a reason, the one that was asked first."""
        names = self._refusing.get(refusal)
        return self._states[next(iter(names))] if names else None
