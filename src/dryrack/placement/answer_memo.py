"""
What nodes answered, so that nobody is asked the same twice.

Claims of one template ask every node the same, and most nodes have not changed since the last one
asked. An answer holds for claims that say the same, on a node that sees the same slices in the
same use; all of that is in its key, so a wrong answer cannot be remembered, only none. The memory
may be shared by what-ifs about much the same world.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from dryrack.allocation.endings import Endings

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from dryrack.allocation.reasons import Reason
    from dryrack.kinds.core import Node, Pod
    from dryrack.kinds.resource import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice

# Ten claims that differ, on ten thousand nodes. Beyond that everything is forgotten.
ANSWERS_MAX = 100_000

Key: TypeAlias = tuple[int, ...]
_Pool: TypeAlias = tuple[str, str]


class Verdict(Enum):
    """What a node answered, when nobody asked for more."""

    FITS = "fits"
    DOES_NOT = "does not"


@dataclass(frozen=True, slots=True)
class Told:
    """Why a node refused claims of these names."""

    names: tuple[str, ...]
    reasons: tuple[Reason, ...]

    def to(self, index: int, name: str) -> tuple[Reason, ...]:
        """The reasons of one of the claims, or of a claim that says the same."""
        own = self.names[index]
        if own == name:
            return tuple(reason for reason in self.reasons if reason.claim == own)
        return tuple(replace(each, claim=name) for each in self.reasons if each.claim == own)

    def serves(self, names: tuple[str, ...]) -> bool:
        """Whether the reasons are true of claims of these names, too."""
        # Claims of one pod speak of each other by name.
        return self.names == names or len(names) == 1


class Memory:
    """Answers by what they depend on, and numbers for what is too large for a key."""

    def __init__(self) -> None:
        self._answers: dict[Key, Verdict | Told] = {}
        self._numbers: dict[Hashable, int] = {}
        # Of nodes that are alike, too, which is worth it where a search is long.
        self.endings = Endings()
        # What is known by its identity must not be replaced by something else.
        self._kept: list[object] = []

    def answer(self, key: Key) -> Verdict | Told | None:
        return self._answers.get(key)

    def keep(self, key: Key, answer: Verdict | Told) -> None:
        if len(self._answers) >= ANSWERS_MAX:
            self._answers.clear()
        self._answers[key] = answer

    def number(self, value: Hashable) -> int:
        """A number that stands for the value, and for no other."""
        return self._numbers.setdefault(value, len(self._numbers))

    def number_of_thing(self, thing: object) -> int:
        """A number that stands for this very object."""
        key = ("thing", id(thing))
        if key not in self._numbers:
            self._kept.append(thing)
        return self.number(key)


class Sight:
    """What every node sees of the devices, and of their use as it goes on."""

    def __init__(
        self, memory: Memory, slices: Iterable[ResourceSlice], classes: Iterable[DeviceClass]
    ) -> None:
        self._memory = memory
        self._used: dict[_Pool, int] = {}
        self._stock: dict[_Pool, list[int]] = {}
        self._local: dict[str, dict[_Pool, None]] = {}
        self._shared: dict[_Pool, None] = {}
        self._views: dict[str, tuple[int, tuple[_Pool, ...]]] = {}
        self._classes = memory.number(tuple(memory.number_of_thing(each) for each in classes))
        for each in slices:
            self._see(each)

    def _see(self, each: ResourceSlice) -> None:
        pool = (each.spec.driver, each.spec.pool.name)
        self._stock.setdefault(pool, []).append(self._memory.number_of_thing(each))
        if each.spec.node_name:
            self._local.setdefault(each.spec.node_name, {})[pool] = None
        else:
            self._shared[pool] = None

    def use(self, claim: str, allocation: AllocationResult) -> None:
        """The claim has these devices from now on."""
        for each in allocation.devices.results:
            pool = (each.driver, each.pool)
            entry = ("use", self._used.get(pool, -1), claim, _said(each))
            self._used[pool] = self._memory.number(entry)

    def ask(self, claims: Sequence[ResourceClaim]) -> int:
        """A number for what the claims say."""
        return self._memory.number(tuple(_said(claim.spec) for claim in claims))

    def ways(self, pod: Pod | None) -> int:
        """A number for what the pod says about the nodes that it may be on."""
        if pod is None:
            return -1
        spec = pod.spec
        ways = (spec.node_name, spec.node_selector, spec.affinity, spec.tolerations)
        return self._memory.number(("ways", _said(ways)))

    def key(self, ask: int, node: Node) -> Key:
        """All that the node's answer depends on."""
        view, pools = self._view(node)
        return (ask, view, *(self._used.get(pool, -1) for pool in pools))

    def _view(self, node: Node) -> tuple[int, tuple[_Pool, ...]]:
        name = node.metadata.name
        if name not in self._views:
            pools = tuple({**self._local.get(name, {}), **self._shared})
            stock = tuple((*pool, *self._stock[pool]) for pool in pools)
            seen = ("view", self._memory.number_of_thing(node), self._classes, stock)
            self._views[name] = self._memory.number(seen), pools
        return self._views[name]


def _said(part: object) -> bytes:
    """What a part of an object says, as something to compare."""
    return msgspec.json.encode(part, enc_hook=str)
