"""
Packing: how many members go together onto nodes that do not depend on each other.

Each node is looked at once, with all that is reached so far: how many members of each kind the
nodes before it can take. What is part of something else that is reached is left out, because a
node that takes more takes less as well. So the work grows with the nodes, and for members of a
single kind with nothing else; and the most that is reached at the end is the most there is.

A claim that members share has its devices on one node, where all of its users are: a node that
takes some of them leaves the others nowhere to go.
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

# More than a gang of eight that all differ can come to.
_REACHED_MAX = 128


@dataclass(frozen=True, slots=True)
class Packed:
    """Members of each kind on the nodes so far, the last of which took some of them."""

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
        """What each node took, the first node first."""
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
    Return at least as many members as are needed, or else the most that there can be.

    `options_of` returns the largest configurations that a node can take.
    """
    reached = [Packed((0,) * len(kinds))]
    for state in states:
        options = options_of(state)
        if not any(map(sum, options)):
            continue
        more: dict[tuple[Counts, frozenset[str]], Packed] = {}
        for after in (after for one in reached for after in _with(one, state, options, kinds)):
            if not effort.look():
                break
            more.setdefault((after.total, after.closed), after)
        reached = _worthwhile((*more.values(), *reached), effort)
        if reached[0].size >= needed or effort.looks_left < 0:
            break
    return reached[0]


def _with(
    one: Packed, state: NodeState, options: Sequence[Counts], kinds: Sequence[MemberKind]
) -> Iterator[Packed]:
    """What can be reached with another node."""
    sizes = [len(kind.members) for kind in kinds]
    for counts in {each for option in options for each in _choices(option, kinds)}:
        users = [kind.shared for kind, number in zip(kinds, counts, strict=True) if number]
        shared = frozenset(chain.from_iterable(users))
        taken = tuple(map(_limited, counts, one.total, sizes))
        if any(taken) and not shared & one.closed:
            total = tuple(a + b for a, b in zip(one.total, taken, strict=True))
            yield Packed(total, one.closed | shared, state, taken, one)


def _limited(count: int, before: int, size: int) -> int:
    return min(count, size - before)


def _choices(option: Counts, kinds: Sequence[MemberKind]) -> Iterator[Counts]:
    """The configuration, and without the users of some of the shared claims."""
    users = [kind.shared for kind, number in zip(kinds, option, strict=True) if number]
    shared = sorted(set(chain.from_iterable(users)))
    for number in range(len(shared) + 1):
        for left_out in map(set, combinations(shared, number)):
            yield tuple(
                0 if kind.shared & left_out else n for kind, n in zip(kinds, option, strict=True)
            )


def _worthwhile(these: Iterable[Packed], effort: Effort) -> list[Packed]:
    """Those that are part of no other, the largest first."""
    found: list[Packed] = []
    for one in sorted(these, key=lambda each: -each.size):
        if not any(
            is_part(one.total, other.total) and other.closed <= one.closed for other in found
        ):
            found.append(one)
    if len(found) > _REACHED_MAX:
        effort.is_undecided = True
    return found[:_REACHED_MAX]
