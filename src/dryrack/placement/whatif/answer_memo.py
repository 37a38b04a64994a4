"""
Memoization of refusals across what-ifs: no node is asked twice for the same devices.

An explanation makes many what-ifs about much the same world, and most nodes see in all of them
what they saw in the first. A refusal holds for claims that say the same, on a node that sees the
same slices in the same use; all of that is in its key, so a wrong answer cannot be remembered, only
none. Within one what-if, who was refused where is known to the fleet (see `node_queue`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from dryrack.allocation import LiveAllocator, SearchMemo, Undecided, Unsatisfiable, claim_name

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from dryrack.allocation import AffectedNodes, NodePool, Outcome, Reason, Search, Site
    from dryrack.kinds.core import Node
    from dryrack.kinds.resource import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice

# Ten claims that differ, on ten thousand nodes. Beyond that everything is forgotten.
ANSWERS_MAX = 100_000

Key: TypeAlias = tuple[int, ...]
_Pool: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Told:
    """Why a node refused claims of these names; no reasons while nobody has asked for them."""

    names: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()

    def serves(self, names: tuple[str, ...]) -> bool:
        """Whether the reasons are true of claims of these names, too."""
        # Claims of one pod speak of each other by name.
        return self.names == names or len(self.names) == len(names) == 1


class Memory:
    """Refusals by what they depend on, and numbers for what is too large for a key."""

    def __init__(self) -> None:
        self._answers: dict[Key, Told] = {}
        self._numbers: dict[Hashable, int] = {}
        # Of nodes that are alike, too, which is worth it where a search is long.
        self.endings = SearchMemo()
        # What is known by its identity must not be replaced by something else.
        self._kept: list[object] = []

    def answer(self, key: Key) -> Told | None:
        return self._answers.get(key)

    def keep(self, key: Key, told: Told) -> None:
        if len(self._answers) >= ANSWERS_MAX:
            self._answers.clear()
        self._answers[key] = told

    def number(self, value: Hashable) -> int:
        """A number that stands for the value, and for no other."""
        return self._numbers.setdefault(value, len(self._numbers))

    def number_of_thing(self, thing: object) -> int:
        """A number that stands for this very object."""
        key = ("thing", id(thing))
        if key not in self._numbers:
            self._kept.append(thing)
        return self.number(key)


class RememberingAllocator:
    """A live allocator whose refusals are remembered; slices and classes stay as they are."""

    def __init__(
        self,
        live: LiveAllocator,
        memory: Memory,
        slices: Iterable[ResourceSlice],
        classes: Iterable[DeviceClass],
    ) -> None:
        """`live` has these slices and classes."""
        self._live = live
        self._memory = memory
        self._sight = _Sight(memory, slices, classes)
        # Refusals since the last change, whose reasons can still be worked out.
        self._fresh: dict[Key, Unsatisfiable] = {}
        self._asked: tuple[Sequence[ResourceClaim], int] = ((), -1)

    def begin(self, node: Node, claims: Sequence[ResourceClaim]) -> Outcome | Search:
        """As `LiveAllocator.begin`."""
        key = self._sight.key(self._ask(claims), node)
        if self._memory.answer(key) is None:
            outcome = self._live.begin(node, claims)
            if not isinstance(outcome, Unsatisfiable):
                return outcome
            self._memory.keep(key, Told())
            self._fresh[key] = outcome
        return Unsatisfiable(node.metadata.name, "", partial(self._reasons, key, node, claims))

    def pools_on(self, node: Node) -> tuple[NodePool, ...]:
        """As `LiveAllocator.pools_on`."""
        return self._live.pools_on(node)

    def doubtful_nodes(
        self,
        claims: Sequence[ResourceClaim],
        nodes: Callable[[], Iterable[Node]],
        *,
        enough: int,
        version: int,
    ) -> tuple[Node, ...]:
        """As `LiveAllocator.doubtful_nodes`."""
        return self._live.doubtful_nodes(claims, nodes, enough=enough, version=version)

    def begin_apart(
        self, claims: Sequence[ResourceClaim], sites: Sequence[Site]
    ) -> Outcome | Search:
        """As `LiveAllocator.begin_apart`."""
        return self._live.begin_apart(claims, sites)

    def symmetry_key(self, node: Node, claims: Sequence[ResourceClaim]) -> Hashable:
        """As `LiveAllocator.symmetry_key`."""
        return self._live.symmetry_key(node, claims)

    def is_local(self, node: Node) -> bool:
        """As `LiveAllocator.is_local`."""
        return self._live.is_local(node)

    def allocation_of(self, claim: str) -> AllocationResult | None:
        """As `LiveAllocator.allocation_of`."""
        return self._live.allocation_of(claim)

    def set_allocation(self, claim: str, allocation: AllocationResult | None) -> AffectedNodes:
        """As `LiveAllocator.set_allocation`."""
        self._fresh.clear()
        before = self._live.allocation_of(claim)
        if before is not None:
            self._sight.change("release", claim, before)
        if allocation is not None:
            self._sight.change("use", claim, allocation)
        return self._live.set_allocation(claim, allocation)

    def _ask(self, claims: Sequence[ResourceClaim]) -> int:
        if self._asked[0] is not claims:
            said = tuple(_said(claim.spec) for claim in claims)
            self._asked = (claims, self._memory.number(said))
            self._fresh.clear()
        return self._asked[1]

    def _reasons(self, key: Key, node: Node, claims: Sequence[ResourceClaim]) -> tuple[Reason, ...]:
        """The reasons, which are worked out for those who are refused everywhere."""
        names = tuple(map(claim_name, claims))
        told = self._memory.answer(key)
        if told is None or not told.serves(names):
            outcome = self._fresh.get(key) or self._live.allocate(node, claims)
            assert isinstance(outcome, Unsatisfiable | Undecided), "what refused would do"
            told = Told(names, outcome.reasons)
            self._memory.keep(key, told)
        return told.reasons


class _Sight:
    """What every node sees of the devices, and of their use as it goes on."""

    def __init__(
        self, memory: Memory, slices: Iterable[ResourceSlice], classes: Iterable[DeviceClass]
    ) -> None:
        self._memory = memory
        self._used: dict[_Pool, int] = {}
        # What led to each use: a change, the use before it, and the claim with its device.
        self._changes: dict[int, tuple[str, int, tuple[str, bytes]]] = {}
        self._stock: dict[_Pool, list[int]] = {}
        self._local: dict[str, dict[_Pool, None]] = {}
        self._shared: dict[_Pool, None] = {}
        self._views: dict[str, tuple[int, tuple[_Pool, ...]]] = {}
        self._classes = memory.number(tuple(memory.number_of_thing(each) for each in classes))
        for each in slices:
            pool = (each.spec.driver, each.spec.pool.name)
            self._stock.setdefault(pool, []).append(self._memory.number_of_thing(each))
            if each.spec.node_name:
                self._local.setdefault(each.spec.node_name, {})[pool] = None
            else:
                self._shared[pool] = None

    def change(self, kind: str, claim: str, allocation: AllocationResult) -> None:
        """The claim uses these devices from now on, or releases them; one takes back the other."""
        results = allocation.devices.results
        for each in results if kind == "use" else reversed(results):
            pool = (each.driver, each.pool)
            number = self._used.get(pool, -1)
            said = (claim, _said(each))
            last, before, changed = self._changes.get(number, ("", -1, ("", b"")))
            if last not in ("", kind) and changed == said:
                self._used[pool] = before
            else:
                after = self._memory.number((kind, number, *said))
                self._changes[after] = (kind, number, said)
                self._used[pool] = after

    def key(self, ask: int, node: Node) -> Key:
        """All that the node's answer depends on."""
        view, pools = self._view(node)
        return (ask, view, *(self._used.get(pool, -1) for pool in pools))

    def _view(self, node: Node) -> tuple[int, tuple[_Pool, ...]]:
        name = node.metadata.name
        if name not in self._views:
            pools = tuple({**self._local.get(name, {}), **self._shared})
            stock = tuple((*pool, *self._stock[pool]) for pool in pools)
            labels = tuple(sorted(node.metadata.labels.items()))
            seen = ("view", name, labels, self._classes, stock)
            self._views[name] = self._memory.number(seen), pools
        return self._views[name]


def _said(part: object) -> bytes:
    """What a part of an object says, as something to compare."""
    return msgspec.json.encode(part, enc_hook=str)
