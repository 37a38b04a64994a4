"""
A priority queue of the nodes that may take pods of one kind, the best in front.

Pods that want the same are refused by the same nodes. So a node that refused one is not asked
again until something happened there that could help: the node changed, a pod left it, a device
came free. Nodes that did not refuse come by their score, then by how many pods they have, then by
name. A node is scored when something happens there. Looking for the best costs the logarithm of
their number; a refusal is paid once, however many pods there are.

Where devices have scores, too, a node has to be asked to know its own: nodes are kept apart by what
they said, and those that were not asked yet, or to which something happened since, count as the
best that is possible. Where groups of nodes are held against each other, they are kept apart by
these, too, so that only the first of each has to be looked at.

Promise: the answer is that of asking all nodes, because a node never begins to take a pod by what
it gives away. Where a search was given up that may be otherwise, but the next one would mostly be
given up as well: such a node counts as one that refused.

What one node said for its refusal is kept as long as it refuses, so that nobody has to ask it
again only to tell others.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dryrack.allocation import brief

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dryrack.allocation import Reason
    from dryrack.placement.active_plugins import DeviceScores, Group
    from dryrack.placement.node_state import NodeState

# The score, negative, the number of pods, and the name: the least is the best.
_Rank: TypeAlias = tuple[int, int, str]
# The scores of its devices, None if it has to be asked for them, and its group.
_Sort: TypeAlias = "tuple[DeviceScores | None, Group]"
# From so many on a heap is built anew.
_MANY = 64


@dataclass(frozen=True, slots=True)
class UnmetClaims:
    """Why a node refused claims of these names, in the words that `explain` has for it."""

    node: str
    names: tuple[str, ...]
    # The claim that got stuck, by its place, and what stood in its way.
    index: int
    words: str

    @staticmethod
    def of(node: str, names: tuple[str, ...], reasons: Sequence[Reason]) -> UnmetClaims:
        words = ". ".join(each.message for each in brief(reasons))
        # Those of a claim that is alone may name another that wants the same.
        index = names.index(reasons[0].claim) if reasons and len(names) > 1 else 0
        return UnmetClaims(node, names, index, words)

    def serves(self, names: tuple[str, ...]) -> bool:
        """Whether it is true of claims of these names, too; those of one pod name each other."""
        return self.names == names or len(names) == 1

    def to(self, names: tuple[str, ...]) -> str:
        """What claims of these names are told, which want the same."""
        return f" Node {self.node}, claim {names[self.index]}: {self.words}"


class Out(NamedTuple):
    """Nodes that are out of the question for one pod; `by_group`, if all of a group are or none."""

    is_out: Callable[[NodeState], bool]
    by_group: bool


def _no_score(_node: NodeState) -> int:
    return 0


def _no_group(_node: NodeState) -> Group:
    return ()


class NodeQueue:
    """
    The nodes that may do, of those that there are.

    Invariant: every node refused, or is stale, or has its rank in the heap of its sort.
    """

    def __init__(
        self,
        states: Mapping[str, NodeState],
        score: Callable[[NodeState], int] = _no_score,
        group: Callable[[NodeState], Group] = _no_group,
    ) -> None:
        self._states = states
        self._score = score
        self._group = group
        # Nodes to which something happened since they were scored.
        self._stale: dict[str, None] = dict.fromkeys(states)
        self._ranks: dict[str, _Rank] = {}
        self._sorts: dict[str, _Sort] = {}
        # Nodes of which it is not known whether they would take the pod, and how many of each sort
        # would.
        self._unknown: dict[str, None] = {}
        self._numbers: dict[tuple[DeviceScores, Group], int] = {}
        # Entries that are no longer true go when they are met.
        self._heaps: dict[_Sort, list[_Rank]] = {}
        self._closed: dict[str, tuple[str, ...]] = {}
        self._unresolvable: set[str] = set()
        # The same by refusal, those that refused first in front.
        self._refusing: dict[str, dict[str, None]] = {}
        # A node that refuses, and why, as it was told when it did.
        self.told: UnmetClaims | None = None

    def regrouped(self, group: Callable[[NodeState], Group]) -> NodeQueue:
        """The same for pods that group nodes otherwise: no node has to be asked again."""
        made = NodeQueue({}, self._score, group)
        made._states, made._stale, made.told = self._states, dict(self._stale), self.told
        made._closed, made._unresolvable = dict(self._closed), set(self._unresolvable)
        made._refusing = {refusal: dict(names) for refusal, names in self._refusing.items()}
        for name, rank in self._ranks.items():
            if name in self._stale:
                continue
            scores = self._sorts[name][0]
            sort = (scores, group(self._states[name]))
            made._ranks[name], made._sorts[name] = rank, sort
            made._heaps.setdefault(sort, []).append(rank)
            if scores is None:
                made._unknown[name] = None
            else:
                known = (scores, sort[1])
                made._numbers[known] = made._numbers.get(known, 0) + 1
        for heap in made._heaps.values():
            heapq.heapify(heap)
        return made

    def best(
        self,
        value: Callable[[DeviceScores | None, Group], int] | None = None,
        out: Out | None = None,
    ) -> tuple[NodeState, DeviceScores | None] | None:
        """
        The first of the nodes, and what is known of its devices; None if all refuse.

        `value` is what devices and groups add to a score; None stands for devices that are not
        known. `out` are nodes that are passed over, for this time.
        """
        self._refresh()
        first: tuple[_Rank, _Sort] | None = None
        for sort in tuple(self._heaps):
            rank = self._top(sort) if out is None else self._top_within(sort, out)
            if rank is None:
                continue
            if value is not None:
                rank = (rank[0] - value(*sort), *rank[1:])
            if first is None or rank < first[0]:
                first = (rank, sort)
        return None if first is None else (self._states[first[0][2]], first[1][0])

    def _top(self, sort: _Sort) -> _Rank | None:
        heap = self._heaps.get(sort, [])
        while heap:
            name = heap[0][2]
            if self._ranks.get(name) == heap[0] and self._sorts[name] == sort:
                return heap[0]
            heapq.heappop(heap)
        self._heaps.pop(sort, None)
        return None

    def _top_within(self, sort: _Sort, out: Out) -> _Rank | None:
        passed = []
        while (rank := self._top(sort)) is not None and out.is_out(self._states[rank[2]]):
            if out.by_group:
                rank = None
                break
            passed.append(heapq.heappop(self._heaps[sort]))
        for each in passed:
            heapq.heappush(self._heaps.setdefault(sort, []), each)
        return rank

    def unknown(self) -> Sequence[NodeState]:
        """Nodes of which it is not known whether they take the pod, in their order."""
        self._refresh()
        ranks = sorted(self._ranks[name] for name in self._unknown)
        return [self._states[name] for _, _, name in ranks]

    def known(self) -> Sequence[tuple[NodeState, int, DeviceScores]]:
        """Nodes that would take the pod, with their scores and those of their devices."""
        return [
            (self._states[name], -self._ranks[name][0], scores)
            for name, (scores, _) in self._sorts.items()
            if scores is not None
        ]

    def numbers(self, out: Out | None = None) -> Mapping[tuple[DeviceScores, Group], int]:
        """How many nodes would take the pod, by the scores of their devices and their group."""
        if out is None:
            return self._numbers
        if out.by_group:
            within = (sort for sort in self._numbers if self._top_within(sort, out) is not None)
            return {sort: self._numbers[sort] for sort in within}
        found: dict[tuple[DeviceScores, Group], int] = {}
        for name, (scores, group) in self._sorts.items():
            if scores is not None and not out.is_out(self._states[name]):
                found[scores, group] = found.get((scores, group), 0) + 1
        return found

    def know(self, name: str, scores: DeviceScores) -> None:
        """The node would take the pod, with devices of these scores."""
        rank = self._ranks[name]
        group = self._sorts[name][1]
        self._forget(name)
        sort = (scores, group)
        self._ranks[name], self._sorts[name] = rank, sort
        self._numbers[sort] = self._numbers.get(sort, 0) + 1
        heapq.heappush(self._heaps.setdefault(sort, []), rank)

    def _forget(self, name: str) -> None:
        self._ranks.pop(name, None)
        sort = self._sorts.pop(name, None)
        if name in self._unknown:
            del self._unknown[name]
        elif sort is not None and sort[0] is not None:
            known = (sort[0], sort[1])
            self._numbers[known] -= 1
            if not self._numbers[known]:
                del self._numbers[known]

    def close(self, name: str, *refusals: str, unresolvable: bool = False) -> None:
        """The node refuses, and will until it is opened again."""
        self._forget(name)
        if unresolvable:
            self._unresolvable.add(name)
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
            self._unresolvable.discard(name)
            self._stale[name] = None

    def _refresh(self) -> None:
        """Scores those to which something happened."""
        if not self._stale:
            return
        many = len(self._stale) > _MANY
        changed = set()
        interned: dict[_Sort, _Sort] = {sort: sort for sort in self._heaps}
        for name in self._stale:
            self._forget(name)
            state = self._states.get(name)
            if state is None or name in self._closed:
                continue
            sort: _Sort = (None, self._group(state))
            # One value for all nodes of a sort, of which there are few.
            sort = self._sorts[name] = interned.setdefault(sort, sort)
            rank = self._ranks[name] = (-self._score(state), state.pods, name)
            self._unknown[name] = None
            heap = self._heaps.setdefault(sort, [])
            if many:
                heap.append(rank)
            else:
                heapq.heappush(heap, rank)
            changed.add(sort)
        self._stale.clear()
        for sort in changed:
            if many or len(self._heaps[sort]) > 2 * len(self._states) + _MANY:
                self._tidy(sort)

    def _tidy(self, sort: _Sort) -> None:
        """Leaves the entries of a heap that are true, each once."""
        true = {rank for rank in self._heaps[sort] if self._ranks.get(rank[2]) == rank}
        self._heaps[sort] = [rank for rank in true if self._sorts[rank[2]] == sort]
        heapq.heapify(self._heaps[sort])

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

    @property
    def unresolvable(self) -> int:
        """How many nodes refuse for what no pod that goes can change."""
        return len(self._unresolvable)

    def first_refusing(self, refusal: str) -> NodeState | None:
        """Of the nodes that refuse for a reason, the one that was asked first."""
        names = self._refusing.get(refusal)
        return self._states[next(iter(names))] if names else None
