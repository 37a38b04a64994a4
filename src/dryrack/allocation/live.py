"""
An allocator for a cluster that changes while it is asked.

Slices, classes, taint rules and allocations come and go one at a time, and a change costs what it
changes. An answer is that of an `Allocator` which was built for the cluster as it is now; asking
changes nothing. Reasons for a refusal are to be read before the next change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.allocation.allocator import attempt
from dryrack.allocation.candidates import CelCompiler, SelectorTable
from dryrack.allocation.features import Features, Release
from dryrack.allocation.pools import Inventory
from dryrack.allocation.problem import Surroundings
from dryrack.allocation.state import Books
from dryrack.allocation.taints import apply_taint_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.allocation.allocator import Outcome
    from dryrack.allocation.pools import Entry
    from dryrack.base.ports import Chance
    from dryrack.kinds.core import Node
    from dryrack.kinds.resource import (
        AllocationResult,
        DeviceClass,
        DeviceRequestAllocationResult,
        DeviceTaintRule,
        ResourceClaim,
        ResourceSlice,
    )


class LiveAllocator:
    """See the module's docstring."""

    def __init__(
        self,
        *,
        features: Features | None = None,
        release: Release = Release.V1_36,
        chance: Chance,
    ) -> None:
        features = features if features is not None else Features.defaults(release)
        self._chance = chance
        self._inventory = Inventory((), features, release)
        self._slices: dict[str, tuple[Entry, ResourceSlice]] = {}
        self._rules: dict[str, DeviceTaintRule] = {}
        self._classes: dict[str, DeviceClass] = {}
        self._held: dict[str, AllocationResult] = {}
        self._books = Books(features)
        self._surroundings = Surroundings(
            features=features,
            release=release,
            classes=self._classes,
            allocated=self._books,
            selectors=SelectorTable(CelCompiler(features, release)),
        )

    def allocate(self, node: Node, claims: Sequence[ResourceClaim]) -> Outcome:
        """As `Allocator.allocate`."""
        pools = self._inventory.pools(node)
        return attempt(self._surroundings, pools, node=node, claims=claims, chance=self._chance)

    def put_slice(self, each: ResourceSlice) -> None:
        """The slice is there, and is so from now on, whatever it was before."""
        self.drop_slice(each.metadata.name)
        entry = self._inventory.add(self._tainted(each), rank=each.metadata.name)
        self._slices[each.metadata.name] = (entry, each)

    def drop_slice(self, name: str) -> None:
        known = self._slices.pop(name, None)
        if known is not None:
            self._inventory.remove(known[0])

    def put_rule(self, rule: DeviceTaintRule) -> None:
        """The rule taints what it selects from now on."""
        self._rules[rule.metadata.name] = rule
        self._taint_again()

    def drop_rule(self, name: str) -> None:
        if self._rules.pop(name, None) is not None:
            self._taint_again()

    def put_class(self, each: DeviceClass) -> None:
        self._classes[each.metadata.name] = each

    def drop_class(self, name: str) -> None:
        self._classes.pop(name, None)

    def forget_node(self, name: str) -> None:
        """Nobody will ask about the node again."""
        self._inventory.forget(name)

    def hold(self, claim: str, allocation: AllocationResult | None) -> bool:
        """What a claim has from now on; whether it has something no longer that it had."""
        before = self._held.get(claim)
        if _results(before) == _results(allocation):
            return False
        if before is not None:
            del self._held[claim]
            self._books.release(before)
        if allocation is not None:
            self._held[claim] = allocation
            self._books.allocate(allocation, claim)
        return before is not None

    def _tainted(self, each: ResourceSlice) -> ResourceSlice:
        if not self._rules:
            return each
        rules = [self._rules[name] for name in sorted(self._rules)]
        return apply_taint_rules((each,), rules)[0]

    def _taint_again(self) -> None:
        """Rules are few and seldom change, so every slice is looked at."""
        for _, each in tuple(self._slices.values()):
            self.put_slice(each)


def _results(
    allocation: AllocationResult | None,
) -> tuple[DeviceRequestAllocationResult, ...] | None:
    """All of an allocation that says which devices are in use."""
    return allocation.devices.results if allocation is not None else None
