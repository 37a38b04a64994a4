"""
Packing: the largest number of members on nodes that do not depend on each other.

It looks at each node once, with all totals reached so far: the numbers of members of each kind that
the nodes before it can take. It drops totals that are part of another, because a node that can take
more members can take fewer as well. So the work grows with the number of nodes, and for members of
a single kind with nothing else. The largest total at the end is the largest possible one.

A shared claim has its devices on one node, which all of its users need: if a node takes some of
them, no other node can take the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, combinations
from typing import TYPE_CHECKING

from dryrack.placement.gangs.configurations import is_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dryrack.placement.gangs.configurations import Counts, Effort, MemberKind
    from dryrack.placement.node_state import NodeState

# More totals than a gang of eight members of different kinds reaches.
_REACHED_MAX = 128


@dataclass(frozen=True, slots=True)
class Packed:
    """The total of members on the nodes so far, and those on the last node."""

    total: Counts
    # Shared claims whose users are on one of the nodes.
    closed: frozenset[str] = frozenset()
    state: NodeState | None = None
    taken: Counts = ()
    before: Packed | None = None

    @property
    def size(self) -> int:
        return sum(self.total)

    def nodes(self) -> Iterator[tuple[NodeState, Counts]]:
        """Yield each node with its members, the first node first."""
        if self.before is not None:
            assert self.state is not None, "each result has a node"
            yield from self.before.nodes()
            yield self.state, self.taken


def pack(
    kinds: Sequence[MemberKind],
    options_of: Callable[[NodeState], Sequence[Counts]],
    states: Iterable[NodeState],
    needed: int,
    effort: Effort,
) -> Packed:
    """
    Return a total of at least as many members as are needed, or else the largest possible one.

    `options_of` returns the largest configurations that a node can take.
    """
    reached = [Packed((0,) * len(kinds))]
    for state in states:
        options = options_of(state)
        if not any(map(sum, options)):
            continue
        more: dict[tuple[Counts, frozenset[str]], Packed] = {}
        for after in (after for one in reached for after in _extend(one, state, options, kinds)):
            if not effort.look():
                break
            more.setdefault((after.total, after.closed), after)
        reached = _drop_parts((*more.values(), *reached), effort)
        if reached[0].size >= needed or effort.looks_left < 0:
            break
    return reached[0]


def _extend(
    one: Packed, state: NodeState, options: Sequence[Counts], kinds: Sequence[MemberKind]
) -> Iterator[Packed]:
    """Yield the totals that can be reached with another node."""
    sizes = [len(kind.members) for kind in kinds]
    for counts in {each for option in options for each in _choices(option, kinds)}:
        users = [kind.shared for kind, number in zip(kinds, counts, strict=True) if number]
        shared = frozenset(chain.from_iterable(users))
        taken = tuple(
            min(count, size - before)
            for count, before, size in zip(counts, one.total, sizes, strict=True)
        )
        if any(taken) and not shared & one.closed:
            total = tuple(a + b for a, b in zip(one.total, taken, strict=True))
            yield Packed(total, one.closed | shared, state, taken, one)


def _choices(option: Counts, kinds: Sequence[MemberKind]) -> Iterator[Counts]:
    """Yield the configuration, and each one without the users of some shared claims."""
    users = [kind.shared for kind, number in zip(kinds, option, strict=True) if number]
    shared = sorted(set(chain.from_iterable(users)))
    for number in range(len(shared) + 1):
        for left_out in map(set, combinations(shared, number)):
            yield tuple(
                0 if kind.shared & left_out else n for kind, n in zip(kinds, option, strict=True)
            )


def _drop_parts(reached: Iterable[Packed], effort: Effort) -> list[Packed]:
    """Return the totals that are part of no other, the largest first."""
    maximal: list[Packed] = []
    for one in sorted(reached, key=lambda each: -each.size):
        if not any(
            is_part(one.total, other.total) and other.closed <= one.closed for other in maximal
        ):
            maximal.append(one)
    if len(maximal) > _REACHED_MAX:
        effort.is_undecided = True
    return maximal[:_REACHED_MAX]
