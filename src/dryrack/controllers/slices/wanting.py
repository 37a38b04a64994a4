"""
What an inventory wants on a node, and what that takes, given what is there.

A source that nobody could read since the start may still be in force: whatever it has caused is
left as it is, and so is a node on which it would have been asked before those who now speak up.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.controllers.objects import labels_of
from dryrack.controllers.slices.audience import typed
from dryrack.controllers.slices.ledger import Row
from dryrack.controllers.slices.pools import PoolId, document, plan, pool_of
from dryrack.hardware.inventory import SourceKind, ThisNode
from dryrack.hardware.matching import Matcher
from dryrack.hardware.slicing import SOURCE, node_owner, slices_of, source_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dryrack.controllers.writes import Plan
    from dryrack.hardware.inventory import Assignment, Inventory, Pool, Source
    from dryrack.hardware.matching import Matched
    from dryrack.kinds.meta import OwnerReference

Raw = dict[str, Any]

# Who is asked first; those who are asked together have one number.
_TURN = {
    SourceKind.OVERLAY: 0,
    SourceKind.CONFIG_MAP: 1,
    SourceKind.CONFIG: 1,
    SourceKind.CATALOGUE: 2,
}
_NOBODY = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """The slices of each pool, and who wants them."""

    pools: Mapping[PoolId, Sequence[Raw]]
    row: Row
    turn: int = _NOBODY


NOTHING = Wanted({}, Row({}))


class Wanting:
    """One inventory, ready to be asked for nodes."""

    def __init__(self, inventory: Inventory) -> None:
        self._matcher = Matcher(inventory)
        self._unread = {source_label(each): _TURN[each.kind] for each in inventory.unread}
        self.has_shared = any(map(_is_shared, _assignments(inventory)))

    def on(self, node: Raw) -> Wanted:
        """What is to be on a node."""
        owner = node_owner(node["metadata"]["name"], node["metadata"]["uid"])
        return _wanted(self._matcher.pools_of(typed(node)), owner)

    def called_by(self, node: Raw) -> tuple[int, ...]:
        """What a node calls for of the whole cluster's, for `shared`."""
        return self._matcher.shared_of(typed(node)) if self.has_shared else ()

    def shared(self, called: Iterable[int]) -> Wanted:
        """What is to be there for the whole cluster."""
        return _wanted(self._matcher.shared_pools(called), None)

    def plans_on_node(self, wanted: Wanted, observed: Sequence[Raw]) -> dict[PoolId, Plan]:
        """What is to be written about each pool of a node; those that are right are left out."""
        turns = [turn for each in observed if (turn := self._turn(each)) is not None]
        if min(turns, default=_NOBODY) < wanted.turn:
            return {}
        held = {pool_of(each) for each in observed if self._turn(each) == wanted.turn}
        return dict(_plans(wanted, observed, held))

    def plans_shared(self, wanted: Wanted, observed: Sequence[Raw]) -> dict[PoolId, Plan]:
        """The same for the pools of the whole cluster."""
        held = {pool_of(each) for each in observed if self._turn(each) is not None}
        return dict(_plans(wanted, observed, held))

    def plans_without_node(self, observed: Sequence[Raw]) -> dict[PoolId, Plan]:
        """The same where there is no node any more: whoever wanted it, it goes."""
        return dict(_plans(NOTHING, observed, set()))

    def _turn(self, slice_: Raw) -> int | None:
        return self._unread.get(labels_of(slice_).get(SOURCE, "")) if self._unread else None


def _plans(
    wanted: Wanted, observed: Sequence[Raw], held: set[PoolId]
) -> Iterator[tuple[PoolId, Plan]]:
    """Pools that go come first: devices are never offered under two names."""
    there: dict[PoolId, list[Raw]] = {}
    for each in observed:
        there.setdefault(pool_of(each), []).append(each)
    for pool in (*sorted(there.keys() - wanted.pools.keys()), *sorted(wanted.pools)):
        if pool not in held:
            change = plan(wanted.pools.get(pool, ()), there.get(pool, ()))
            if change.writes:
                yield pool, change


def _wanted(matched: Matched, owner: OwnerReference | None) -> Wanted:
    counts: Counter[Source] = Counter()
    pools = {}
    for pool in matched.pools:
        slices = slices_of(pool, owner=owner)
        counts.update(_sources(pool, [each.metadata.labels[SOURCE] for each in slices]))
        if slices:
            pools[PoolId(pool.driver, pool.name)] = [document(each) for each in slices]
    notes = frozenset((note.origin.source, note.message) for note in matched.notes)
    turn = min((_TURN[source.kind] for source in counts), default=_NOBODY)
    return Wanted(pools, Row(counts, notes, is_node=owner is not None), turn)


def _sources(pool: Pool, labels: Sequence[str]) -> Iterator[Source]:
    by_label = {source_label(each.origin.source): each.origin.source for each in pool.sections}
    return (by_label[label] for label in labels)


def _assignments(inventory: Inventory) -> Iterator[Assignment]:
    yield from (overlay.assignment for overlay in inventory.overlays)
    yield from inventory.assignments
    yield from (inventory.instance_types or {}).values()


def _is_shared(assignment: Assignment) -> bool:
    return any(not isinstance(batch.reach, ThisNode) for batch in assignment.batches)
