"""
An allocator for a cluster that is given all at once.

A `LiveAllocator` follows a cluster step by step. Here no step can go wrong: slices come in the
given order, and any devices can be in use, also without claims.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.allocation import Features, Release, SearchMemo
from dryrack.allocation.search.allocator import attempt
from dryrack.allocation.search.problem import (
    AllocatorContext,
    selector_compiler,
    stored_environment,
)
from dryrack.allocation.supply.pools import Inventory
from dryrack.allocation.supply.usage import UsageSnapshot
from dryrack.cel import DerivedTable
from dryrack.cel.selectors import SelectorTable
from dryrack.kinds.releases import DEFAULT_RELEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dryrack.allocation import Outcome
    from dryrack.allocation.supply.usage import Taken
    from dryrack.base.ports import Chance
    from dryrack.cel import CompileError, Program
    from dryrack.kinds.core import Node
    from dryrack.kinds.resource import DeviceClass, ResourceClaim, ResourceSlice


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A cluster without changes."""

    slices: Sequence[ResourceSlice]
    classes: Iterable[DeviceClass]
    chance: Chance
    features: Features = field(default_factory=Features.defaults)
    allocated: Taken = field(default_factory=UsageSnapshot)
    compiler: Callable[[str], Program | CompileError] | None = None
    release: Release = DEFAULT_RELEASE

    def allocate(
        self, node: Node, claims: Sequence[ResourceClaim], memo: SearchMemo | None = None
    ) -> Outcome:
        classes: dict[str, DeviceClass] = {}
        for each in self.classes:
            classes.setdefault(each.metadata.name, each)
        context = AllocatorContext(
            features=self.features,
            release=self.release,
            classes=classes,
            allocated=self.allocated,
            selectors=SelectorTable(
                self.compiler or selector_compiler(self.features, self.release)
            ),
            derived=DerivedTable(stored_environment(self.features, self.release)),
            memo=memo if memo is not None else SearchMemo(),
        )
        pools = Inventory(self.slices, self.features, self.release).pools(node)
        return attempt(context, pools, node=node, claims=claims, chance=self.chance)

    def begin(self, node: Node, claims: Sequence[ResourceClaim]) -> Outcome:
        """Return the outcome, however long the search takes."""
        return self.allocate(node, claims)
