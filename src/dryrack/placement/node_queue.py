"""
A priority queue of the nodes that may take pods of one kind, the best in front.

The same nodes refuse pods with the same requirements. So a node that refused one is not asked again
until an event on it could help: the node changed, a pod left it, a device became free. Other nodes
are in the order of their score, then by the tie rule of the profile, then by name. After each event
on a node the queue calls the filters for it, and scores it if they accept it. Finding the best
costs the logarithm of the number of nodes; a refusal costs once, however many pods there are.

All queues of a fleet read the same `NodeEvents`: an event costs the same for one kind of pods and
for a thousand. A queue catches up when it is used.

A scorer may fail on a node that cannot provide the devices. kube-scheduler never scores such a
node. So the error of a scorer counts only if the node takes the pod: the node comes first, and the
caller asks `raise_score_error`.

If devices have scores, too, a node has to be asked for its own. So nodes with different scores of
devices are in different heaps, and a node that was not asked since its last event counts as the
best possible. If groups of nodes are compared, each group has a heap, too, so that only the first
node of each has to be looked at.

Promise: the answer is that of asking all nodes, because a node that allocates something never
begins to take a pod by it. After a search that stopped at its limit this may not hold, but the next
search would mostly stop as well: such a node counts as one that refused.

The message of one refusal is kept as long as the node refuses, so that it need not be asked again
for the messages of other pods.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dryrack.allocation import brief
from dryrack.base.draws import Draws
from dryrack.placement.framework import FEWEST_PODS, PluginError, TieRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dryrack.allocation import Reason
    from dryrack.placement.active_plugins import DeviceScores, Group
    from dryrack.placement.framework import Ties
    from dryrack.placement.node_state import NodeRefusal, NodeState

# The negative score, the number for ties, and the name: the least is the best.
_Rank: TypeAlias = tuple[int, float, str]
# The scores of the node's devices, None if it has to be asked for them, and its group.
_Sort: TypeAlias = "tuple[DeviceScores | None, Group]"
# From so many stale nodes on, a heap is built again.
_MANY = 64
# The score of a node on which a scorer failed: more than any other.
_FAILED_SCORE = 10**12


@dataclass(frozen=True, slots=True)
class UnmetClaims:
    """The cause for which a node refused claims of these names, in the words of `explain`."""

    node: str
    names: tuple[str, ...]
    # The position of the claim that does not fit, and the cause.
    index: int
    words: str

    @staticmethod
    def of(node: str, names: tuple[str, ...], reasons: Sequence[Reason]) -> UnmetClaims:
        words = ". ".join(each.message for each in brief(reasons))
        # The reasons of a single claim may name another claim with the same requests.
        index = names.index(reasons[0].claim) if reasons and len(names) > 1 else 0
        return UnmetClaims(node, names, index, words)

    def applies_to(self, names: tuple[str, ...]) -> bool:
        """Return True if it holds for claims of these names; claims of one pod name each other."""
        return self.names == names or len(names) == 1

    def message(self, names: tuple[str, ...]) -> str:
        """Return the message for claims of these names with the same requests."""
        return f" Node {self.node}, claim {names[self.index]}: {self.words}"


class Exclusion(NamedTuple):
    """The nodes that cannot take one pod; `by_group` if it holds for all nodes of a group alike."""

    excludes: Callable[[NodeState], bool]
    by_group: bool


class NodeEvents:
    """The last event on each node, in the order of these events."""

    def __init__(self) -> None:
        # Counts the events.
        self.number = 0
        # The numbers of the last event on a node, and of the last that could help pods there.
        self._last: dict[str, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._last)

    def note(self, name: str, *, may_help: bool) -> None:
        """Note an event on a node, and whether it could help pods that the node refused."""
        self.number += 1
        _, helped = self._last.pop(name, (0, 0))
        self._last[name] = (self.number, self.number if may_help else helped)

    def since(self, number: int) -> Iterator[tuple[str, bool]]:
        """Yield the nodes with later events, and whether one of these events could help."""
        for name in reversed(self._last):
            last, helped = self._last[name]
            if last <= number:
                return
            yield name, helped > number


def _accept(_node: NodeState) -> None:
    return None


def _no_score(_node: NodeState) -> int:
    return 0


def _no_group(_node: NodeState) -> Group:
    return ()


class NodeQueue:
    """
    The nodes of a fleet that may take pods of one kind.

    Invariant: every node refused, or is stale, or has its rank in the heap of its sort.
    """

    def __init__(
        self,
        states: Mapping[str, NodeState],
        events: NodeEvents,
        score: Callable[[NodeState], int] = _no_score,
        group: Callable[[NodeState], Group] = _no_group,
        *,
        check: Callable[[NodeState], NodeRefusal | None] = _accept,
        ties: Ties = FEWEST_PODS,
        number: int = 0,
    ) -> None:
        """`number` is different for each queue of a fleet, which draw random numbers apart."""
        self._states = states
        self._events = events
        # The number of the last event that the queue knows.
        self._seen = events.number
        self._check = check
        self._score = score
        self._group = group
        self._ties = ties
        self._draws = Draws(ties.seed, "ties", number)
        # For random ties: the number of the last node that was the best, by score.
        self._passed: dict[int, float] = {}
        # Nodes with an event since they were scored.
        self._stale: dict[str, None] = dict.fromkeys(states)
        self._ranks: dict[str, _Rank] = {}
        self._sorts: dict[str, _Sort] = {}
        # Nodes that were not asked yet, and how many of each sort would take the pod.
        self._unknown: dict[str, None] = {}
        self._numbers: dict[tuple[DeviceScores, Group], int] = {}
        # Outdated entries are removed when they come first.
        self._heaps: dict[_Sort, list[_Rank]] = {}
        self._closed: dict[str, tuple[str, ...]] = {}
        self._unresolvable: set[str] = set()
        # The closed nodes by refusal, in the order in which they refused.
        self._refusing: dict[str, dict[str, None]] = {}
        # The cause of one refusal for want of devices.
        self.unmet: UnmetClaims | None = None
        # Nodes on which a scorer failed.
        self._score_errors: dict[str, PluginError] = {}

    def copy_with_groups(self, group: Callable[[NodeState], Group]) -> NodeQueue:
        """Return a copy for pods that group nodes otherwise: no node has to be asked again."""
        self._catch_up()
        other = NodeQueue({}, self._events, self._score, group, check=self._check, ties=self._ties)
        other._draws = self._draws
        other._passed = dict(self._passed)
        other._score_errors = dict(self._score_errors)
        other._states = self._states
        other._stale = dict(self._stale)
        other._closed = dict(self._closed)
        other._unresolvable = set(self._unresolvable)
        other._refusing = {refusal: dict(names) for refusal, names in self._refusing.items()}
        other.unmet = self.unmet
        for name, rank in self._ranks.items():
            if name in self._stale:
                continue
            scores = self._sorts[name][0]
            sort = (scores, group(self._states[name]))
            other._ranks[name] = rank
            other._sorts[name] = sort
            other._heaps.setdefault(sort, []).append(rank)
            if scores is None:
                other._unknown[name] = None
            else:
                key = (scores, sort[1])
                other._numbers[key] = other._numbers.get(key, 0) + 1
        for heap in other._heaps.values():
            heapq.heapify(heap)
        return other

    def best(
        self,
        value: Callable[[DeviceScores | None, Group], int] | None = None,
        exclusion: Exclusion | None = None,
    ) -> tuple[NodeState, DeviceScores | None] | None:
        """
        Return the first node and the scores of its devices, if known; None if all nodes refuse.

        `value` returns what devices and groups add to a score; its argument is None for unknown
        devices. Nodes of the `exclusion` are skipped this time.
        """
        self._refresh()
        first: tuple[_Rank, _Sort] | None = None
        for sort in tuple(self._heaps):
            rank = self._top(sort) if exclusion is None else self._top_within(sort, exclusion)
            if rank is None:
                continue
            if value is not None:
                rank = (rank[0] - value(*sort), *rank[1:])
            if first is None or rank < first[0]:
                first = (rank, sort)
        if first is None:
            return None
        rank, sort = first
        if self._ties.rule is TieRule.RANDOM:
            self._passed[-self._ranks[rank[2]][0]] = rank[1]
        return self._states[rank[2]], sort[0]

    def _top(self, sort: _Sort) -> _Rank | None:
        heap = self._heaps.get(sort, [])
        while heap:
            name = heap[0][2]
            if self._ranks.get(name) == heap[0] and self._sorts[name] == sort:
                return heap[0]
            heapq.heappop(heap)
        self._heaps.pop(sort, None)
        return None

    def _top_within(self, sort: _Sort, exclusion: Exclusion) -> _Rank | None:
        passed = []
        while (rank := self._top(sort)) is not None and exclusion.excludes(self._states[rank[2]]):
            if exclusion.by_group:
                rank = None
                break
            passed.append(heapq.heappop(self._heaps[sort]))
        for each in passed:
            heapq.heappush(self._heaps.setdefault(sort, []), each)
        return rank

    def unknown(self) -> Sequence[NodeState]:
        """Return the nodes that have not been asked, in their order."""
        self._refresh()
        ranks = sorted(self._ranks[name] for name in self._unknown)
        return [self._states[name] for _, _, name in ranks]

    def known(self) -> Sequence[tuple[NodeState, _Rank, DeviceScores]]:
        """Return the nodes that would take the pod, with their ranks and the scores of devices."""
        return [
            (self._states[name], self._ranks[name], scores)
            for name, (scores, _) in self._sorts.items()
            if scores is not None
        ]

    def numbers(
        self, exclusion: Exclusion | None = None
    ) -> Mapping[tuple[DeviceScores, Group], int]:
        """Count the nodes that would take the pod, by the scores of devices and the group."""
        if exclusion is None:
            return self._numbers
        if exclusion.by_group:
            return {
                sort: number
                for sort, number in self._numbers.items()
                if self._top_within(sort, exclusion) is not None
            }
        counts: dict[tuple[DeviceScores, Group], int] = {}
        for name, (scores, group) in self._sorts.items():
            if scores is not None and not exclusion.excludes(self._states[name]):
                counts[scores, group] = counts.get((scores, group), 0) + 1
        return counts

    def know(self, name: str, scores: DeviceScores) -> None:
        """Record that the node would take the pod, with devices of these scores."""
        rank = self._ranks[name]
        group = self._sorts[name][1]
        self._forget(name)
        sort = (scores, group)
        self._ranks[name] = rank
        self._sorts[name] = sort
        self._numbers[sort] = self._numbers.get(sort, 0) + 1
        heapq.heappush(self._heaps.setdefault(sort, []), rank)

    def raise_score_error(self, name: str) -> None:
        """Raise the error of the scorer that failed on the node, if one did."""
        error = self._score_errors.get(name) if self._score_errors else None
        if error is not None:
            raise error

    def _forget(self, name: str) -> None:
        self._ranks.pop(name, None)
        self._score_errors.pop(name, None)
        sort = self._sorts.pop(name, None)
        if name in self._unknown:
            del self._unknown[name]
        elif sort is not None and sort[0] is not None:
            key = (sort[0], sort[1])
            self._numbers[key] -= 1
            if not self._numbers[key]:
                del self._numbers[key]

    def close(self, name: str, *refusals: str, unresolvable: bool = False) -> None:
        """Record that the node refuses, until it is reopened."""
        self._forget(name)
        if unresolvable:
            self._unresolvable.add(name)
        self._closed[name] = refusals
        for refusal in refusals:
            self._refusing.setdefault(refusal, {})[name] = None

    def _catch_up(self) -> None:
        """Note the events since the queue was used last."""
        events = self._events
        if self._seen == events.number:
            return
        for name, may_help in events.since(self._seen):
            if may_help:
                self._reopen(name)
            elif name not in self._closed:
                self._stale[name] = None
        self._seen = events.number

    def _reopen(self, name: str) -> None:
        for refusal in self._closed.pop(name, ()):
            del self._refusing[refusal][name]
            if self.unmet is not None and self.unmet.node == name:
                self.unmet = None
        self._unresolvable.discard(name)
        self._stale[name] = None

    def _refresh(self) -> None:
        """Call the filters for the stale nodes, and score those that they accept."""
        self._catch_up()
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
            refusal = self._check(state)
            if refusal is not None:
                words = (refusal.words, *refusal.further)
                self.close(name, *words, unresolvable=refusal.is_unresolvable)
                continue
            sort: _Sort = (None, self._group(state))
            # One value for all nodes of a sort, because there are few sorts.
            sort = interned.setdefault(sort, sort)
            rank = self._rank(state)
            self._sorts[name] = sort
            self._ranks[name] = rank
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
                # Keep each current entry once.
                current = {rank for rank in self._heaps[sort] if self._ranks.get(rank[2]) == rank}
                self._heaps[sort] = [rank for rank in current if self._sorts[rank[2]] == sort]
                heapq.heapify(self._heaps[sort])

    def _rank(self, state: NodeState) -> _Rank:
        name = state.name
        try:
            score = self._score(state)
        except PluginError as error:
            self._score_errors[name] = error
            score = _FAILED_SCORE
        ties = self._ties
        if ties.rule is TieRule.FEWEST_PODS:
            return (-score, state.pods, name)
        if ties.rule is TieRule.RANDOM:
            # Nodes that were passed over have larger numbers than the last that was chosen. A new
            # number has the same distribution as theirs, because waiting times have no memory: so
            # all nodes of a score are equally likely to be the next.
            return (-score, self._passed.get(score, 0.0) + self._draws.exponential(), name)
        return (-score, ties.number_of(name), name)

    def refusals_of(self, name: str) -> tuple[str, ...]:
        """Return the messages of a node that refuses; nothing if it does not refuse."""
        return self._closed.get(name, ())

    def not_closed(self) -> list[NodeState]:
        """Return the nodes that have not refused, those with the fewest pods first."""
        self._catch_up()
        states = [state for name, state in self._states.items() if name not in self._closed]
        return sorted(states, key=lambda state: (state.pods, state.name))

    @property
    def refusals(self) -> Mapping[str, int]:
        """Count the nodes that refuse, by the reason."""
        return {refusal: len(names) for refusal, names in self._refusing.items() if names}

    @property
    def unresolvable(self) -> int:
        """Count the nodes that refuse even if all pods leave them."""
        return len(self._unresolvable)

    def first_refusing(self, refusal: str) -> NodeState | None:
        """Return the node that was asked first of those that refuse for a reason."""
        names = self._refusing.get(refusal)
        return self._states[next(iter(names))] if names else None
